//! Explains a session by its members and the nodes that it leaves out.

use std::collections::BTreeMap;

use super::{CauseReason, EvidenceItem, EvidenceSource, ExplainedCause, Explanation, SiteTools, wording};
use crate::{
    boot::{
        component::PauseMark,
        session::{Progress, membership::LeftOutReason},
    },
    core::{
        explanation::{CauseOutcome, EvidenceVerdict},
        time::Timestamp,
    },
};

/// Most ids in a cause.
const MOST_MEMBERS: usize = 10;

/// Evidence about a session.
#[derive(Debug)]
pub struct SessionEvidence {
    /// Name of the session.
    pub name: String,
    /// Progress on record.
    pub progress: Progress,
    /// Pause of the session; `None`: it is not paused.
    pub pause: Option<PauseMark>,
    /// Standing of the rollout in words; empty: there is no rollout.
    pub rollout: String,
    /// Reason why the session waits; empty: it does not.
    pub waiting_for: String,
    /// Error of the session itself; empty: none.
    pub error: String,
    /// Begin of the wait or the error; `None`: there is none, or it is unknown.
    pub trouble_since: Option<Timestamp>,
    /// Time of the creation.
    pub started_at: Timestamp,
    /// Time of the end; `None`: it goes on, or an operator wrote another text.
    pub ended_at: Option<Timestamp>,
    /// Members, in any order.
    pub members: Vec<SessionMember>,
    /// Nodes, groups and roles that it leaves out; `None`: they were not read.
    pub left_out: Option<Vec<LeftOutNode>>,
    /// Tools that the next step may name.
    pub tools: SiteTools,
}

/// Member of a session.
#[derive(Debug, Clone)]
pub struct SessionMember {
    /// Id of the component.
    pub id: String,
    /// Outcome of its work.
    pub outcome: CauseOutcome,
    /// First cause.
    pub cause: ExplainedCause,
}

impl SessionMember {
    /// Returns a member with its explanation.
    pub fn of(id: String, explanation: Explanation) -> Self {
        let outcome = explanation.outcome;
        let cause = explanation.causes.into_iter().next();
        let cause = cause.unwrap_or_else(|| ExplainedCause::new(CauseReason::NotEnabled));
        Self { id, outcome, cause }
    }

    /// Returns a member that another session or an operator took.
    pub fn taken_over(id: String) -> Self {
        let cause = ExplainedCause::new(CauseReason::Superseded);
        Self { id, outcome: CauseReason::Superseded.outcome(), cause }
    }

    /// Returns a member whose component was deleted.
    pub fn deleted(id: String) -> Self {
        let cause = ExplainedCause::new(CauseReason::ComponentUnknown);
        Self { id, outcome: CauseReason::ComponentUnknown.outcome(), cause }
    }
}

/// Node, group or role that a session leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutNode {
    /// Id of the node, or name of the group or role.
    pub id: String,
    /// Reason; `None`: of another version.
    pub reason: Option<LeftOutReason>,
}

/// Explains a session.
pub fn explain_session(evidence: &SessionEvidence) -> Explanation {
    let groups = groups(&evidence.members);
    let head = head(evidence);
    // The next step of a session whose nodes are behind is that of the first of their causes. Nodes that it leaves out do
    // not hold it up.
    let left_out = left_out(evidence.left_out.as_deref().unwrap_or_default());
    let is_empty = head.reason == CauseReason::NothingToActOn;
    let candidates = if is_empty { &left_out } else { &groups };
    let behind = candidates.iter().find(|cause| is_to_act_on(cause.reason));
    let by_members = [CauseReason::SessionUnderWay, CauseReason::MembersFailed, CauseReason::NothingToActOn];
    let follows_members = by_members.contains(&head.reason);
    let next = behind.filter(|_| follows_members).unwrap_or(&head);
    let next_step = wording::next_step(next, &evidence.name, evidence.tools);
    Explanation {
        subject: evidence.name.clone(),
        outcome: head.reason.outcome(),
        evidence: items(evidence),
        causes: std::iter::once(head).chain(groups).chain(left_out).collect(),
        last_stage: None,
        missing_stage: None,
        next_step,
    }
}

fn is_to_act_on(reason: CauseReason) -> bool {
    match reason.outcome() {
        CauseOutcome::Failed | CauseOutcome::Held | CauseOutcome::Waiting | CauseOutcome::LeftOut => true,
        CauseOutcome::AsWanted | CauseOutcome::Progressing => false,
    }
}

fn head(evidence: &SessionEvidence) -> ExplainedCause {
    let of = ExplainedCause::new;
    let is_failed = |member: &&SessionMember| member.outcome == CauseOutcome::Failed;
    let ended_at = evidence.ended_at;
    if !evidence.error.is_empty() {
        let since = evidence.trouble_since.or(ended_at);
        return of(CauseReason::SessionFailed).since(since).saying(evidence.error.clone());
    }
    let mark = evidence.pause.as_ref();
    if let Some(mark) = mark.filter(|_| evidence.progress != Progress::Complete) {
        let words = with_rollout(mark.text("it"), &evidence.rollout);
        let paused = of(CauseReason::SessionPaused).since(Some(mark.since)).saying(words);
        return ExplainedCause { session: evidence.name.as_str().into(), ..paused };
    }
    match evidence.progress {
        Progress::Pending | Progress::Running if !evidence.waiting_for.is_empty() => {
            let waiting = of(CauseReason::UpstreamUnavailable).since(evidence.trouble_since);
            waiting.saying(evidence.waiting_for.clone())
        }
        Progress::Pending => of(CauseReason::SessionSetupDue),
        Progress::Running => {
            let underway = of(CauseReason::SessionUnderWay).since(Some(evidence.started_at));
            underway.saying(with_rollout(counts(&evidence.members), &evidence.rollout))
        }
        Progress::Complete if evidence.members.is_empty() => of(CauseReason::NothingToActOn).since(ended_at),
        Progress::Complete if evidence.members.iter().any(|one| is_failed(&one)) => {
            of(CauseReason::MembersFailed).since(ended_at).saying(counts(&evidence.members))
        }
        Progress::Complete if evidence.members.iter().all(is_taken) => {
            of(CauseReason::SessionSuperseded).since(ended_at)
        }
        Progress::Complete => of(CauseReason::SessionAsWanted).since(ended_at),
    }
}

fn with_rollout(words: String, rollout: &str) -> String {
    if rollout.is_empty() { words } else { format!("{words}; {rollout}") }
}

fn is_taken(member: &SessionMember) -> bool {
    member.cause.reason == CauseReason::Superseded
}

/// Returns the members by outcome, such as `93 of 96 as wanted, 2 failed, 1 held`.
fn counts(members: &[SessionMember]) -> String {
    let of = |outcome| members.iter().filter(|member| member.outcome == outcome).count();
    let mut text = format!("{} of {} nodes as wanted", of(CauseOutcome::AsWanted), members.len());
    for (outcome, word) in [
        (CauseOutcome::Failed, "failed"),
        (CauseOutcome::Held, "held"),
        (CauseOutcome::Waiting, "waiting"),
        (CauseOutcome::Progressing, "under way"),
        (CauseOutcome::LeftOut, "deleted"),
    ] {
        let count = of(outcome);
        if count > 0 {
            text.push_str(&format!(", {count} {word}"));
        }
    }
    text
}

/// Returns the causes of members that are not as wanted, the worst and then the most frequent first. Members with one
/// cause are told once.
fn groups(members: &[SessionMember]) -> Vec<ExplainedCause> {
    let mut groups: BTreeMap<CauseReason, (CauseOutcome, ExplainedCause)> = BTreeMap::new();
    for member in members.iter().filter(|member| member.outcome != CauseOutcome::AsWanted) {
        let outcome = member.outcome;
        let group = groups.entry(member.cause.reason).or_insert_with(|| (outcome, member.cause.clone()));
        group.0 = group.0.max(outcome);
        add(&mut group.1, &member.id, member.cause.since);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|(outcome, cause)| std::cmp::Reverse((*outcome, cause.member_count)));
    groups.into_iter().map(|(_, cause)| cause).collect()
}

fn add(cause: &mut ExplainedCause, id: &str, since: Option<Timestamp>) {
    cause.member_count += 1;
    cause.since = cause.since.into_iter().chain(since).min();
    if cause.members.len() < MOST_MEMBERS {
        cause.members.push(id.to_owned());
    }
}

fn left_out(nodes: &[LeftOutNode]) -> Vec<ExplainedCause> {
    let mut groups: BTreeMap<CauseReason, ExplainedCause> = BTreeMap::new();
    for node in nodes {
        let Some(reason) = node.reason.map(left_out_reason) else { continue };
        add(groups.entry(reason).or_insert_with(|| ExplainedCause::new(reason)), &node.id, None);
    }
    groups.into_values().collect()
}

fn left_out_reason(reason: LeftOutReason) -> CauseReason {
    match reason {
        LeftOutReason::NotInLimit | LeftOutReason::InLaterBootSet => CauseReason::NotSelected,
        LeftOutReason::Locked => CauseReason::NodeLocked,
        LeftOutReason::ForeignTenant => CauseReason::ForeignTenant,
        LeftOutReason::UnknownToInventory => CauseReason::UnknownToInventory,
        LeftOutReason::WrongArchitecture => CauseReason::ArchitectureMismatch,
        LeftOutReason::Disabled => CauseReason::DisabledInInventory,
        LeftOutReason::UnknownGroup | LeftOutReason::UnknownRole => CauseReason::GroupUnknown,
        LeftOutReason::NotAComponent => CauseReason::ComponentUnknown,
    }
}

fn items(evidence: &SessionEvidence) -> Vec<EvidenceItem> {
    let content = format!("{}, {} members", evidence.progress.word(), evidence.members.len());
    let source = EvidenceSource::Session;
    let record = EvidenceItem::new(source, EvidenceVerdict::Present, content);
    let left_out = match &evidence.left_out {
        None => {
            EvidenceItem::new(source, EvidenceVerdict::Unknown, "the nodes that it leaves out were not read")
        }
        Some(nodes) => {
            EvidenceItem::new(source, EvidenceVerdict::Present, format!("{} left out", nodes.len()))
        }
    };
    vec![record.at(Some(evidence.started_at)), left_out]
}
