//! Decides about power, as a plain value: events go in, commands come out.
//!
//! The engine holds one record for each open transition and one for each node, so all that is known about an action
//! stands in one place. It has no task, clock or connection; the runtime carries its commands out and feeds the outcomes
//! back. The story of one transition, and the function that tells each part:
//!
//! 1. `decide`: an action is due. The intent is recorded.
//! 2. `deliver`: the upstream is asked whether another client's transition is in the way, the registry counts the
//!    attempt, the transition is marked as sent, and the upstream is called.
//! 3. `answers`: a refused transition is split or waits; one without an answer is in doubt.
//! 4. `resolve`: a transition in doubt is searched for: adopted, or sent again as the same attempt.
//! 5. `follow`: an accepted transition is polled, and withdrawn once its time is over. `results` spreads what became of
//!    its nodes.
//! 6. `settle`: the transition is over: refused, ended or abandoned. Its attempts are closed, and members that another
//!    transition held continue.
//!
//! Beside it, `foreign` waits for transitions of the upstream that are not on record.
//!
//! The order of commands is the durable order: a call comes after the write that it depends on. Commands of two events run
//! beside one another, so an event that may overtake another one about the same transition has to wait for it: a
//! transition is not polled again before the results of its last poll are on record.

mod answers;
mod decide;
mod deliver;
mod event;
mod follow;
mod foreign;
mod nodes;
mod plan;
mod polls;
mod records;
mod resolve;
mod results;
mod settle;
#[cfg(test)]
mod tests;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use chassis::process::clock;
use domain::{
    boot::{
        bos::options::Options,
        component::{Component, loss::may_have_been_sent},
        power::{
            PowerObservation,
            transition::{PowerTransition, TransitionDelivery, TransitionMember},
        },
    },
    core::{time::Timestamp, trouble::Trouble},
};
use parking_lot::Mutex;

pub(crate) use self::{
    event::{
        EngineCommand, EngineEvent, HolderPurpose, HolderSearch, PollAnswer, StepPause, TransitionId,
        UpstreamCall,
    },
    foreign::{ForeignListing, ForeignTransitions},
    nodes::{AttemptOpening, NodeHolder, NodeRecords, OpenAction, PowerAttempt, attempts},
    polls::PollSchedule,
    records::{FailureStreak, TransitionRecords},
    results::ShownPower,
};
use crate::{convert, journal::is_open};

/// Delay before a new decision about a component whose report came back stale. The newer record normally arrives first
/// and queues the component; this delay covers the race.
pub(crate) const BEHIND: Duration = Duration::from_millis(100);

/// Point in time, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PointInTime {
    /// Time of day, for ages and for records.
    pub(crate) at: Timestamp,
    /// Time for waits.
    pub(crate) instant: Instant,
}

impl PointInTime {
    pub(crate) fn now() -> Self {
        Self { at: clock::now(), instant: tokio::time::Instant::now().into_std() }
    }
}

/// Knowledge of others that decisions rest on.
pub(crate) trait PowerFacts {
    /// Returns the component, if it exists.
    fn component(&self, id: &str) -> Option<Arc<Component>>;
    /// Returns the power of a component by the stored readings.
    fn reading(&self, component: &Component) -> PowerObservation;
    /// Returns the options; `None`: not known yet.
    fn options(&self) -> Option<Options>;
    /// Returns the most nodes in one call.
    fn most_nodes(&self) -> usize;
}

/// Properties of the upstream that do not change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UpstreamTraits {
    /// Whether the upstream reports the outcome of transitions.
    pub(crate) follows: bool,
    /// Whether the upstream can end transitions early.
    pub(crate) aborts: bool,
    /// Whether the upstream lists its transitions, whoever requested them.
    pub(crate) lists: bool,
    /// Time that the upstream works on a node before it gives the node up.
    pub(crate) task_deadline: Duration,
}

/// Circumstances of an event.
#[derive(Clone, Copy)]
pub(super) struct EventContext<'a> {
    facts: &'a dyn PowerFacts,
    now: PointInTime,
}

impl EventContext<'_> {
    /// Returns the options, or their defaults while they are not known.
    fn options_in_force(&self) -> Options {
        self.facts.options().unwrap_or_default()
    }

    /// Returns the deadline for answers of the upstream (BOS reference 4, `pcs_read_timeout`).
    fn upstream_deadline(&self) -> Duration {
        Duration::from_secs(self.options_in_force().pcs_read_timeout.into())
    }
}

/// State of all power actions of one term.
#[derive(Debug)]
pub(crate) struct PowerEngine {
    upstream: UpstreamTraits,
    pub(crate) transitions: TransitionRecords,
    pub(crate) nodes: NodeRecords,
    pub(crate) polls: PollSchedule,
    pub(crate) foreign: ForeignTransitions,
    /// Searches for transitions in doubt.
    searches: FailureStreak,
    /// Searches for holders of nodes.
    holder_searches: FailureStreak,
    /// Withdrawals of transitions.
    withdrawals: FailureStreak,
}

/// Engine that the tasks of one term share.
pub(crate) type SharedEngine = Arc<Mutex<PowerEngine>>;

impl PowerEngine {
    /// Returns the engine of a term that begins with these `recorded` transitions.
    pub(crate) fn new(
        recorded: &[Arc<PowerTransition>],
        polls: PollSchedule,
        upstream: UpstreamTraits,
    ) -> Self {
        let mut transitions = TransitionRecords::default();
        let open = recorded.iter().filter(|transition| is_open(transition));
        open.for_each(|transition| transitions.inherit(PowerTransition::clone(transition)));
        transitions.recall_refusals(recorded);
        Self {
            upstream,
            transitions,
            nodes: NodeRecords::recall(recorded.to_vec()),
            polls,
            foreign: ForeignTransitions::beside(recorded),
            searches: FailureStreak::default(),
            holder_searches: FailureStreak::default(),
            withdrawals: FailureStreak::default(),
        }
    }

    /// Returns the commands that follow from `event`. The engine takes for granted that the commands are carried out.
    pub(crate) fn apply(
        &mut self,
        event: EngineEvent,
        facts: &dyn PowerFacts,
        now: PointInTime,
    ) -> Vec<EngineCommand> {
        let seen = EventContext { facts, now };
        match event {
            EngineEvent::TookOver { follows_another, is_told, is_after_loss } => {
                let mut commands = self.take_over(follows_another, is_told, seen);
                commands.push(self.ask_for_foreign(is_after_loss, seen));
                commands
            }
            EngineEvent::ForeignFound(answer) => self.foreign_found(answer, seen),
            EngineEvent::Changed(ids) => self.decide(&ids, seen),
            EngineEvent::Begun { wanted, begun } => self.begun(&wanted, begun),
            EngineEvent::Due(ids) => self.step(&ids, seen),
            EngineEvent::Looked { ids, asked_at, outcome } => self.looked(&ids, asked_at, outcome, seen),
            EngineEvent::Announced { announcement, stale } => self.announced(announcement, &stale, seen),
            EngineEvent::Started { id, answer } => self.started(&id, answer, seen),
            EngineEvent::Searched { ids, asked_at, answer, finished } => {
                self.searched(ids, asked_at, answer, &finished, seen)
            }
            EngineEvent::HoldersFound { search, answer, abandoned } => {
                self.holders_found(search, answer, &abandoned, seen)
            }
            EngineEvent::HoldersPolled { id, ended } => self.holders_polled(&id, &ended),
            EngineEvent::Followed(id) => self.followed(&id, now),
            EngineEvent::PollDue(id) => self.poll_due(&id, seen),
            EngineEvent::Withdrawn { id, answer } => self.withdrawn(&id, &answer, seen),
            EngineEvent::Polled(answer) => self.polled(answer, seen),
            EngineEvent::Heard(answers) => self.hear(answers, seen),
            EngineEvent::PollsRecorded(ids) => {
                ids.iter().for_each(|id| self.transitions.end_poll(id));
                Vec::new()
            }
            EngineEvent::Abandoned(marked) => {
                let own = self.transitions.mark_abandoned(&marked).cloned();
                match own {
                    Some(transition) => self.go_on_with(&transition, now),
                    None => self.abandon_foreign(&marked.upstream_id, now),
                }
            }
        }
    }

    /// Puts transitions that were being sent in doubt, and continues every open transition.
    fn take_over(
        &mut self,
        follows_another: bool,
        is_told: bool,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let open: Vec<_> = self.transitions.all().cloned().collect();
        let mut commands = Vec::new();
        for transition in open.iter().filter(|one| may_be_in_doubt(one, is_told, seen)) {
            if transition.delivery != TransitionDelivery::Unknown {
                let text = match transition.delivery {
                    TransitionDelivery::Prepared => "it is not known whether this was sent",
                    _ => "the service stopped before the answer came",
                };
                commands.push(self.put(convert::in_doubt(transition, text)));
            }
            if follows_another {
                self.transitions.inherit_doubt(&transition.id, seen.now.instant);
            }
        }
        let open: Vec<_> = self.transitions.all().cloned().collect();
        commands.extend(open.iter().flat_map(|transition| self.go_on_with(transition, seen.now)));
        commands
    }

    fn go_on_with(&mut self, transition: &PowerTransition, now: PointInTime) -> Vec<EngineCommand> {
        let ids = vec![TransitionId::from(transition.id.as_str())];
        match transition.delivery {
            TransitionDelivery::Prepared => {
                if let Some(waits) = convert::wait(transition) {
                    self.transitions.show(&transition.id, &waits, now.instant);
                }
                vec![step_now(ids)]
            }
            TransitionDelivery::Sent | TransitionDelivery::Unknown => vec![step_now(ids)],
            TransitionDelivery::Accepted => vec![EngineCommand::Poll { ids, at: now.instant, failures: 0 }],
            TransitionDelivery::Unspecified | TransitionDelivery::Refused | TransitionDelivery::Finished => {
                Vec::new()
            }
        }
    }

    /// Sets the state of an open transition, which the command records.
    fn put(&mut self, transition: PowerTransition) -> EngineCommand {
        self.transitions.put(transition.clone());
        EngineCommand::put(transition)
    }

    /// Queues a transition for a later step, as if the upstream had not been reached.
    fn postpone(&mut self, id: &str) -> EngineCommand {
        let pause = StepPause::Backoff { failures: self.transitions.failed(id) };
        EngineCommand::Step { ids: vec![id.into()], pause }
    }

    /// Returns the known power of a component: unknown after an action that may have changed it unseen, and while a
    /// transition of another client holds the node.
    fn power(&self, component: &Component, seen: EventContext<'_>) -> PowerObservation {
        let id = component.id.as_str();
        if self.nodes.is_left_open(id) || self.nodes.is_held_by_another(id) {
            return PowerObservation::Unknown;
        }
        seen.facts.reading(component)
    }

    /// Returns the trouble of a node whose power is open in `generation`, because a transition for an older generation
    /// holds the node; `None`: no such transition does.
    pub(crate) fn waits_for_holder(&self, id: &str, generation: u64) -> Option<Trouble> {
        self.nodes.older_holder(id, generation).map(|holder| self.waits_for(holder))
    }

    /// Returns the trouble of a node whose next action in `generation` waits, although the power is known: for the end of a
    /// transition for an older generation, or for a reading from after such an end; `None`: it waits for neither.
    pub(crate) fn action_waits_for(&self, id: &str, generation: u64) -> Option<Trouble> {
        let held = self.nodes.holder_before(id, generation).map(|holder| self.waits_for(holder));
        held.or_else(|| self.nodes.left_open_at(id).map(convert::waiting_for_reading))
    }

    /// Returns the trouble of a node whose power is open until the transition of its `holder` has ended.
    pub(crate) fn waits_for(&self, holder: &NodeHolder) -> Trouble {
        let transition = self.transitions.get(&holder.transition);
        let withdrawn_at = transition.and_then(|one| one.withdrawn_at);
        let silence = self.transitions.silence(&holder.transition);
        if let Some(since) = self.foreign.open_since(&holder.upstream_id) {
            return convert::waiting_for_another(&holder.upstream_id, &since);
        }
        convert::waiting_for_transition(&holder.upstream_id, withdrawn_at, self.upstream.aborts, silence)
    }
}

/// Queues transitions for their next step now.
fn step_now(ids: Vec<TransitionId>) -> EngineCommand {
    EngineCommand::Step { ids, pause: StepPause::Fixed(Duration::ZERO) }
}

/// Queues a transition for its next step after a pause.
fn step_after(id: &str, pause: Duration) -> EngineCommand {
    EngineCommand::Step { ids: vec![id.into()], pause: StepPause::Fixed(pause) }
}

/// Returns whether a call may have been made whose answer is not on record. A counted attempt shows that the call may have
/// been made; where the components may lack counts (`is_told` is false), any transition may have been sent.
fn may_be_in_doubt(transition: &PowerTransition, is_told: bool, seen: EventContext<'_>) -> bool {
    let may_be_sent = |member: &TransitionMember| {
        let component = seen.facts.component(&member.id);
        transition.action.is_none_or(|action| {
            may_have_been_sent(component.as_deref(), action, member.generation, member.attempt)
        })
    };
    match transition.delivery {
        TransitionDelivery::Sent | TransitionDelivery::Unknown => true,
        TransitionDelivery::Prepared => !is_told || transition.members.iter().any(may_be_sent),
        TransitionDelivery::Unspecified
        | TransitionDelivery::Accepted
        | TransitionDelivery::Refused
        | TransitionDelivery::Finished => false,
    }
}
