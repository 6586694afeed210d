//! References to sessions in staged states.

use domain::boot::session::staging::Standing;
use proto::component::{self as wire, staged_session};

use super::session::operation_to_wire;

/// Converts the relation of a referenced session to the caller's tenant: own, foreign, or gone.
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
