//! The events that the engine is told of, and the commands that it gives.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use domain::{
    boot::{component::Action, power::transition::PowerTransition},
    core::{clock_offset::ClockOffset, id::ComponentId, time::Timestamp},
};
use proto::component::ActionReport;

use super::{
    deliver::AttemptAnnouncement,
    results::{PolledTransition, ShownPower},
};
use crate::{
    driver::{
        DriverFailure, ForeignAnswer, FoundTransitions, UpstreamSearch, UpstreamTransition,
        progress::TransitionProgress,
    },
    journal::JournalChanges,
};

/// Id of a transition of this service.
pub(crate) type TransitionId = Arc<str>;

/// Occurrence that may need commands.
#[derive(Debug)]
pub(crate) enum EngineEvent {
    /// The engine begins its term with the recorded transitions.
    TookOver {
        /// Whether another replica held the role before, and may still be calling the upstream.
        follows_another: bool,
        /// Whether the components are as the registry has them; otherwise they may lack counted attempts.
        is_told: bool,
        /// Whether the database has lost transitions just now, so that calls which are not on record may still arrive at
        /// the upstream.
        is_after_loss: bool,
    },
    /// The upstream was asked for its transitions that are not on record.
    ForeignFound(Result<ForeignAnswer, DriverFailure>),
    /// The upstream was asked for them in a call that began at `asked_at` or later, before these transitions are sent.
    Looked { ids: Vec<TransitionId>, asked_at: Instant, outcome: Result<(), DriverFailure> },
    /// Components may need an action.
    Changed(Vec<ComponentId>),
    /// `begun` of the `wanted` transitions are on record.
    Begun { wanted: Vec<PowerTransition>, begun: Vec<PowerTransition> },
    /// Transitions without an answer of the upstream on record can go a step further.
    Due(Vec<TransitionId>),
    /// The registry has counted the attempts, but for components that have moved on.
    Announced { announcement: AttemptAnnouncement, stale: HashSet<String> },
    /// The upstream answered a call.
    Started { id: TransitionId, answer: Result<String, DriverFailure> },
    /// The upstream was searched for transitions in doubt. `finished`: ended transitions of ours that it named.
    Searched {
        ids: Vec<TransitionId>,
        asked_at: Instant,
        answer: Result<FoundTransitions, DriverFailure>,
        finished: Vec<Arc<PowerTransition>>,
    },
    /// The upstream was asked which transitions hold nodes. `abandoned`: upstream ids of transitions that an operator
    /// has abandoned.
    HoldersFound {
        search: HolderSearch,
        answer: Result<Vec<UpstreamTransition>, DriverFailure>,
        abandoned: HashSet<String>,
    },
    /// The known holders of members were polled. `ended`: upstream ids of those that are not waited for any more.
    HoldersPolled { id: TransitionId, ended: HashSet<String> },
    /// The call that the upstream took is on record, and its members show no error of before.
    Followed(TransitionId),
    /// A transition that the upstream works on is due for a poll.
    PollDue(TransitionId),
    /// The upstream was asked to end a transition early.
    Withdrawn { id: TransitionId, answer: Result<(), DriverFailure> },
    /// The upstream answered a poll.
    Polled(PollAnswer),
    /// Answers to polls that are processed together.
    Heard(Vec<PollAnswer>),
    /// The results of polls are on record, so these transitions may be polled again.
    PollsRecorded(Vec<TransitionId>),
    /// An operator abandoned the transition, which has these marks now: one on record, or one of another client.
    Abandoned(Arc<PowerTransition>),
}

/// Answer of the upstream to a poll.
#[derive(Debug)]
pub(crate) struct PollAnswer {
    pub(crate) id: TransitionId,
    /// Beginning of the call, by both clocks.
    pub(crate) began: Instant,
    pub(crate) asked_at: Timestamp,
    /// Offset of the clock of the upstream; `None`: unknown.
    pub(crate) clock: Option<ClockOffset>,
    pub(crate) answer: Result<TransitionProgress, DriverFailure>,
}

/// Search for the transitions of the upstream that hold nodes.
#[derive(Debug)]
pub(crate) struct HolderSearch {
    pub(crate) nodes: HashSet<String>,
    pub(crate) purpose: HolderPurpose,
}

/// Reason to search for holders.
#[derive(Debug)]
pub(crate) enum HolderPurpose {
    /// A transition ends for this reason once the upstream holds none of its nodes.
    End { id: TransitionId, error: String },
    /// The upstream could not reserve nodes of these transitions.
    Learn(Vec<PolledTransition>),
}

/// Command to the runtime. Commands of one event are carried out in order, and each only once the one before is done;
/// an [upstream call](UpstreamCall) is made beside the commands after it. After a write that the end of the term
/// prevented, no further command is carried out.
#[derive(Debug)]
pub(crate) enum EngineCommand {
    /// Records transitions that begin, without members in another open transition, and answers with `Begun`.
    Begin(Vec<PowerTransition>),
    /// Reports to the registry that attempts begin, and answers with `Announced`.
    Announce { reports: Vec<ActionReport>, announcement: AttemptAnnouncement },
    /// Reports to the registry until it has answered.
    Report(Vec<ActionReport>),
    /// Writes to the journal until the changes are on record.
    Write(JournalChanges),
    /// Calls the upstream.
    Ask(UpstreamCall),
    /// Feeds back that the commands before are done.
    Tell(EngineEvent),
    /// Queues transitions for their next step.
    Step { ids: Vec<TransitionId>, pause: StepPause },
    /// Queues transitions to be polled at this time, or after the random time that follows so many failures in a row,
    /// whichever is later.
    Poll { ids: Vec<TransitionId>, at: Instant, failures: u32 },
    /// Keeps an answer to a poll until others have arrived.
    Collect(PollAnswer),
    /// Queues components for a decision after this time; zero: now.
    Decide { ids: Vec<ComponentId>, pause: Duration },
    /// Takes components out of the queue for decisions.
    Rest(Vec<ComponentId>),
    /// Queues components whose power may have to be read.
    Read(Vec<ComponentId>),
    /// Stores the power that results show.
    ShowPower(Vec<ShownPower>),
    /// Drops a transition of the upstream that an operator has abandoned.
    GiveUp(String),
}

impl EngineCommand {
    /// Records the state of one transition.
    pub(super) fn put(transition: PowerTransition) -> Self {
        Self::Write(JournalChanges { put: vec![transition], delete: Vec::new() })
    }

    /// Polls a transition that the upstream works on.
    pub(super) fn poll(transition: &PowerTransition) -> Self {
        let id = transition.id.as_str().into();
        Self::Ask(UpstreamCall::Poll { id, upstream_id: transition.upstream_id.clone() })
    }
}

/// Call to the upstream; each is answered by one event.
#[derive(Debug)]
pub(crate) enum UpstreamCall {
    /// Requests the action, and answers with `Started`.
    Start { id: TransitionId, action: Action, nodes: Vec<String> },
    /// Searches for transitions in doubt, and answers with `Searched`.
    Search { ids: Vec<TransitionId>, asked_at: Instant, search: UpstreamSearch },
    /// Asks after a pause for transitions that are not on record, and answers with `ForeignFound`. A later schedule replaces
    /// the earlier ones.
    Foreign { pause: StepPause, schedule: u64 },
    /// Asks now for transitions that are not on record, and answers with `ForeignFound` and then with `Looked`.
    Look { ids: Vec<TransitionId>, asked_at: Instant },
    /// Answers with `HoldersFound`.
    Holders(HolderSearch),
    /// Polls transitions that hold nodes, and answers with `HoldersPolled`.
    PollHolders { id: TransitionId, holders: HashSet<String> },
    /// Asks to end a transition early, and answers with `Withdrawn`.
    Withdraw { id: TransitionId, upstream_id: String },
    /// Answers with `Polled`.
    Poll { id: TransitionId, upstream_id: String },
}

/// Time until the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepPause {
    /// Random time, longer the more failures there were in a row.
    Backoff { failures: u32 },
    /// Fixed time; zero: now.
    Fixed(Duration),
}
