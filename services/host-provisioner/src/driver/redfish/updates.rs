//! Updates of firmware under way, so that none is begun twice.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use domain::{
    core::time::Timestamp,
    host::{firmware::reading::FirmwareUpdate, record::HostKey},
};
use parking_lot::Mutex;

use crate::driver::HostTarget;

/// Updates of the operation under way on each host.
#[derive(Default)]
pub(super) struct UpdateRuns(Mutex<HashMap<HostKey, UpdateRun>>);

/// Updates of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UpdateRun {
    /// Time of the first call of the operation.
    since: Timestamp,
    /// Updates that are not over, the one under way first.
    pub(super) left: VecDeque<FirmwareUpdate>,
    /// State of the first of them.
    pub(super) state: UpdateState,
}

/// State of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UpdateState {
    /// The BMC was not asked for it.
    Due,
    /// The BMC was asked, and gave no answer.
    InDoubt,
    /// The task at that path carries it out.
    Task(String),
}

impl UpdateRun {
    pub(super) fn new(since: Timestamp, updates: &[FirmwareUpdate]) -> Self {
        Self { since, left: updates.iter().cloned().collect(), state: UpdateState::Due }
    }

    /// Goes on to the next update.
    pub(super) fn end_first(&mut self) {
        self.left.pop_front();
        self.state = UpdateState::Due;
    }
}

impl UpdateRuns {
    /// Returns the updates of the operation that began at `since`; `None`: none are remembered.
    pub(super) fn of(&self, host: &HostKey, since: Timestamp) -> Option<UpdateRun> {
        self.0.lock().get(host).filter(|run| run.since == since).cloned()
    }

    pub(super) fn note(&self, host: &HostKey, run: &UpdateRun) {
        self.0.lock().insert(host.clone(), run.clone());
    }

    pub(super) fn forget(&self, host: &HostKey) {
        self.0.lock().remove(host);
    }

    /// Forgets the updates of hosts that are gone.
    pub(super) fn keep_only(&self, hosts: &[Arc<HostTarget>]) {
        let present: HashSet<_> = hosts.iter().map(|host| &host.key).collect();
        self.0.lock().retain(|host, _| present.contains(host));
    }
}
