//! Conversion of explanations of records to messages.

use chassis::mesh::time;
use domain::core::{
    explanation::{CausePeer, RecordCause, RecordExplanation, RecordReason},
    time::Timestamp,
};
use proto::insight as wire;

use super::{LONGEST_WORDS, class, evidence, next_step, outcome};

/// Words of the wire for the reasons `R` and the sources `S`.
type WireWords<R, S> = (fn(R) -> wire::CauseReason, fn(S) -> wire::EvidenceSource);

/// Converts an explanation that was made at `now` without the services `unanswered`.
pub(super) fn explanation<R: RecordReason, S: Copy>(
    explanation: &RecordExplanation<R, S>,
    (reason, source): WireWords<R, S>,
    unanswered: Vec<String>,
    now: Timestamp,
) -> wire::Explanation {
    let causes: Vec<_> = explanation.causes().map(|one| cause(explanation, one, reason)).collect();
    let head = causes.first().cloned().unwrap_or_default();
    wire::Explanation {
        subject: explanation.subject(),
        sentence: head.sentence,
        outcome: outcome(explanation.outcome()).into(),
        reason: head.reason,
        class: head.class,
        since: head.since,
        until: head.until,
        attempt: None,
        peer: head.peer,
        causes,
        evidence: explanation.evidence.iter().map(|item| evidence(item, source, now)).collect(),
        next_step: Some(next_step(explanation.next_step())),
        last_stage: wire::BootStage::Unspecified.into(),
        missing_stage: wire::BootStage::Unspecified.into(),
        unanswered,
        explained_at: Some(time::to_wire(now)),
    }
}

fn cause<R: RecordReason, S>(
    explanation: &RecordExplanation<R, S>,
    cause: &RecordCause<R>,
    reason: fn(R) -> wire::CauseReason,
) -> wire::Cause {
    let row = cause.reason.row();
    wire::Cause {
        reason: reason(cause.reason).into(),
        class: class(row.class).into(),
        sentence: explanation.sentence(cause),
        since: cause.since.map(time::to_wire),
        until: cause.until.map(time::to_wire),
        attempt: None,
        peer: peer(row.peer).into(),
        words: cause.words.chars().take(LONGEST_WORDS).collect(),
        members: Vec::new(),
        member_count: 0,
    }
}

fn peer(peer: Option<CausePeer>) -> wire::Peer {
    match peer {
        None => wire::Peer::Unspecified,
        Some(CausePeer::Backend) => wire::Peer::Backend,
        Some(CausePeer::Agent) => wire::Peer::Agent,
    }
}
