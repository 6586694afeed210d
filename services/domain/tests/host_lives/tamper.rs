//! Faults that are planted into decisions, to show that the checks find them.

use domain::host::{
    decision::HostDecision,
    record::{Host, operation::OperationKind, state::HostState},
};

/// Fault in the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tamper {
    None,
    /// A call that was not answered is forgotten.
    ForgetsCalls,
    /// Every host is offered a slot.
    OffersSlotsToAll,
    /// Slots are given up while the driver is at work.
    GivesUpSlots,
    /// A host is gone without a word to its driver.
    LeavesDriver,
    /// Failures are recorded without being counted.
    CountsNoFailures,
    /// The operation that fills a state never ends.
    EndsNoOperation,
    /// A rest has no end.
    RestsForever,
    /// An error is never cleared.
    KeepsErrors,
    /// Power requests ask for the opposite.
    SwapsPower,
    /// Each decision changes the record.
    NeverSettles,
}

impl Tamper {
    /// Every fault, with a part of the text by which it is found.
    pub(crate) const ALL: [(Self, &str); 10] = [
        (Self::ForgetsCalls, "without an answer"),
        (Self::OffersSlotsToAll, "slots"),
        (Self::GivesUpSlots, "slots"),
        (Self::LeavesDriver, "left at its driver"),
        (Self::CountsNoFailures, "uncounted"),
        (Self::EndsNoOperation, "history"),
        (Self::RestsForever, "not done"),
        (Self::KeepsErrors, "operational"),
        (Self::SwapsPower, "not done"),
        (Self::NeverSettles, "again"),
    ];

    /// Changes a decision about `before`.
    pub(crate) fn apply(self, before: &Host, decision: &mut HostDecision) {
        let host = &mut decision.host;
        match self {
            Self::None | Self::OffersSlotsToAll => {}
            Self::ForgetsCalls => {
                let is_awaited = before.progress.work.is_some() && decision.call.is_none();
                if is_awaited {
                    host.progress.work = None;
                    host.progress.attempts = Default::default();
                }
            }
            Self::GivesUpSlots => {
                let works = host.progress.work.as_ref().map(|work| work.call.kind());
                if works == Some(OperationKind::Inspect) {
                    host.progress.slot = Default::default();
                }
            }
            Self::LeavesDriver => {
                if before.state() == HostState::Deleting {
                    decision.call = None;
                    decision.reason = domain::host::record::reason::WaitReason::Gone;
                }
            }
            Self::CountsNoFailures => host.status.error_count = 0,
            Self::EndsNoOperation => host.status.history.inspect.end = None,
            Self::RestsForever => {
                if let Some(rest) = &mut host.progress.rest {
                    rest.until = None;
                    decision.look = None;
                }
            }
            Self::KeepsErrors => host.status.error = host.status.error.take().or(before.status.error.clone()),
            Self::SwapsPower => swap_power(decision),
            Self::NeverSettles => host.status.powered_on = !host.status.powered_on,
        }
    }
}

fn swap_power(decision: &mut HostDecision) {
    use domain::host::record::call::DriverCall;
    let Some(work) = &mut decision.call else { return };
    if matches!(work.call, DriverCall::PowerOn { .. }) {
        work.call = DriverCall::PowerOff { mode: Default::default(), force: false, cleaning_disabled: false };
    }
}
