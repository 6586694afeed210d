//! Host as the rules read it.

use domain::{
    core::{id::ComponentId, invalid::Invalid},
    host::node::{self, HostNode, MarkedHost},
    host::record::{Host, HostDeletion, HostKey, HostMeta, PowerAuthority, status::HostStatus},
};
use proto::host as wire;

use super::{annotations, progress, spec, status};

/// Reads a host for the rules.
///
/// # Errors
/// A word in the record is unknown; the error names the field.
pub fn host(host: &wire::Host) -> Result<Host, Invalid> {
    let none = wire::ObjectMeta::default();
    let meta = host.meta.as_ref().unwrap_or(&none);
    Ok(Host {
        meta: HostMeta {
            key: HostKey { namespace: meta.namespace.as_str().into(), name: meta.name.as_str().into() },
            change: host.change,
            deletion: deletion(host, meta),
            has_finalizer: meta.finalizers.iter().any(|name| name == annotations::FINALIZER),
            annotations: annotations::from_wire(&meta.annotations),
            power_authority: power_authority(host.node_claim.as_ref()),
        },
        spec: host.spec.as_ref().map(spec::from_wire).transpose()?.unwrap_or_default(),
        status: host.status.as_ref().map_or_else(|| Ok(HostStatus::default()), status::from_wire)?,
        progress: host.progress.as_ref().map(progress::from_wire).transpose()?.unwrap_or_default(),
    })
}

fn power_authority(claim: Option<&wire::NodeClaim>) -> PowerAuthority {
    match claim {
        None => PowerAuthority::Spec,
        Some(claim) if claim.released => PowerAuthority::LastSession,
        Some(_) => PowerAuthority::Session,
    }
}

/// Returns the id of the node that a host is or may become; `None`: it names one that cannot be an id.
pub fn node_id(host: &wire::Host) -> Option<ComponentId> {
    let meta = host.meta.as_ref()?;
    let key = HostKey { namespace: meta.namespace.as_str().into(), name: meta.name.as_str().into() };
    node::id(meta.annotations.get(annotations::XNAME).map(String::as_str), &key).ok()
}

/// Reads a host with the marks of its node.
///
/// # Errors
/// As [`host`].
pub fn marked(message: &wire::Host) -> Result<MarkedHost, Invalid> {
    let marks = message.meta.as_ref().map(annotations::node_marks).unwrap_or_default();
    Ok(MarkedHost { host: host(message)?, marks })
}

/// Returns the node that a host is, unless another one is; `None`: the host is none.
pub fn node(host: &wire::Host) -> Option<HostNode> {
    let marked = marked(host).ok().filter(|one| node::is_node(&one.host))?;
    node::node(&marked).ok()
}

fn deletion(host: &wire::Host, meta: &wire::ObjectMeta) -> Option<HostDeletion> {
    match host.deletion() {
        wire::DeletionKind::Orderly => Some(HostDeletion::Orderly),
        wire::DeletionKind::Forced => Some(HostDeletion::Forced),
        wire::DeletionKind::Unspecified => meta.deleted_at.map(|_| HostDeletion::Orderly),
    }
}
