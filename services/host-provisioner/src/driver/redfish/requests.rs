//! Changes that were requested of BMCs, so that none is requested twice for a step.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use domain::{core::time::Timestamp, host::record::HostKey};
use parking_lot::Mutex;

use crate::driver::HostTarget;

/// Step of an operation that requests a change, whose effect the documents of the BMC show some time later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeStep {
    /// The first reset of an operation, for which the intent on record stands after a restart.
    First,
    /// The image is inserted.
    Insert,
    /// The host boots the inserted image.
    Boot,
    /// The host is reset so that a firmware update goes on.
    Update,
    /// A host that was on for a change of its firmware is left off.
    LeaveOff,
}

/// Latest request for each host.
#[derive(Default)]
pub(super) struct ChangeRequests(Mutex<HashMap<HostKey, ChangeRequest>>);

#[derive(Debug, Clone, Copy)]
struct ChangeRequest {
    /// Time of the first call of the operation.
    since: Timestamp,
    step: ChangeStep,
    at: Timestamp,
}

impl ChangeRequests {
    /// Returns when the change of that step of the operation was requested; `None`: it was not.
    pub(super) fn requested_at(
        &self,
        host: &HostKey,
        since: Timestamp,
        step: ChangeStep,
    ) -> Option<Timestamp> {
        let requests = self.0.lock();
        let request = requests.get(host)?;
        (request.since == since && request.step == step).then_some(request.at)
    }

    pub(super) fn note(&self, host: &HostKey, since: Timestamp, step: ChangeStep, at: Timestamp) {
        self.0.lock().insert(host.clone(), ChangeRequest { since, step, at });
    }

    pub(super) fn forget(&self, host: &HostKey) {
        self.0.lock().remove(host);
    }

    /// Returns whether any change was requested for the operation.
    pub(super) fn has_any(&self, host: &HostKey, since: Timestamp) -> bool {
        self.0.lock().get(host).is_some_and(|request| request.since == since)
    }

    /// Forgets the requests for hosts that are gone.
    pub(super) fn keep_only(&self, hosts: &[Arc<HostTarget>]) {
        let present: HashSet<_> = hosts.iter().map(|host| &host.key).collect();
        self.0.lock().retain(|host, _| present.contains(host));
    }
}
