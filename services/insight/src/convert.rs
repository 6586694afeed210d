//! Conversion between messages and domain types: evidence in, explanations out.

pub(crate) mod device;
pub(crate) mod host;
mod record;

use chassis::{kinds::power::transition_from_wire, mesh::time};
use domain::{
    boot::{
        component::PauseMark,
        explanation::{
            BatchNumber, BatchSight, BootStage, CauseReason, ConfigurationSight, EvidenceSource,
            ExplainedCause, Explanation, HistoryChange, HistoryEvent, HolderClient, HolderSight, LeftOutNode,
            Peer, PowerSight, ScriptEvidence, ScriptRequests, SessionEvidence, SessionMember, SiteTools,
            StoredEvent, TransitionResult,
        },
        power::PowerReading,
        session::{Progress, membership::LeftOutReason},
    },
    core::{
        bos_time,
        explanation::{CauseClass, CauseOutcome, EvidenceItem, EvidenceVerdict, NextStep},
        time::Timestamp,
    },
};
use proto::{
    boot::ListScriptRequestsResponse,
    configuration::{ConfigurationReading, ConfigurationState},
    event, insight as wire,
    power::{self, PowerState},
    session,
};

/// Longest words of a peer in an answer, in characters.
const LONGEST_WORDS: usize = 400;

/// Reads a power reading of a component of `generation`, whose author is connected or not.
pub(crate) fn power_sight(state: &PowerState, generation: u64, is_connected: bool) -> PowerSight {
    let reading = match state.reading() {
        power::PowerReading::Unspecified => PowerReading::Unknown,
        power::PowerReading::On => PowerReading::On,
        power::PowerReading::Off => PowerReading::Off,
        power::PowerReading::Undefined => PowerReading::Undefined,
        power::PowerReading::Missing => PowerReading::Missing,
    };
    PowerSight {
        reading,
        observed_at: state.observed_at.map(time::from_wire),
        is_current: is_connected && state.generation == generation,
    }
}

/// Reads a configuration reading of a component of `generation`, whose author is connected or not.
pub(crate) fn configuration_sight(
    state: &ConfigurationState,
    generation: u64,
    is_connected: bool,
) -> ConfigurationSight {
    let is_read = state.reading() != ConfigurationReading::Unspecified;
    ConfigurationSight {
        is_missing: state.reading() == ConfigurationReading::Missing,
        desired: state.desired_configuration.clone(),
        status: state.status.clone(),
        observed_at: state.observed_at.map(time::from_wire),
        is_current: is_connected && is_read && state.generation == generation,
    }
}

/// Reads an event with its component; `None`: it explains no boot.
pub(crate) fn history_event(event: &event::Event) -> Option<(String, HistoryEvent)> {
    let body = event.body.as_ref()?;
    let detail = |name: &str| {
        let found = body.details.iter().find(|detail| detail.name == name);
        found.map(|detail| detail.value.as_str()).unwrap_or_default()
    };
    let change = HistoryChange::read(StoredEvent {
        kind: &body.kind,
        reason: &body.reason,
        text: &body.text,
        attempt: detail("attempt"),
        session: detail("session"),
    })?;
    Some((event.key.clone(), HistoryEvent { at: event.time.map(time::from_wire)?, change }))
}

/// Reads the result of a transition on the node `id`; `None`: it is no member, or another client requested it.
pub(crate) fn transition(transition: power::Transition, id: &str) -> Option<TransitionResult> {
    let transition = transition_from_wire(transition);
    let member = transition.members.into_iter().find(|member| member.id == id && member.attempt > 0)?;
    let words = match member.error.is_empty() {
        false => member.error.into(),
        true => transition.trouble.map(|trouble| trouble.text().clone()).unwrap_or_default(),
    };
    Some(TransitionResult {
        action: transition.action,
        attempt: member.attempt,
        created_at: transition.created_at,
        delivery: transition.delivery,
        outcome: member.outcome,
        words,
    })
}

/// Reads the transition that holds a node.
pub(crate) fn holder(transition: power::Transition) -> HolderSight {
    let transition = transition_from_wire(transition);
    let client = match transition.withdrawn_at {
        _ if transition.abandoned_at.is_some() => HolderClient::GivenUp,
        _ if transition.is_of_another() => HolderClient::Another,
        withdrawn_at => HolderClient::Own { withdrawn_at },
    };
    let ids = [transition.upstream_id, transition.id];
    let id = ids.into_iter().find(|id| !id.is_empty()).unwrap_or_default();
    HolderSight { id: id.into(), created_at: transition.created_at, client }
}

/// Reads the requests of the node `id` for its boot script.
pub(crate) fn script(answer: &ListScriptRequestsResponse, id: &str) -> ScriptEvidence {
    if !answer.served_here {
        return ScriptEvidence::NotOffered;
    }
    let own = answer.requests.iter().find(|one| one.component_id == id);
    let Some(own) = own else { return ScriptEvidence::Unknown };
    let Some(prepared_at) = own.prepared_at else { return ScriptEvidence::Unknown };
    let requests = own.first_at.zip(own.last_at).map(|(first_at, last_at)| ScriptRequests {
        first_at: time::from_wire(first_at),
        last_at: time::from_wire(last_at),
        count: own.count,
    });
    ScriptEvidence::Known { recorded_since: time::from_wire(prepared_at), requests }
}

/// Reads a node that a session leaves out.
pub(crate) fn left_out(member: session::LeftOutMember) -> LeftOutNode {
    let reason = match member.reason() {
        session::LeftOutReason::Unspecified => None,
        session::LeftOutReason::NotInLimit => Some(LeftOutReason::NotInLimit),
        session::LeftOutReason::Locked => Some(LeftOutReason::Locked),
        session::LeftOutReason::ForeignTenant => Some(LeftOutReason::ForeignTenant),
        session::LeftOutReason::UnknownToInventory => Some(LeftOutReason::UnknownToInventory),
        session::LeftOutReason::WrongArchitecture => Some(LeftOutReason::WrongArchitecture),
        session::LeftOutReason::Disabled => Some(LeftOutReason::Disabled),
        session::LeftOutReason::NotAComponent => Some(LeftOutReason::NotAComponent),
        session::LeftOutReason::UnknownGroup => Some(LeftOutReason::UnknownGroup),
        session::LeftOutReason::UnknownRole => Some(LeftOutReason::UnknownRole),
        session::LeftOutReason::InLaterBootSet => Some(LeftOutReason::InLaterBootSet),
    };
    LeftOutNode { id: member.id, reason }
}

/// Finds the batch of a node in the rollout of its session; `None`: the node is in none.
pub(crate) fn batch(session: &session::Session, rollout: String, id: &str) -> Option<BatchSight> {
    let batches = &session.rollout.as_ref()?.batches;
    let has = |batch: &session::RolloutBatch| batch.components.iter().any(|member| member == id);
    let number = batches.iter().position(has)? + 1;
    Some(BatchSight { batch: BatchNumber { number, of: batches.len() }, rollout })
}

/// Joins the evidence about a session.
pub(crate) fn session_evidence(
    session: session::Session,
    rollout: String,
    members: Vec<SessionMember>,
    left_out: Option<Vec<LeftOutNode>>,
    tools: SiteTools,
) -> SessionEvidence {
    let progress = match session.progress() {
        session::Progress::Unspecified | session::Progress::Pending => Progress::Pending,
        session::Progress::Running => Progress::Running,
        session::Progress::Complete => Progress::Complete,
    };
    let pause = session.pause.map(|pause| {
        let since = pause.since.map(time::from_wire).unwrap_or_default();
        PauseMark::by(pause.by, since)
    });
    SessionEvidence {
        progress,
        pause,
        rollout,
        trouble_since: session.trouble_begin.and_then(|begin| begin.since).map(time::from_wire),
        started_at: session.created_at.map(time::from_wire).unwrap_or_default(),
        ended_at: session.end_time.as_deref().and_then(bos_time::read),
        name: session.name,
        waiting_for: session.waiting_for,
        error: session.error.unwrap_or_default(),
        members,
        left_out,
        tools,
    }
}

/// Converts an explanation that was made at `now` without the services `unanswered`.
pub(crate) fn explanation(
    explanation: &Explanation,
    unanswered: Vec<String>,
    now: Timestamp,
) -> wire::Explanation {
    let causes: Vec<_> = explanation.causes.iter().map(|one| cause(explanation, one)).collect();
    let head = causes.first().cloned().unwrap_or_default();
    wire::Explanation {
        subject: explanation.subject.clone(),
        sentence: head.sentence,
        outcome: outcome(explanation.outcome).into(),
        reason: head.reason,
        class: head.class,
        since: head.since,
        until: head.until,
        attempt: head.attempt,
        peer: head.peer,
        causes,
        evidence: explanation.evidence.iter().map(|item| evidence(item, source, now)).collect(),
        next_step: Some(next_step(explanation.next_step.clone())),
        last_stage: stage(explanation.last_stage).into(),
        missing_stage: stage(explanation.missing_stage).into(),
        unanswered,
        explained_at: Some(time::to_wire(now)),
    }
}

fn cause(explanation: &Explanation, cause: &ExplainedCause) -> wire::Cause {
    wire::Cause {
        reason: reason(cause.reason).into(),
        class: class(cause.reason.class()).into(),
        sentence: explanation.sentence(cause),
        since: cause.since.map(time::to_wire),
        until: cause.until.map(time::to_wire),
        attempt: cause.attempt.map(|one| wire::Attempt { number: one.number, most: one.most }),
        peer: peer(cause.peer).into(),
        words: cause.words.chars().take(LONGEST_WORDS).collect(),
        members: cause.members.clone(),
        member_count: cause.member_count,
    }
}

fn next_step(NextStep { text, command }: NextStep) -> wire::NextStep {
    wire::NextStep { text, command }
}

fn evidence<S: Copy>(
    item: &EvidenceItem<S>,
    source: fn(S) -> wire::EvidenceSource,
    now: Timestamp,
) -> wire::Evidence {
    let age = item.observed_at.and_then(|at| prost_types::Duration::try_from(now.since(at)).ok());
    wire::Evidence {
        source: source(item.source).into(),
        content: item.content.clone(),
        observed_at: item.observed_at.map(time::to_wire),
        age,
        verdict: verdict(item.verdict).into(),
    }
}

fn peer(peer: Option<Peer>) -> wire::Peer {
    match peer {
        None => wire::Peer::Unspecified,
        Some(Peer::Inventory) => wire::Peer::Inventory,
        Some(Peer::Power) => wire::Peer::Power,
        Some(Peer::Preparation) => wire::Peer::Preparation,
        Some(Peer::Configuration) => wire::Peer::Configuration,
    }
}

fn stage(stage: Option<BootStage>) -> wire::BootStage {
    match stage {
        None => wire::BootStage::Unspecified,
        Some(BootStage::Prepared) => wire::BootStage::Prepared,
        Some(BootStage::PowerAccepted) => wire::BootStage::PowerAccepted,
        Some(BootStage::PowerOn) => wire::BootStage::PowerOn,
        Some(BootStage::ScriptRequested) => wire::BootStage::ScriptRequested,
        Some(BootStage::Reported) => wire::BootStage::Reported,
        Some(BootStage::Configured) => wire::BootStage::Configured,
    }
}

fn outcome(outcome: CauseOutcome) -> wire::CauseOutcome {
    match outcome {
        CauseOutcome::AsWanted => wire::CauseOutcome::AsWanted,
        CauseOutcome::Progressing => wire::CauseOutcome::Progressing,
        CauseOutcome::LeftOut => wire::CauseOutcome::LeftOut,
        CauseOutcome::Waiting => wire::CauseOutcome::Waiting,
        CauseOutcome::Held => wire::CauseOutcome::Held,
        CauseOutcome::Failed => wire::CauseOutcome::Failed,
    }
}

fn class(class: CauseClass) -> wire::CauseClass {
    match class {
        CauseClass::Waiting => wire::CauseClass::Waiting,
        CauseClass::Operator => wire::CauseClass::Operator,
        CauseClass::Tenant => wire::CauseClass::Tenant,
        CauseClass::Upstream => wire::CauseClass::Upstream,
        CauseClass::Hardware => wire::CauseClass::Hardware,
        CauseClass::Network => wire::CauseClass::Network,
        CauseClass::BootService => wire::CauseClass::BootService,
        CauseClass::Image => wire::CauseClass::Image,
        CauseClass::Configuration => wire::CauseClass::Configuration,
        CauseClass::Capacity => wire::CauseClass::Capacity,
    }
}

fn source(source: EvidenceSource) -> wire::EvidenceSource {
    match source {
        EvidenceSource::Record => wire::EvidenceSource::Record,
        EvidenceSource::Decision => wire::EvidenceSource::Decision,
        EvidenceSource::Inventory => wire::EvidenceSource::Inventory,
        EvidenceSource::PowerReading => wire::EvidenceSource::PowerReading,
        EvidenceSource::ConfigurationReading => wire::EvidenceSource::ConfigurationReading,
        EvidenceSource::Preparation => wire::EvidenceSource::Preparation,
        EvidenceSource::Transition => wire::EvidenceSource::Transition,
        EvidenceSource::BootScript => wire::EvidenceSource::BootScript,
        EvidenceSource::Report => wire::EvidenceSource::Report,
        EvidenceSource::Event => wire::EvidenceSource::Event,
        EvidenceSource::Session => wire::EvidenceSource::Session,
    }
}

fn verdict(verdict: EvidenceVerdict) -> wire::EvidenceVerdict {
    match verdict {
        EvidenceVerdict::Present => wire::EvidenceVerdict::Present,
        EvidenceVerdict::Absent => wire::EvidenceVerdict::Absent,
        EvidenceVerdict::Unknown => wire::EvidenceVerdict::Unknown,
        EvidenceVerdict::NotOffered => wire::EvidenceVerdict::NotOffered,
    }
}

fn reason(reason: CauseReason) -> wire::CauseReason {
    match reason {
        CauseReason::AsWanted => wire::CauseReason::AsWanted,
        CauseReason::PowerReadingAwaited => wire::CauseReason::PowerReadingAwaited,
        CauseReason::PowerActionDue => wire::CauseReason::PowerActionDue,
        CauseReason::PowerOnAwaited => wire::CauseReason::PowerOnAwaited,
        CauseReason::PowerOffAwaited => wire::CauseReason::PowerOffAwaited,
        CauseReason::BootAwaited => wire::CauseReason::BootAwaited,
        CauseReason::BootScriptAwaited => wire::CauseReason::BootScriptAwaited,
        CauseReason::BootReportAwaited => wire::CauseReason::BootReportAwaited,
        CauseReason::ConfigurationReadingAwaited => wire::CauseReason::ConfigurationReadingAwaited,
        CauseReason::ConfigurationPending => wire::CauseReason::ConfigurationPending,
        CauseReason::StageWaiting => wire::CauseReason::StageWaiting,
        CauseReason::NotEnabled => wire::CauseReason::NotEnabled,
        CauseReason::NothingWanted => wire::CauseReason::NothingWanted,
        CauseReason::NodeLocked => wire::CauseReason::NodeLocked,
        CauseReason::PowerContested => wire::CauseReason::PowerContested,
        CauseReason::PowerChangedOutside => wire::CauseReason::PowerChangedOutside,
        CauseReason::UnknownToInventory => wire::CauseReason::UnknownToInventory,
        CauseReason::DisabledInInventory => wire::CauseReason::DisabledInInventory,
        CauseReason::ComponentUnknown => wire::CauseReason::ComponentUnknown,
        CauseReason::GroupUnknown => wire::CauseReason::GroupUnknown,
        CauseReason::NotSelected => wire::CauseReason::NotSelected,
        CauseReason::ForeignTenant => wire::CauseReason::ForeignTenant,
        CauseReason::ArchitectureMismatch => wire::CauseReason::ArchitectureMismatch,
        CauseReason::UpstreamUnavailable => wire::CauseReason::UpstreamUnavailable,
        CauseReason::TransitionAwaited => wire::CauseReason::TransitionAwaited,
        CauseReason::TransitionOverdue => wire::CauseReason::TransitionOverdue,
        CauseReason::ReservationKept => wire::CauseReason::ReservationKept,
        CauseReason::PowerStateUnknown => wire::CauseReason::PowerStateUnknown,
        CauseReason::PowerStateMismatch => wire::CauseReason::PowerStateMismatch,
        CauseReason::UnknownToPower => wire::CauseReason::UnknownToPower,
        CauseReason::UnknownToConfiguration => wire::CauseReason::UnknownToConfiguration,
        CauseReason::PowerOnRefused => wire::CauseReason::PowerOnRefused,
        CauseReason::PowerOnTimedOut => wire::CauseReason::PowerOnTimedOut,
        CauseReason::PowerOffRefused => wire::CauseReason::PowerOffRefused,
        CauseReason::PowerOffTimedOut => wire::CauseReason::PowerOffTimedOut,
        CauseReason::BootDataRefused => wire::CauseReason::BootDataRefused,
        CauseReason::BootScriptNotRequested => wire::CauseReason::BootScriptNotRequested,
        CauseReason::ArtifactFetchFailing => wire::CauseReason::ArtifactFetchFailing,
        CauseReason::ReportMissing => wire::CauseReason::ReportMissing,
        CauseReason::BootUnreported => wire::CauseReason::BootUnreported,
        CauseReason::OtherBootReported => wire::CauseReason::OtherBootReported,
        CauseReason::EarlierBootReported => wire::CauseReason::EarlierBootReported,
        CauseReason::RetriesExhausted => wire::CauseReason::RetriesExhausted,
        CauseReason::ConfigurationNotStarted => wire::CauseReason::ConfigurationNotStarted,
        CauseReason::ConfigurationRefused => wire::CauseReason::ConfigurationRefused,
        CauseReason::ConfigurationFailed => wire::CauseReason::ConfigurationFailed,
        CauseReason::ConfigurationUnknown => wire::CauseReason::ConfigurationUnknown,
        CauseReason::SessionSetupDue => wire::CauseReason::SessionSetupDue,
        CauseReason::SessionUnderWay => wire::CauseReason::SessionUnderWay,
        CauseReason::SessionFailed => wire::CauseReason::SessionFailed,
        CauseReason::NothingToActOn => wire::CauseReason::NothingToActOn,
        CauseReason::MembersFailed => wire::CauseReason::MembersFailed,
        CauseReason::SessionAsWanted => wire::CauseReason::SessionAsWanted,
        CauseReason::SessionSuperseded => wire::CauseReason::SessionSuperseded,
        CauseReason::Superseded => wire::CauseReason::Superseded,
        CauseReason::SessionPaused => wire::CauseReason::SessionPaused,
        CauseReason::BatchAwaited => wire::CauseReason::BatchAwaited,
    }
}
