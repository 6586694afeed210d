//! Times of operations: the four that clients know, and a log of every attempt (host reference 1.6, Q13).

use crate::{
    core::time::Timestamp,
    host::record::{operation::OperationKind, state::HostState},
};

/// Attempts that the log of a host keeps: enough to see a loop of provisioning and cleaning three times over.
const MOST_ATTEMPTS: usize = 24;

/// Latest times of the operations that clients know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperationHistory {
    /// Registration.
    pub register: OperationTimes,
    /// Inspection.
    pub inspect: OperationTimes,
    /// Provisioning.
    pub provision: OperationTimes,
    /// Deprovisioning.
    pub deprovision: OperationTimes,
}

/// Start and end of an operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperationTimes {
    /// Start; `None`: never.
    pub start: Option<Timestamp>,
    /// End; `None`: not yet.
    pub end: Option<Timestamp>,
}

impl OperationTimes {
    /// Returns whether the operation has begun and not ended.
    pub fn is_open(self) -> bool {
        self.start.is_some() && self.end.is_none()
    }

    /// Begins the operation, unless it is under way.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        if !self.is_open() {
            *self = Self { start: Some(now), end: None };
        }
    }

    /// Ends the operation if it is under way, and returns its start.
    pub(crate) fn finish(&mut self, now: Timestamp) -> Option<Timestamp> {
        let start = self.start.filter(|_| self.is_open())?;
        self.end = Some(now);
        Some(start)
    }
}

impl OperationHistory {
    /// Returns the times of the operation that fills `state`, with its kind.
    pub(crate) fn of(&mut self, state: HostState) -> Option<(OperationKind, &mut OperationTimes)> {
        match state {
            HostState::Registering => Some((OperationKind::Register, &mut self.register)),
            HostState::Inspecting => Some((OperationKind::Inspect, &mut self.inspect)),
            HostState::Provisioning => Some((OperationKind::Provision, &mut self.provision)),
            HostState::Deprovisioning => Some((OperationKind::Deprovision, &mut self.deprovision)),
            HostState::Unset
            | HostState::Unmanaged
            | HostState::MatchProfile
            | HostState::Preparing
            | HostState::Available
            | HostState::Ready
            | HostState::Provisioned
            | HostState::ExternallyProvisioned
            | HostState::PoweringOffBeforeDelete
            | HostState::Deleting => None,
        }
    }
}

/// End of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptEnd {
    /// The driver finished.
    Done,
    /// The driver reported a failure.
    Failed,
    /// The driver does not know the host.
    NotRegistered,
    /// The driver lacks something: a slot, or an image.
    Refused,
    /// Another operation took its place.
    Replaced,
}

/// Attempt at one operation: from its first call to an answer that ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Operation.
    pub operation: OperationKind,
    /// Time of the first call.
    pub start: Timestamp,
    /// Time and manner of its end; `None`: under way.
    pub end: Option<(Timestamp, AttemptEnd)>,
}

/// Latest attempts of a host, oldest first. Only the last one may be under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttemptLog(Vec<AttemptRecord>);

impl AttemptLog {
    /// Makes a log of stored attempts.
    pub fn of(attempts: Vec<AttemptRecord>) -> Self {
        Self(attempts)
    }

    /// Attempts, oldest first.
    pub fn attempts(&self) -> &[AttemptRecord] {
        &self.0
    }

    /// Begins an attempt.
    pub(crate) fn begin(&mut self, operation: OperationKind, now: Timestamp) {
        self.finish(AttemptEnd::Replaced, now);
        if self.0.len() >= MOST_ATTEMPTS {
            self.0.remove(0);
        }
        self.0.push(AttemptRecord { operation, start: now, end: None });
    }

    /// Ends the attempt that is under way, if there is one.
    pub(crate) fn finish(&mut self, end: AttemptEnd, now: Timestamp) {
        if let Some(last) = self.0.last_mut()
            && last.end.is_none()
        {
            last.end = Some((now, end));
        }
    }
}
