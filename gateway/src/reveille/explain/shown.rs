//! Explanations as the answer shows them.

use proto::insight::{
    self as wire, BootStage, CauseClass, CauseOutcome, CauseReason, EvidenceSource, EvidenceVerdict, Peer,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::reveille::{instant, word::EnumWord};

/// Answer to the question why a node, session, host or device is as it is.
#[derive(Serialize, JsonSchema)]
pub(super) struct ShownExplanation {
    /// Id of the component, name of the session or device, or namespace and name of the host.
    subject: String,
    /// Sentence about the first cause.
    sentence: String,
    /// Outcome so far.
    outcome: EnumWord<CauseOutcome>,
    /// First cause, by which programs decide.
    reason: EnumWord<CauseReason>,
    /// Kind of people or systems that the first cause is a matter of.
    class: EnumWord<CauseClass>,
    /// Time at which the first cause became true.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    /// Time at which the first cause ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// Attempt that the first cause is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<ShownAttempt>,
    /// Peer that the first cause is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<EnumWord<Peer>>,
    /// Single next step.
    next_step: ShownStep,
    /// Causes, the first to act on in front.
    causes: Vec<ShownCause>,
    /// Evidence that was examined, also where it is missing.
    evidence: Vec<ShownEvidence>,
    /// Last stage of the boot with proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_stage: Option<EnumWord<BootStage>>,
    /// First stage of the boot without proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_stage: Option<EnumWord<BootStage>>,
    /// Services that did not answer, so that their evidence is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unanswered: Vec<String>,
    /// Time of the explanation.
    explained_at: String,
}

/// Cause that makes a node, session, host or device as it is.
#[derive(Serialize, JsonSchema)]
struct ShownCause {
    /// Reason, by which programs decide.
    reason: EnumWord<CauseReason>,
    /// Kind of people or systems that it is a matter of.
    class: EnumWord<CauseClass>,
    /// Sentence for people.
    sentence: String,
    /// Time at which it became true.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    /// Time at which it ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// Attempt that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<ShownAttempt>,
    /// Peer that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<EnumWord<Peer>>,
    /// Words of the peer.
    #[serde(skip_serializing_if = "String::is_empty")]
    words: String,
    /// First ids of nodes, groups or roles with this cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<String>,
    /// Number of these; 0: the subject alone.
    member_count: u32,
}

/// Number of an attempt at a power action.
#[derive(Serialize, JsonSchema)]
struct ShownAttempt {
    /// Counted from 1.
    number: u32,
    /// Most attempts of the action; 0: unknown.
    most: u32,
}

/// Piece of evidence.
#[derive(Serialize, JsonSchema)]
struct ShownEvidence {
    /// Origin of the evidence.
    source: EnumWord<EvidenceSource>,
    /// Meaning of the content.
    verdict: EnumWord<EvidenceVerdict>,
    /// Content, for people.
    content: String,
    /// Time to which the content belongs.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_at: Option<String>,
    /// Age at the time of the explanation, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_seconds: Option<i64>,
}

/// Next step of an operator.
#[derive(Serialize, JsonSchema)]
struct ShownStep {
    /// Text for people.
    text: String,
    /// Command to type in a shell, of `reveille` or of the tools of the site.
    #[serde(skip_serializing_if = "String::is_empty")]
    command: String,
}

impl From<wire::Explanation> for ShownExplanation {
    fn from(explanation: wire::Explanation) -> Self {
        let step = explanation.next_step.unwrap_or_default();
        Self {
            subject: explanation.subject,
            sentence: explanation.sentence,
            outcome: EnumWord::of(explanation.outcome),
            reason: EnumWord::of(explanation.reason),
            class: EnumWord::of(explanation.class),
            since: explanation.since.map(instant::text),
            until: explanation.until.map(instant::text),
            attempt: explanation.attempt.map(ShownAttempt::from),
            peer: EnumWord::set(explanation.peer),
            next_step: ShownStep { text: step.text, command: step.command },
            causes: explanation.causes.into_iter().map(ShownCause::from).collect(),
            evidence: explanation.evidence.into_iter().map(ShownEvidence::from).collect(),
            last_stage: EnumWord::set(explanation.last_stage),
            missing_stage: EnumWord::set(explanation.missing_stage),
            unanswered: explanation.unanswered,
            explained_at: instant::text(explanation.explained_at.unwrap_or_default()),
        }
    }
}

impl From<wire::Cause> for ShownCause {
    fn from(cause: wire::Cause) -> Self {
        Self {
            reason: EnumWord::of(cause.reason),
            class: EnumWord::of(cause.class),
            sentence: cause.sentence,
            since: cause.since.map(instant::text),
            until: cause.until.map(instant::text),
            attempt: cause.attempt.map(ShownAttempt::from),
            peer: EnumWord::set(cause.peer),
            words: cause.words,
            members: cause.members,
            member_count: cause.member_count,
        }
    }
}

impl From<wire::Attempt> for ShownAttempt {
    fn from(attempt: wire::Attempt) -> Self {
        Self { number: attempt.number, most: attempt.most }
    }
}

impl From<wire::Evidence> for ShownEvidence {
    fn from(evidence: wire::Evidence) -> Self {
        Self {
            source: EnumWord::of(evidence.source),
            verdict: EnumWord::of(evidence.verdict),
            content: evidence.content,
            observed_at: evidence.observed_at.map(instant::text),
            age_seconds: evidence.age.map(|age| age.seconds),
        }
    }
}
