//! Sessions as components name them in their staged state.

use domain::{
    component::SessionReference, id::Tenant, invalid::Invalid, session::Operation, staging::Standing,
};
use proto::component::{self as wire, staged_session};

/// A session as a component names it.
///
/// # Errors
/// When the tenant has no possible name.
pub(crate) fn reference_from_wire(reference: wire::SessionReference) -> Result<SessionReference, Invalid> {
    let tenant = reference.tenant.as_deref().map(Tenant::parse).transpose()?;
    Ok(SessionReference { name: reference.name, tenant, id: reference.id })
}

/// What the session that is named like that is to somebody.
pub(crate) fn staged_session(reference: wire::SessionReference, standing: Standing) -> wire::StagedSession {
    let standing = match standing {
        Standing::Gone => None,
        Standing::Foreign => Some(staged_session::Standing::Foreign(wire::ForeignSession {})),
        Standing::Own { id, operation } => {
            let own = wire::OwnSession { assignment_id: id, kind: kind(operation).into() };
            Some(staged_session::Standing::Own(own))
        }
    };
    wire::StagedSession { reference: Some(reference), standing }
}

fn kind(operation: Operation) -> wire::SessionKind {
    match operation {
        Operation::Boot => wire::SessionKind::Boot,
        Operation::Reboot => wire::SessionKind::Reboot,
        Operation::Shutdown => wire::SessionKind::Shutdown,
    }
}
