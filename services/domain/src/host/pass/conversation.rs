//! Conversation with the driver: at most one call of a host is without an answer.
//!
//! A call has a number, and a report names it. A new call, of whatever kind, becomes due only once the one before was
//! answered, so no two operations and no two opposite power requests of a host are ever under way side by side.

use super::{
    Arc, AttemptEnd, DoneFacts, DriverAnswer, DriverCall, DriverReport, DriverTrouble, Flow, HostErrorKind,
    HostPass, HostWork, OperationKind, PassEnd, WaitReason,
};
use crate::host::{dispatch, record::progress::CallCarrier};

/// Answer of the driver, as far as the rules of an operation have to judge it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DriverReply {
    /// The operation is under way.
    Running {
        /// Whether it has begun to change the host.
        started: bool,
    },
    /// The operation is over.
    Done(DoneFacts),
    /// The operation failed.
    Failed(Arc<str>),
    /// The driver does not know the host.
    NotRegistered,
    /// The driver needs another ramdisk image.
    NeedsRamdisk,
}

impl HostPass<'_> {
    /// Asks for an operation, or returns the answer if it is there. The driver is asked again once its operation has
    /// run for as long as it wanted.
    pub fn consult(&mut self, call: DriverCall) -> Flow<DriverReply> {
        let Some(work) = &self.host.progress.work else { return Err(self.begin(call)) };
        let Some(report) = self.report() else { return Err(self.await_answer()) };
        if work.call.kind() != call.kind() {
            self.finish(AttemptEnd::Replaced);
            return Err(self.begin(call));
        }
        self.judge(report, call)
    }

    /// Returns the report about the present call.
    pub fn report(&self) -> Option<DriverReport> {
        let work = self.host.progress.work.as_ref()?;
        self.seen.reports.of(work.carrier).filter(|report| report.number == work.number).cloned()
    }

    fn judge(&mut self, report: DriverReport, call: DriverCall) -> Flow<DriverReply> {
        let DriverReport { number, at, answer } = report;
        match answer {
            DriverAnswer::Trouble { kind, text } => Err(self.troubled(number, trouble(kind), text, call)),
            DriverAnswer::InProgress { again_in, started } => {
                self.end_trouble();
                self.note_acceptance();
                let started = started && self.is_first_change(number);
                if self.now() >= at.plus(again_in) {
                    self.prolong(call);
                }
                Ok(DriverReply::Running { started })
            }
            DriverAnswer::Done(facts) => {
                self.note_acceptance();
                let started = facts.started && self.is_first_change(number);
                Ok(self.over(AttemptEnd::Done, DriverReply::Done(DoneFacts { started, ..facts })))
            }
            DriverAnswer::Failed { text } => Ok(self.over(AttemptEnd::Failed, DriverReply::Failed(text))),
            DriverAnswer::NotRegistered => {
                Ok(self.over(AttemptEnd::NotRegistered, DriverReply::NotRegistered))
            }
            DriverAnswer::NeedsRamdisk => Ok(self.over(AttemptEnd::Refused, DriverReply::NeedsRamdisk)),
            DriverAnswer::NeedsSlot => Err(self.out_of_slots()),
        }
    }

    /// Asks for an operation and fails with `kind` if it does. `on_start` is applied once the operation has begun to
    /// change the host. Returns the facts of its end.
    pub fn carry_out(
        &mut self,
        call: DriverCall,
        kind: HostErrorKind,
        on_start: fn(&mut Self),
    ) -> Flow<DoneFacts> {
        match self.consult(call)? {
            DriverReply::Running { started } => {
                if started {
                    on_start(self);
                }
                Err(self.running())
            }
            DriverReply::Done(facts) => {
                if facts.started {
                    on_start(self);
                }
                Ok(facts)
            }
            DriverReply::Failed(text) => Err(self.fail(kind, text)),
            DriverReply::NotRegistered | DriverReply::NeedsRamdisk => Err(self.register_again()),
        }
    }

    /// Waits for an operation that is under way. Any error that clients see is over.
    pub fn running(&mut self) -> PassEnd {
        self.clear_error();
        let again = self.report().and_then(|report| match report.answer {
            DriverAnswer::InProgress { again_in, .. } => Some(report.at.plus(again_in)),
            DriverAnswer::Done(_)
            | DriverAnswer::Failed { .. }
            | DriverAnswer::NotRegistered
            | DriverAnswer::NeedsSlot
            | DriverAnswer::NeedsRamdisk
            | DriverAnswer::Trouble { .. } => None,
        });
        PassEnd { reason: WaitReason::DriverWorking, look: again }
    }

    /// Waits for an answer. A question about an operation that goes on, or that could not be asked before, leaves the
    /// reason of the wait as it was, so that people see its whole length.
    fn await_answer(&self) -> PassEnd {
        let work = self.host.progress.work.as_ref();
        let is_accepted = work.is_some_and(|work| work.is_accepted);
        let carrier = work.map(|work| work.carrier).unwrap_or_default();
        let trouble = self.host.progress.trouble.as_ref().filter(|trouble| trouble.number != 0);
        Self::wait_for_change(match trouble {
            Some(trouble) => trouble.reason,
            None if is_accepted => WaitReason::DriverWorking,
            None => unanswered(carrier),
        })
    }

    /// Makes the driver get to know the host again.
    pub fn register_again(&mut self) -> PassEnd {
        self.host.progress.registered = None;
        self.again()
    }

    /// Drops an operation that was answered and that no rule asks for any more.
    pub fn drop_answered_work(&mut self) {
        if self.report().is_some() {
            self.finish(AttemptEnd::Replaced);
        }
    }

    /// Treats an answer that lacks what belongs to it like a trouble of the driver.
    pub fn incomplete_answer(&mut self, text: &str) -> PassEnd {
        self.rest_after_trouble(WaitReason::AnswerIncomplete, text.into())
    }

    /// Notes a trouble after which the operation begins anew.
    pub fn rest_after_trouble(&mut self, reason: WaitReason, text: Arc<str>) -> PassEnd {
        let stop = self.trouble(reason, text);
        self.rest(reason, stop.look.map(|look| look.since(self.now())))
    }

    /// Returns the kind of the operation that is due or under way.
    pub fn operation(&self) -> Option<OperationKind> {
        self.host.progress.work.as_ref().map(|work| work.call.kind())
    }

    fn troubled(&mut self, number: u64, reason: WaitReason, text: Arc<str>, call: DriverCall) -> PassEnd {
        let noted = self.host.progress.trouble.as_ref().filter(|trouble| trouble.number == number);
        if noted.is_some_and(|trouble| self.now() >= trouble.retry_at) {
            self.prolong(call);
            return self.await_answer();
        }
        self.trouble_about(number, reason, text)
    }

    fn out_of_slots(&mut self) -> PassEnd {
        self.finish(AttemptEnd::Refused);
        let stop = self.delay(self.state());
        let delay = self.failure_delay(1);
        self.rest(stop.reason, Some(delay))
    }

    fn over(&mut self, end: AttemptEnd, reply: DriverReply) -> DriverReply {
        self.end_trouble();
        self.host.progress.answered_at = self.report().map(|report| report.at);
        self.finish(end);
        reply
    }

    /// Ends a trouble about a call. Other troubles end where they began.
    fn end_trouble(&mut self) {
        self.host.progress.trouble.take_if(|trouble| trouble.number != 0);
    }

    fn note_acceptance(&mut self) {
        if let Some(work) = &mut self.host.progress.work {
            self.is_newly_accepted = !work.is_accepted;
            work.is_accepted = true;
        }
    }

    fn finish(&mut self, end: AttemptEnd) {
        let now = self.now();
        let reported_at = self.report().map(|report| report.at);
        if let Some(work) = self.host.progress.work.take() {
            if end == AttemptEnd::Replaced && work.call.kind().needs_slot() {
                self.host.progress.interrupted_at = reported_at;
            }
            self.ended_parts = work.parts;
            self.host.progress.attempts.finish(end, now);
        }
    }

    /// Makes the first call of an operation due.
    fn begin(&mut self, call: DriverCall) -> PassEnd {
        let now = self.now();
        self.end_trouble();
        self.host.progress.attempts.begin(call.kind(), now);
        let carrier = dispatch::carrier(call.kind(), self.policy.power_carrier);
        self.issue(HostWork {
            number: 0,
            since: now,
            carrier,
            parts: call.parts(),
            changed_by: 0,
            is_accepted: false,
            call,
        });
        Self::wait_for_change(unanswered(carrier))
    }

    /// Makes a further call of the present operation due.
    fn prolong(&mut self, call: DriverCall) {
        if let Some(work) = self.host.progress.work.take() {
            self.issue(HostWork { parts: work.parts.or(call.parts()), call, ..work });
        }
    }

    /// Makes a call due, with a number that no report on record has: the record of the host may have lost commits that
    /// the reports have not.
    fn issue(&mut self, work: HostWork) {
        let number = self.host.progress.calls.max(self.seen.reports.last_number()).saturating_add(1);
        self.host.progress.calls = number;
        let work = HostWork { number, ..work };
        self.host.progress.work = Some(work.clone());
        self.call = Some(work);
    }

    /// Returns whether the answer to the call of that `number` is the first one to say that it changed the host.
    fn is_first_change(&mut self, number: u64) -> bool {
        let Some(work) = &mut self.host.progress.work else { return false };
        let is_first = work.changed_by < number;
        self.is_newly_begun = work.changed_by == 0;
        work.changed_by = number;
        is_first
    }
}

/// Returns the reason of the wait for the part that a call is left to.
fn unanswered(carrier: CallCarrier) -> WaitReason {
    match carrier {
        CallCarrier::HostProvisioner => WaitReason::AwaitingAnswer,
        CallCarrier::PowerController => WaitReason::AwaitingPowerController,
    }
}

fn trouble(kind: DriverTrouble) -> WaitReason {
    match kind {
        DriverTrouble::Unreachable => WaitReason::DriverUnreachable,
        DriverTrouble::Busy => WaitReason::DriverBusy,
    }
}
