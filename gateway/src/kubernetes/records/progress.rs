//! Progress of hosts inside a state: an extension of the public contract, which clients of it ignore.

use proto::host::{
    AttemptEnd, AttemptRecord, HostProgress, HostRest, HostWait, HostWork, SlotClaim, TransientTrouble,
    driver_call::Operation,
};

use super::json::{ShownMembers, shown_time};

/// Returns the progress as JSON; none if there is nothing to show.
pub(super) fn shown(progress: HostProgress) -> Option<ShownMembers> {
    let slot = match progress.slot() {
        SlotClaim::Unspecified => None,
        SlotClaim::Waiting => Some("waiting"),
        SlotClaim::Aside => Some("aside"),
        SlotClaim::Held => Some("held"),
    };
    let shown = ShownMembers::default()
        .maybe("wait", progress.wait.map(shown_wait))
        .maybe("rest", progress.rest.map(shown_rest))
        .maybe("step", progress.work.map(shown_work))
        .maybe("trouble", progress.trouble.map(shown_trouble))
        .maybe("slot", slot)
        .maybe("slotSince", progress.slot_since.map(shown_time))
        .list("attempts", progress.attempts.into_iter().map(shown_attempt))
        .into_map();
    (!shown.is_empty()).then(|| {
        shown.into_iter().fold(ShownMembers::default(), |all, (name, value)| all.always(&name, value))
    })
}

fn shown_wait(wait: HostWait) -> ShownMembers {
    ShownMembers::default()
        .always("reason", wait.reason)
        .maybe("since", wait.since.map(shown_time))
        .maybe("until", wait.until.map(shown_time))
}

fn shown_rest(rest: HostRest) -> ShownMembers {
    ShownMembers::default().always("reason", rest.reason).maybe("until", rest.until.map(shown_time))
}

fn shown_work(work: HostWork) -> ShownMembers {
    let operation = work.call.and_then(|call| call.operation);
    ShownMembers::default()
        .maybe("operation", operation.as_ref().map(word))
        .always("number", work.number)
        .maybe("since", work.since.map(shown_time))
        .always("accepted", work.is_accepted)
}

fn word(operation: &Operation) -> &'static str {
    match operation {
        Operation::Register(_) => "register",
        Operation::Inspect(_) => "inspect",
        Operation::Prepare(_) => "prepare",
        Operation::Service(_) => "service",
        Operation::Provision(_) => "provision",
        Operation::Adopt(_) => "adopt",
        Operation::Deprovision(_) => "deprovision",
        Operation::PowerOn(_) => "powerOn",
        Operation::PowerOff(_) => "powerOff",
        Operation::Detach(_) => "detach",
        Operation::Delete(_) => "delete",
        Operation::AttachDataImage(_) => "attachDataImage",
        Operation::DetachDataImage(_) => "detachDataImage",
    }
}

fn shown_trouble(trouble: TransientTrouble) -> ShownMembers {
    ShownMembers::default()
        .always("reason", trouble.reason)
        .text("text", &trouble.text)
        .always("attempts", trouble.attempts)
        .maybe("at", trouble.at.map(shown_time))
        .maybe("retryAt", trouble.retry_at.map(shown_time))
}

fn shown_attempt(attempt: AttemptRecord) -> ShownMembers {
    let result = match attempt.ended_by() {
        AttemptEnd::Unspecified => None,
        AttemptEnd::Done => Some("done"),
        AttemptEnd::Failed => Some("failed"),
        AttemptEnd::NotRegistered => Some("notRegistered"),
        AttemptEnd::Refused => Some("refused"),
        AttemptEnd::Replaced => Some("replaced"),
    };
    ShownMembers::default()
        .always("operation", attempt.operation)
        .maybe("start", attempt.start.map(shown_time))
        .maybe("end", attempt.end.map(shown_time))
        .maybe("result", result)
}
