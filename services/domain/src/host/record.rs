//! Record of a host: wishes, knowledge, and progress.

use std::sync::Arc;

pub mod annotations;
pub mod call;
pub mod condition;
pub mod history;
pub mod operation;
pub mod progress;
pub mod reason;
pub mod spec;
pub mod state;
pub mod status;

use self::{
    annotations::HostAnnotations, progress::HostProgress, spec::HostSpec, state::HostState,
    status::HostStatus,
};

/// Record of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// Facts about the record itself.
    pub meta: HostMeta,
    /// Wishes of people.
    pub spec: HostSpec,
    /// Knowledge about the host, as clients see it.
    pub status: HostStatus,
    /// Progress inside the state.
    pub progress: HostProgress,
}

impl Host {
    /// State of the host.
    pub fn state(&self) -> HostState {
        self.status.provisioning.state
    }

    /// Returns whether the host is to be deleted.
    pub fn is_deleted(&self) -> bool {
        self.meta.deletion.is_some()
    }
}

/// Facts about the record of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostMeta {
    /// Name of the host.
    pub key: HostKey,
    /// Number of the last change that wakes the host: of its spec, annotations, finalizers or deletion, of a secret or
    /// image that it owns, or a person's request to retry now. Writes of the status do not count.
    pub change: u64,
    /// Deletion that was requested.
    pub deletion: Option<HostDeletion>,
    /// Whether the record is kept until the host is released.
    pub has_finalizer: bool,
    /// Annotations that rules read.
    pub annotations: HostAnnotations,
    /// Part that decides about the power.
    pub power_authority: PowerAuthority,
}

/// Part that decides about the power of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PowerAuthority {
    /// The spec.
    #[default]
    Spec,
    /// The session that acts on the node that the host is: nothing else is done to the host.
    Session,
    /// The last session, until a person changes the host: a node that has booted must not be switched off because its
    /// host was registered as off.
    LastSession,
}

/// Name of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostKey {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name within the namespace.
    pub name: Arc<str>,
}

/// Deletion of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostDeletion {
    /// The host is deprovisioned, switched off and forgotten by the driver.
    Orderly,
    /// The record goes without a call to the driver, whose record may be left over (host reference Q17).
    Forced,
}
