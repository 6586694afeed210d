//! Sessions as components name them in their staged state.

use domain::staging::Standing;
use proto::component::{self as wire, staged_session};

use super::session::operation_to_wire;

/// What the session that is named like that is to somebody.
pub(crate) fn staged_session(reference: wire::SessionReference, standing: Standing) -> wire::StagedSession {
    let standing = match standing {
        Standing::Gone => None,
        Standing::Foreign => Some(staged_session::Standing::Foreign(wire::ForeignSession {})),
        Standing::Own { id, operation } => {
            let operation = operation_to_wire(operation).into();
            Some(staged_session::Standing::Own(wire::OwnSession { assignment_id: id.to_string(), operation }))
        }
    };
    wire::StagedSession { reference: Some(reference), standing }
}
