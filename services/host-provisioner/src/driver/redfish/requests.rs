//! Resets that were requested, so that none is requested twice for a step.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use domain::{core::time::Timestamp, host::record::HostKey};
use parking_lot::Mutex;

use crate::driver::HostTarget;

/// Step of an operation that requests a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResetStep {
    /// The first step of an operation, for which the intent on record stands after a restart.
    First,
    /// The host boots the inserted image.
    Boot,
}

/// Latest request for each host.
#[derive(Default)]
pub(super) struct ResetRequests(Mutex<HashMap<HostKey, ResetRequest>>);

#[derive(Debug, Clone, Copy)]
struct ResetRequest {
    /// Time of the first call of the operation.
    since: Timestamp,
    step: ResetStep,
    at: Timestamp,
}

impl ResetRequests {
    /// Returns when the reset of that step of the operation was requested; `None`: it was not.
    pub(super) fn requested_at(
        &self,
        host: &HostKey,
        since: Timestamp,
        step: ResetStep,
    ) -> Option<Timestamp> {
        let requests = self.0.lock();
        let request = requests.get(host)?;
        (request.since == since && request.step == step).then_some(request.at)
    }

    pub(super) fn note(&self, host: &HostKey, since: Timestamp, step: ResetStep, at: Timestamp) {
        self.0.lock().insert(host.clone(), ResetRequest { since, step, at });
    }

    pub(super) fn forget(&self, host: &HostKey) {
        self.0.lock().remove(host);
    }

    /// Forgets the requests for hosts that are gone.
    pub(super) fn keep_only(&self, hosts: &[Arc<HostTarget>]) {
        let present: HashSet<_> = hosts.iter().map(|host| &host.key).collect();
        self.0.lock().retain(|host, _| present.contains(host));
    }
}
