//! Dispatch of calls to drivers: when a driver is asked, what is on record before, and which looks at a backend are
//! worth a record.
//!
//! A call is asked once for its number. While its operation is under way the rules themselves make a further call due
//! ([`super::step`]), with their newest wishes; the dispatcher repeats a call only where the rules have not done so in
//! time, so that an operation of several steps goes on while nobody decides.

use std::time::Duration;

use crate::{
    core::time::Timestamp,
    host::{
        evidence::DriverSight,
        record::{
            call::{DriverAnswer, DriverReport},
            operation::OperationKind,
            progress::{CallCarrier, HostProgress, HostWork},
        },
    },
};

/// Time for the rules to make a further call due, before the dispatcher repeats the last one.
const GRACE: Duration = Duration::from_secs(5);

/// Shortest time between two listings of one backend: many calls may end at a time.
const BRIEF: Duration = Duration::from_millis(250);

/// Times as long as a listing took that its backend is left alone: calls need the same processor, and the same backend.
const REST_SHARE: u32 = 2;

/// Failed listings in a row after which a backend counts as not ready.
const FAILED_LISTINGS: u32 = 2;

/// Record of a host at one of the parts that carry calls out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallRecord {
    /// Last report about a call.
    pub report: Option<DriverReport>,
    /// Operation that the driver may have been asked for.
    pub intent: Option<CallIntent>,
}

/// Intent to ask a driver for an operation, on record before the driver is called. After a crash the driver learns from
/// the intent that the operation may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallIntent {
    /// Kind of the operation.
    pub kind: OperationKind,
    /// Time of the first call of the operation, which tells it from an earlier one of the same kind.
    pub since: Timestamp,
    /// Time at which the driver was first asked.
    pub at: Timestamp,
}

/// Next step of the dispatcher for a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchStep {
    /// Waits for a change of the record of the host.
    Rest,
    /// Waits for that time.
    WaitUntil(Timestamp),
    /// The driver is to be asked, with that intent on record.
    Ask(CallIntent),
}

/// Returns the part that carries an operation of that kind out. `power`: the part that has the power calls.
///
/// Resets within another operation are steps of it, and belong to its driver.
pub fn carrier(kind: OperationKind, power: CallCarrier) -> CallCarrier {
    match kind {
        OperationKind::PowerOn | OperationKind::PowerOff => power,
        OperationKind::Register
        | OperationKind::Inspect
        | OperationKind::Prepare
        | OperationKind::Service
        | OperationKind::Provision
        | OperationKind::Adopt
        | OperationKind::Deprovision
        | OperationKind::Detach
        | OperationKind::Delete
        | OperationKind::AttachDataImage
        | OperationKind::DetachDataImage => CallCarrier::HostProvisioner,
    }
}

/// Decides whether the driver of a host is to be asked about its `work` by the part `own`.
pub fn next_step(
    work: Option<&HostWork>,
    own: CallCarrier,
    record: &CallRecord,
    now: Timestamp,
) -> DispatchStep {
    let Some(work) = work.filter(|work| work.carrier == own) else { return DispatchStep::Rest };
    let answered = record.report.as_ref().filter(|report| report.number == work.number);
    let Some(DriverReport { at, answer, .. }) = answered else {
        return DispatchStep::Ask(intent(work, record, now));
    };
    match answer {
        DriverAnswer::InProgress { again_in, .. } => {
            let due = at.plus(*again_in).plus(GRACE);
            if now >= due {
                DispatchStep::Ask(intent(work, record, now))
            } else {
                DispatchStep::WaitUntil(due)
            }
        }
        DriverAnswer::Done(_)
        | DriverAnswer::Failed { .. }
        | DriverAnswer::NotRegistered
        | DriverAnswer::NeedsSlot
        | DriverAnswer::NeedsRamdisk
        | DriverAnswer::Trouble { .. } => DispatchStep::Rest,
    }
}

/// Returns the intent of the operation: the recorded one if the operation goes on, a new one otherwise.
fn intent(work: &HostWork, record: &CallRecord, now: Timestamp) -> CallIntent {
    let kind = work.call.kind();
    let since = work.since;
    let recorded = record.intent.filter(|intent| intent.kind == kind && intent.since == since);
    recorded.unwrap_or(CallIntent { kind, since, at: now })
}

/// Returns the intent that stays on record after `answer`.
///
/// A driver that could not be asked has begun nothing: an intent that was not recorded before this call ends.
pub fn intent_after(intent: CallIntent, was_recorded: bool, answer: &DriverAnswer) -> Option<CallIntent> {
    let could_not_ask = matches!(answer, DriverAnswer::Trouble { .. });
    Some(intent).filter(|_| was_recorded || !could_not_ask)
}

/// Returns whether the backend is to be listed soon after `answer`: an operation that is over has effects that show. One
/// under way, or one that could not be asked for, has none yet.
pub fn wants_listing(answer: &DriverAnswer) -> bool {
    !answer.may_go_on()
}

/// Returns whether a look at a host is worth a record, where `recorded` is the last one that was. `is_registered`: the
/// backend was told about the host.
///
/// A look that differs in nothing but its time is worth one only if the recorded look is from before the time of the
/// last answer, and so counts no more: at rest, listings write nothing.
pub fn is_news(
    seen: &DriverSight,
    recorded: &DriverSight,
    answered_at: Option<Timestamp>,
    is_registered: bool,
) -> bool {
    let is_stale = is_outdated(recorded, answered_at);
    match (seen, recorded) {
        (DriverSight::Unlisted, _) => false,
        (DriverSight::NotReady, DriverSight::NotReady) => false,
        // The backend was never told about the host.
        (DriverSight::Absent { .. }, DriverSight::Unlisted) => is_registered,
        (DriverSight::Absent { .. }, DriverSight::Absent { .. }) => is_stale && is_registered,
        (DriverSight::Known(seen), DriverSight::Known(known)) => {
            let is_same = DriverSight::Known(*seen) == DriverSight::Known(known.seen_at(seen.asked_at));
            is_stale || !is_same
        }
        (DriverSight::NotReady | DriverSight::Absent { .. } | DriverSight::Known(_), _) => true,
    }
}

/// Returns the time from which looks at a host count: that of the last answer, by whichever part. `report`: the last one of
/// the part that looks, which may not have reached the record of the host yet.
pub fn looks_count_from(progress: Option<&HostProgress>, report: Option<&DriverReport>) -> Option<Timestamp> {
    let ended_at = progress.and_then(|progress| progress.answered_at);
    ended_at.max(report.map(|report| report.at))
}

/// Returns whether a backend is to be listed soon because another part has ended an operation on the host, whose effect the
/// `recorded` look cannot show. A call of the own part, with that last `report`, is followed by a listing when it ends.
pub fn was_answered_elsewhere(
    progress: &HostProgress,
    recorded: &DriverSight,
    report: Option<&DriverReport>,
) -> bool {
    let ended_at = progress.answered_at;
    ended_at != report.map(|report| report.at) && is_outdated(recorded, ended_at)
}

/// Returns whether a look is from before an answer, and so counts no more.
fn is_outdated(sight: &DriverSight, answered_at: Option<Timestamp>) -> bool {
    answered_at.is_some_and(|at| asked_at(sight).is_none_or(|asked| asked <= at))
}

fn asked_at(sight: &DriverSight) -> Option<Timestamp> {
    match sight {
        DriverSight::Unlisted | DriverSight::NotReady => None,
        DriverSight::Absent { asked_at } => Some(*asked_at),
        DriverSight::Known(view) => Some(view.asked_at),
    }
}

/// Returns the time until the next listing of a backend.
///
/// `period` is the time at rest. A call that has ended is followed by a listing soon, but the larger the backend, so
/// that the last listing `took` longer, the longer it is left alone; a listing that failed is followed by one after a
/// tenth of the period, until the backend counts as not ready.
pub fn listing_pause(period: Duration, took: Duration, is_wanted_soon: bool, failures: u32) -> Duration {
    match failures {
        0 if is_wanted_soon => BRIEF.max(took.saturating_mul(REST_SHARE)).min(period),
        0 => period,
        _ if !counts_as_not_ready(failures) => period / 10,
        _ => period,
    }
}

/// Returns whether a backend whose last `failures` listings failed counts as not ready.
pub fn counts_as_not_ready(failures: u32) -> bool {
    failures >= FAILED_LISTINGS
}
