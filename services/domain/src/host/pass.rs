//! Decision in the making: the record as it changes, and the conversation with the driver.

use std::{sync::Arc, time::Duration};

use crate::{
    core::{backoff::Backoff, time::Timestamp},
    host::{
        decision::{CompanionChange, HostEvent, HostMetric},
        evidence::{DriverView, HostEvidence, HostMoment, HostPolicy, SlotOffer},
        record::{
            Host,
            annotations::AnnotationName,
            call::{DoneFacts, DriverAnswer, DriverCall, DriverReport, DriverTrouble, PreparationParts},
            history::AttemptEnd,
            operation::OperationKind,
            progress::{HostRest, HostWork, TransientTrouble},
            reason::WaitReason,
            state::HostState,
            status::{HostError, HostErrorKind, HostInventory, OperationalStatus},
        },
    },
};

mod conversation;

pub(crate) use conversation::DriverReply;

/// Back-off after failures of a host, in minutes that double (host reference 1.8).
const FAILURES: Backoff = Backoff { unit: Duration::from_secs(60), most_failures: 9 };

/// Back-off after troubles that no host is to blame for. An outage of a backend ends for all hosts at once, so the
/// longest delay, a quarter of an hour, stays well below that of failures.
const TROUBLES: Backoff = Backoff { unit: Duration::from_millis(500), most_failures: 11 };

/// End of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PassEnd {
    pub reason: WaitReason,
    /// Time of the next decision; `None`: a change brings it.
    pub look: Option<Timestamp>,
}

/// Result of a step: go on with the next one, or end the decision.
pub(crate) type Flow<T = ()> = Result<T, PassEnd>;

/// Decision in the making.
pub(crate) struct HostPass<'a> {
    pub host: Host,
    pub seen: &'a HostEvidence,
    pub policy: &'a HostPolicy,
    pub moment: HostMoment,
    pub events: Vec<HostEvent>,
    pub metrics: Vec<HostMetric>,
    pub companions: Vec<CompanionChange>,
    /// Call that was made due by this decision.
    pub call: Option<HostWork>,
    /// Row of the transition table that was followed.
    pub row: Option<u8>,
    /// Whether the deletion goes on without a login.
    pub lacks_credentials: bool,
    /// Changes that the operation was about that has just ended.
    pub ended_parts: PreparationParts,
    /// Inventory that the driver has just returned.
    pub inventory: Option<Arc<HostInventory>>,
    /// Whether the driver has just accepted its operation.
    pub is_newly_accepted: bool,
    /// Whether the driver has just begun to change the host, by whichever call of its operation.
    pub is_newly_begun: bool,
    /// Whether the host has just got the slot that it waited for.
    pub has_regained_slot: bool,
    /// Reply that several rows of the table judge one after the other.
    pub reply: Option<DriverReply>,
}

impl<'a> HostPass<'a> {
    pub fn new(host: Host, seen: &'a HostEvidence, policy: &'a HostPolicy, moment: HostMoment) -> Self {
        Self {
            host,
            seen,
            policy,
            moment,
            events: Vec::new(),
            metrics: Vec::new(),
            companions: Vec::new(),
            call: None,
            row: None,
            lacks_credentials: false,
            ended_parts: PreparationParts::default(),
            inventory: None,
            is_newly_accepted: false,
            is_newly_begun: false,
            has_regained_slot: false,
            reply: None,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.moment.now
    }

    pub fn state(&self) -> HostState {
        self.host.state()
    }

    /// Ends the decision; the next one follows at once.
    pub fn again(&self) -> PassEnd {
        PassEnd { reason: WaitReason::Continuing, look: Some(self.now()) }
    }

    /// Ends the decision; the next one follows after `delay` at the latest.
    pub fn wait(&self, reason: WaitReason, delay: Duration) -> PassEnd {
        PassEnd { reason, look: Some(self.now().plus(delay)) }
    }

    /// Ends the decision; only a change brings the next one.
    pub fn wait_for_change(reason: WaitReason) -> PassEnd {
        PassEnd { reason, look: None }
    }

    /// Lets the host rest for `delay`, or until a change if there is no delay.
    pub fn rest(&mut self, reason: WaitReason, delay: Option<Duration>) -> PassEnd {
        let until = delay.map(|delay| self.now().plus(delay));
        self.host.progress.rest = Some(HostRest { reason, until, change: self.host.meta.change });
        PassEnd { reason, look: until }
    }

    /// Returns the look of the driver at the host, if it is from after the last answer.
    pub fn latest_view(&self) -> Option<&DriverView> {
        let answered = self.host.progress.answered_at;
        self.seen.driver.view().filter(|view| answered.is_none_or(|at| view.asked_at > at))
    }

    /// Returns whether an error of `kind` is recorded, so that the driver may start its operation anew.
    pub fn has_error(&self, kind: HostErrorKind) -> bool {
        self.host.status.error.as_ref().is_some_and(|error| error.kind == kind)
    }

    /// Records a failure and counts it.
    pub fn record_failure(&mut self, kind: HostErrorKind, text: Arc<str>) {
        let status = &mut self.host.status;
        status.operational = OperationalStatus::Error;
        status.error_count = status.error_count.saturating_add(1);
        status.error = Some(HostError { kind, text: Arc::clone(&text) });
        self.events.push(HostEvent::Failed { kind, text });
        self.metrics.push(HostMetric::Error(kind));
    }

    /// Records a failure, after which the host rests.
    pub fn fail(&mut self, kind: HostErrorKind, text: Arc<str>) -> PassEnd {
        self.record_failure(kind, text);
        self.back_off(WaitReason::BackingOff)
    }

    /// Lets the host rest as long as its failures in a row demand.
    pub fn back_off(&mut self, reason: WaitReason) -> PassEnd {
        let delay = self.failure_delay(self.host.status.error_count);
        self.rest(reason, Some(delay))
    }

    /// Returns the delay after `failures` in a row.
    pub fn failure_delay(&self, failures: u32) -> Duration {
        FAILURES.delay(failures, self.moment.jitter)
    }

    /// Takes an operational status back to that of the recorded error.
    pub fn reset_operational(&mut self) {
        let has_error = self.host.status.error.is_some();
        self.host.status.operational =
            if has_error { OperationalStatus::Error } else { OperationalStatus::Ok };
    }

    /// Clears the error that clients see. The count of failures stays (host reference 1.8). Servicing goes on.
    pub fn clear_error(&mut self) {
        let status = &mut self.host.status;
        status.error = None;
        if status.operational != OperationalStatus::Servicing {
            status.operational = OperationalStatus::Ok;
        }
    }

    /// Notes a trouble that no host is to blame for; it is tried again after a while.
    pub fn trouble(&mut self, reason: WaitReason, text: Arc<str>) -> PassEnd {
        self.trouble_about(0, reason, text)
    }

    fn trouble_about(&mut self, number: u64, reason: WaitReason, text: Arc<str>) -> PassEnd {
        let now = self.now();
        let known = self.host.progress.trouble.as_ref();
        let known = known.filter(|known| known.reason == reason && known.text == text);
        let is_noted = known.is_some_and(|known| known.number == number && now < known.retry_at);
        if !is_noted {
            let earlier = self.host.progress.trouble.as_ref().map_or(0, |trouble| trouble.attempts);
            let attempts = earlier.saturating_add(1);
            let retry_at = now.plus(TROUBLES.delay(attempts, self.moment.jitter));
            let noted = TransientTrouble { reason, text, number, at: now, attempts, retry_at };
            self.host.progress.trouble = Some(noted);
        }
        PassEnd { reason, look: self.host.progress.trouble.as_ref().map(|trouble| trouble.retry_at) }
    }

    /// Removes an annotation; returns whether it was there.
    pub fn remove_annotation(&mut self, name: AnnotationName) -> bool {
        self.host.meta.annotations.remove(name)
    }

    /// Returns whether the host has a slot, may take one now, or needs none: because it boots without one, or because
    /// the backend works on it already.
    pub fn has_slot(&self) -> bool {
        let is_busy = self.latest_view().is_some_and(|view| view.is_busy);
        self.host.progress.boots_without_slot || is_busy || self.seen.slot == SlotOffer::Open
    }

    /// Makes the host wait for a slot in its present state.
    pub fn delay(&mut self, entering: HostState) -> PassEnd {
        if self.host.status.operational != OperationalStatus::Delayed {
            self.host.status.operational = OperationalStatus::Delayed;
            self.metrics.push(HostMetric::Delayed(entering));
        }
        Self::wait_for_change(WaitReason::AwaitingSlot)
    }
}
