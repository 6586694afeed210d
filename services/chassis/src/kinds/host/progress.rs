//! Progress of hosts, both ways.

use domain::{
    core::invalid::Invalid,
    host::record::{
        history::{AttemptEnd, AttemptLog, AttemptRecord},
        operation::OperationKind,
        progress::{CallCarrier, HostProgress, HostRest, HostWait, HostWork, SlotClaim, TransientTrouble},
        reason::WaitReason,
    },
};
use proto::host as wire;

use super::{
    call,
    value::{at, missing, owned, shared, time, time_or_none, word},
};

/// Reads progress.
///
/// # Errors
/// A word is unknown, or a call is incomplete; the error names the field.
pub fn from_wire(progress: &wire::HostProgress) -> Result<HostProgress, Invalid> {
    let attempts: Result<_, _> = progress.attempts.iter().map(attempt).collect();
    Ok(HostProgress {
        calls: progress.calls,
        work: progress.work.as_ref().map(work).transpose()?,
        registered: progress.registered.as_ref().map(call::registration).transpose()?,
        answered_at: time_or_none(progress.answered_at),
        firmware_changed_at: time_or_none(progress.firmware_changed_at),
        interrupted_at: time_or_none(progress.interrupted_at),
        trouble: progress.trouble.as_ref().map(trouble).transpose()?,
        rest: progress.rest.as_ref().map(rest).transpose()?,
        wait: progress.wait.as_ref().map(wait).transpose()?,
        slot: slot(progress),
        boots_without_slot: progress.boots_without_slot,
        network_secret: shared(progress.network_secret.as_ref()),
        data_image_failures: progress.data_image_failures,
        attempts: AttemptLog::of(attempts?),
    })
}

/// Returns progress for the wire.
pub fn to_wire(progress: &HostProgress) -> wire::HostProgress {
    let (slot, since) = match progress.slot {
        SlotClaim::Nothing => (wire::SlotClaim::Unspecified, None),
        SlotClaim::Waiting { since } => (wire::SlotClaim::Waiting, at(since)),
        SlotClaim::Aside { since } => (wire::SlotClaim::Aside, at(since)),
        SlotClaim::Held => (wire::SlotClaim::Held, None),
    };
    wire::HostProgress {
        calls: progress.calls,
        work: progress.work.as_ref().map(work_to_wire),
        registered: progress.registered.as_ref().map(call::registration_to_wire),
        answered_at: progress.answered_at.and_then(at),
        firmware_changed_at: progress.firmware_changed_at.and_then(at),
        interrupted_at: progress.interrupted_at.and_then(at),
        trouble: progress.trouble.as_ref().map(trouble_to_wire),
        rest: progress.rest.map(rest_to_wire),
        wait: progress.wait.map(wait_to_wire),
        slot: slot.into(),
        slot_since: since,
        boots_without_slot: progress.boots_without_slot,
        network_secret: owned(progress.network_secret.as_ref()),
        data_image_failures: progress.data_image_failures,
        attempts: progress.attempts.attempts().iter().map(attempt_to_wire).collect(),
    }
}

/// Reads a call with its number.
///
/// # Errors
/// As [`from_wire`].
pub fn work(work: &wire::HostWork) -> Result<HostWork, Invalid> {
    Ok(HostWork {
        number: work.number,
        call: call::from_wire(work.call.as_ref().ok_or_else(|| missing("progress.work.call"))?)?,
        since: time(work.since),
        carrier: carrier(work.carrier)?,
        parts: call::parts(work.parts.as_ref()),
        changed_by: work.changed_by,
        is_accepted: work.is_accepted,
    })
}

/// Reads the part that carries a call out. A part that a later release knows is not taken for one of these.
fn carrier(carrier: i32) -> Result<CallCarrier, Invalid> {
    match wire::CallCarrier::try_from(carrier) {
        Ok(wire::CallCarrier::Unspecified) => Ok(CallCarrier::HostProvisioner),
        Ok(wire::CallCarrier::PowerController) => Ok(CallCarrier::PowerController),
        Err(_) => Err(Invalid::new("progress.work.carrier", format!("{carrier} is unknown"))),
    }
}

/// Returns a call with its number for the wire.
pub fn work_to_wire(work: &HostWork) -> wire::HostWork {
    let carrier = match work.carrier {
        CallCarrier::HostProvisioner => wire::CallCarrier::Unspecified,
        CallCarrier::PowerController => wire::CallCarrier::PowerController,
    };
    wire::HostWork {
        number: work.number,
        call: Some(call::to_wire(&work.call)),
        since: at(work.since),
        parts: Some(call::parts_to_wire(work.parts)),
        changed_by: work.changed_by,
        is_accepted: work.is_accepted,
        carrier: carrier.into(),
    }
}

fn slot(progress: &wire::HostProgress) -> SlotClaim {
    let since = time(progress.slot_since);
    match progress.slot() {
        wire::SlotClaim::Unspecified => SlotClaim::Nothing,
        wire::SlotClaim::Waiting => SlotClaim::Waiting { since },
        wire::SlotClaim::Aside => SlotClaim::Aside { since },
        wire::SlotClaim::Held => SlotClaim::Held,
    }
}

fn reason(text: &str) -> Result<WaitReason, Invalid> {
    word("progress.reason", text, WaitReason::from_word)
}

fn trouble(trouble: &wire::TransientTrouble) -> Result<TransientTrouble, Invalid> {
    Ok(TransientTrouble {
        reason: reason(&trouble.reason)?,
        text: trouble.text.as_str().into(),
        number: trouble.number,
        at: time(trouble.at),
        attempts: trouble.attempts,
        retry_at: time(trouble.retry_at),
    })
}

fn trouble_to_wire(trouble: &TransientTrouble) -> wire::TransientTrouble {
    wire::TransientTrouble {
        reason: trouble.reason.word().to_owned(),
        text: trouble.text.to_string(),
        number: trouble.number,
        at: at(trouble.at),
        attempts: trouble.attempts,
        retry_at: at(trouble.retry_at),
    }
}

fn rest(rest: &wire::HostRest) -> Result<HostRest, Invalid> {
    Ok(HostRest { reason: reason(&rest.reason)?, until: time_or_none(rest.until), change: rest.change })
}

fn rest_to_wire(rest: HostRest) -> wire::HostRest {
    let until = rest.until.and_then(at);
    wire::HostRest { reason: rest.reason.word().to_owned(), until, change: rest.change }
}

fn wait(wait: &wire::HostWait) -> Result<HostWait, Invalid> {
    Ok(HostWait { reason: reason(&wait.reason)?, since: time(wait.since), until: time_or_none(wait.until) })
}

fn wait_to_wire(wait: HostWait) -> wire::HostWait {
    let until = wait.until.and_then(at);
    wire::HostWait { reason: wait.reason.word().to_owned(), since: at(wait.since), until }
}

fn attempt(attempt: &wire::AttemptRecord) -> Result<AttemptRecord, Invalid> {
    let ended_by = match attempt.ended_by() {
        wire::AttemptEnd::Unspecified => None,
        wire::AttemptEnd::Done => Some(AttemptEnd::Done),
        wire::AttemptEnd::Failed => Some(AttemptEnd::Failed),
        wire::AttemptEnd::NotRegistered => Some(AttemptEnd::NotRegistered),
        wire::AttemptEnd::Refused => Some(AttemptEnd::Refused),
        wire::AttemptEnd::Replaced => Some(AttemptEnd::Replaced),
    };
    Ok(AttemptRecord {
        operation: word("progress.attempts.operation", &attempt.operation, OperationKind::from_word)?,
        start: time(attempt.start),
        end: ended_by.map(|ended_by| (time(attempt.end), ended_by)),
    })
}

fn attempt_to_wire(attempt: &AttemptRecord) -> wire::AttemptRecord {
    let ended_by = match attempt.end {
        None => wire::AttemptEnd::Unspecified,
        Some((_, AttemptEnd::Done)) => wire::AttemptEnd::Done,
        Some((_, AttemptEnd::Failed)) => wire::AttemptEnd::Failed,
        Some((_, AttemptEnd::NotRegistered)) => wire::AttemptEnd::NotRegistered,
        Some((_, AttemptEnd::Refused)) => wire::AttemptEnd::Refused,
        Some((_, AttemptEnd::Replaced)) => wire::AttemptEnd::Replaced,
    };
    wire::AttemptRecord {
        operation: attempt.operation.word().to_owned(),
        start: at(attempt.start),
        end: attempt.end.and_then(|(end, _)| at(end)),
        ended_by: ended_by.into(),
    }
}
