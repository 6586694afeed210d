//! Changes that were requested of BMCs, so that none is requested twice for a step.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use domain::{
    core::time::Timestamp,
    host::record::{HostKey, call::DriverAnswer},
};
use parking_lot::Mutex;

use crate::HostTarget;

/// Step of an operation that requests a change, whose effect the documents of the BMC show some time later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeStep {
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
pub struct ChangeRequests(Mutex<HashMap<HostKey, ChangeRequest>>);

#[derive(Debug, Clone, Copy)]
struct ChangeRequest {
    /// Time of the first call of the operation.
    since: Timestamp,
    step: ChangeStep,
    at: Timestamp,
}

impl ChangeRequests {
    /// Returns when the change of that step of the operation was requested; `None`: it was not.
    pub fn requested_at(&self, host: &HostKey, since: Timestamp, step: ChangeStep) -> Option<Timestamp> {
        let requests = self.0.lock();
        let request = requests.get(host)?;
        (request.since == since && request.step == step).then_some(request.at)
    }

    /// Notes a request that is about to be made.
    pub fn note(&self, host: &HostKey, since: Timestamp, step: ChangeStep, at: Timestamp) {
        self.0.lock().insert(host.clone(), ChangeRequest { since, step, at });
    }

    /// Forgets the request for a host once its operation is over by that answer.
    pub fn forget_ended(&self, host: &HostKey, answer: &DriverAnswer) {
        if !answer.may_go_on() {
            self.forget(host);
        }
    }

    /// Forgets the request for a host.
    pub fn forget(&self, host: &HostKey) {
        self.0.lock().remove(host);
    }

    /// Returns whether any change was requested for the operation.
    pub fn has_any(&self, host: &HostKey, since: Timestamp) -> bool {
        self.0.lock().get(host).is_some_and(|request| request.since == since)
    }

    /// Forgets the requests for hosts that are gone.
    pub fn keep_only(&self, hosts: &[Arc<HostTarget>]) {
        let present: HashSet<_> = hosts.iter().map(|host| &host.key).collect();
        self.0.lock().retain(|host, _| present.contains(host));
    }
}
