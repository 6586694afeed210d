//! Progress of a host inside its state: the call under way, waits, slots and attempts.

use std::sync::Arc;

use crate::{
    core::time::Timestamp,
    host::record::{
        call::{DriverCall, PreparationParts, Registration},
        history::AttemptLog,
        reason::WaitReason,
    },
};

/// Progress of a host inside its state. Clients see it as an extension of the status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostProgress {
    /// Number of the last call.
    pub calls: u64,
    /// Call that is due or answered, while its operation is not over.
    pub work: Option<HostWork>,
    /// Facts of the last registration that succeeded; `None`: the driver has to be told about the host.
    pub registered: Option<Registration>,
    /// Time of the last answer that ended an operation. A look at the host from before does not count.
    pub answered_at: Option<Timestamp>,
    /// Time of the last end of a preparation or servicing. Firmware that was read before does not count.
    pub firmware_changed_at: Option<Timestamp>,
    /// Time of the last report about an operation that needs a slot and that another one has taken the place of, until
    /// a look shows that the backend has given it up.
    pub interrupted_at: Option<Timestamp>,
    /// Trouble that no one is to blame for, while it lasts (host reference Q5).
    pub trouble: Option<TransientTrouble>,
    /// Rest until a time or a change.
    pub rest: Option<HostRest>,
    /// Reason for which the host waits.
    pub wait: Option<HostWait>,
    /// Claim on a slot.
    pub slot: SlotClaim,
    /// Whether the host boots without a slot, by the last look at it.
    pub boots_without_slot: bool,
    /// Secret with network data that the host has claimed.
    pub network_secret: Option<Arc<str>>,
    /// Failures of the data image in a row.
    pub data_image_failures: u32,
    /// Latest attempts at every operation.
    pub attempts: AttemptLog,
}

/// Call to the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostWork {
    /// Number of the call, by which a report is about it.
    pub number: u64,
    /// Operation that is due.
    pub call: DriverCall,
    /// Time of the first call of the operation.
    pub since: Timestamp,
    /// Part of the mesh that carries the operation out. An operation keeps it to its end.
    pub carrier: CallCarrier,
    /// Changes that calls of this operation were about.
    pub parts: PreparationParts,
    /// Number of the last call of this operation that changed the host; 0: none is known to have.
    pub changed_by: u64,
    /// Whether the driver has accepted the operation.
    pub is_accepted: bool,
}

/// Part of the mesh that carries calls out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CallCarrier {
    /// The host provisioner.
    #[default]
    HostProvisioner,
    /// The power controller.
    PowerController,
}

/// Trouble that no one is to blame for. It is shown, and counts as no failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransientTrouble {
    /// Kind of the trouble.
    pub reason: WaitReason,
    /// Text for people.
    pub text: Arc<str>,
    /// Number of the call that it is about; 0: no call.
    pub number: u64,
    /// Time of its last occurrence.
    pub at: Timestamp,
    /// Occurrences in a row.
    pub attempts: u32,
    /// Time of the next attempt.
    pub retry_at: Timestamp,
}

/// Rest of a host that nothing but time or a change ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostRest {
    /// Reason for it.
    pub reason: WaitReason,
    /// End of it; `None`: only a change ends it.
    pub until: Option<Timestamp>,
    /// Number of the last change that was known at its beginning.
    pub change: u64,
}

/// Wait of a host, as people see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostWait {
    /// Reason for it.
    pub reason: WaitReason,
    /// Beginning of it.
    pub since: Timestamp,
    /// Time of the next try; `None`: it ends by a change, or by news of the driver.
    pub until: Option<Timestamp>,
}

/// Claim of a host on one of the slots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SlotClaim {
    /// The host needs none.
    #[default]
    Nothing,
    /// The host waits for its turn.
    Waiting {
        /// Beginning of the wait, which orders the queue.
        since: Timestamp,
    },
    /// The host waited for its turn and cannot take one now, so others pass it by. It keeps its place.
    Aside {
        /// Beginning of the wait.
        since: Timestamp,
    },
    /// The host has one.
    Held,
}
