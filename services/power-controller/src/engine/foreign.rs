//! Waits for transitions of the upstream that are not on record here: those of other clients, and those of this service
//! that a database has lost, or that are over on record and that the upstream has begun with again.
//!
//! The engine neither repeats nor withdraws such a transition. The transition counts as an action of a generation before
//! all others: until the upstream has ended it, no reading of its nodes is evidence, and no action is requested for them. A
//! transition that has ended since the last answer counts as one that ends now, because its effect may still come.
//!
//! The upstream is asked for these transitions when a term begins, before every call that requests an action, after every
//! reading that is news, and otherwise now and then while components are enabled. No power is read before the first answer.

use std::collections::{HashMap, HashSet};

use domain::{
    boot::power::{
        self, Caller, foreign,
        transition::{PowerTransition, TransitionDelivery},
    },
    core::{bos_time, clock_offset::ClockOffset},
};

use super::*;
use crate::{
    driver::{DriverFailure, ForeignAnswer, ForeignQuery, RecordedIds, UpstreamTransition},
    outcome,
};

/// Time between looks at these transitions while some are open. Upstreams confirm in steps of several seconds.
const NEXT_LOOK: Duration = Duration::from_secs(5);

/// Time between looks while none is known: as long as between reads of the power of a node at leisure, which a transition
/// of another client concerns.
const NEXT_AUDIT: Duration = Duration::from_secs(30);

/// Transitions of the upstream that are not on record.
#[derive(Debug, Default)]
pub(crate) struct ForeignTransitions {
    open: Vec<OpenForeign>,
    listing: ForeignListing,
    /// Questions for them.
    failures: FailureStreak,
    /// Time of the last action on record, by node, until the transitions are known: an older one that has ended has no
    /// effect any more.
    acted_at: HashMap<String, Timestamp>,
    /// Upstream ids of those that operators have abandoned in this term: an answer that arrives later may still have them.
    abandoned: HashSet<String>,
    /// Upstream ids of those that the last answer listed as ended; `None`: there was no answer.
    ended: Option<Arc<HashSet<String>>>,
    /// Upstream id of an open one with unknown nodes, by the last answer.
    nameless: Option<String>,
    /// Number of the newest schedule of the next look, which replaces all earlier ones.
    schedule: u64,
}

/// Transition that holds its nodes.
#[derive(Debug)]
struct OpenForeign {
    transition: PowerTransition,
    /// Time of its creation by the clock of the upstream, or else of the first answer that had it.
    since: Timestamp,
}

/// Answer of the upstream in this term to the question for its open transitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ForeignListing {
    /// None yet.
    #[default]
    Awaited,
    /// The question failed, with this error.
    Failed(Arc<str>),
    /// All of them are known.
    Known,
}

impl ForeignTransitions {
    /// Returns those of a term that begins with these `recorded` transitions, of which none is known yet.
    pub(super) fn beside(recorded: &[Arc<PowerTransition>]) -> Self {
        let mut acted_at = HashMap::new();
        for transition in recorded.iter().filter(|one| !one.upstream_id.is_empty()) {
            let Some(sent_at) = transition.sent_at else { continue };
            for member in transition.members.iter().filter(|one| outcome::may_have_begun(one)) {
                let last: &mut Timestamp = acted_at.entry(member.id.clone()).or_default();
                *last = sent_at.max(*last);
            }
        }
        Self { acted_at, ..Self::default() }
    }

    /// Returns those of a term in which the upstream has answered that there are none.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self { listing: ForeignListing::Known, ended: Some(Arc::default()), ..Self::default() }
    }

    /// Returns the answers of the upstream in this term.
    pub(crate) fn listing(&self) -> ForeignListing {
        self.listing.clone()
    }

    /// Returns whether a later schedule has replaced this one.
    pub(crate) fn is_replaced(&self, schedule: u64) -> bool {
        self.schedule != schedule
    }

    /// Returns the question for transitions beside the `recorded` ones.
    pub(crate) fn query(&self, recorded: RecordedIds, options: &Options, now: Timestamp) -> ForeignQuery {
        let ended_since = foreign::effect_may_come_since(options, now);
        ForeignQuery { recorded, ended: self.ended.clone(), ended_since }
    }

    /// Returns the open transition with this upstream id.
    fn get(&self, upstream_id: &str) -> Option<&OpenForeign> {
        self.open.iter().find(|one| one.transition.upstream_id == upstream_id)
    }

    /// Returns the error of a call that has to wait for an open transition with unknown nodes; `None`: all are known.
    pub(super) fn nameless(&self) -> Option<String> {
        let id = self.nameless.as_ref()?;
        Some(format!("transition {id} of the power upstream, which is not on record and names no nodes"))
    }

    /// Returns since when the transition with this upstream id is open, for people; `None`: it is on record, or not open.
    pub(super) fn open_since(&self, upstream_id: &str) -> Option<String> {
        self.get(upstream_id).map(|one| format!("{}Z", bos_time::text(one.since)))
    }
}

impl PowerEngine {
    /// Asks for the transitions that are not on record, as a term begins. `is_after_loss`: calls of the engine before may
    /// still arrive at the upstream.
    pub(super) fn ask_for_foreign(&mut self, is_after_loss: bool, seen: EventContext<'_>) -> EngineCommand {
        let quiet = power::last_look(Caller::Gone, seen.upstream_deadline());
        self.ask_again(StepPause::Fixed(if is_after_loss { quiet } else { Duration::ZERO }))
    }

    /// Asks after a pause, unless something else leads to a look before.
    fn ask_again(&mut self, pause: StepPause) -> EngineCommand {
        self.foreign.schedule += 1;
        EngineCommand::Ask(UpstreamCall::Foreign { pause, schedule: self.foreign.schedule })
    }

    /// Learns which transitions of the upstream are not on record: open ones are waited for, and those that are not open
    /// any more are over.
    pub(super) fn foreign_found(
        &mut self,
        answer: Result<ForeignAnswer, DriverFailure>,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let ForeignAnswer { mut found, clock, listed, ended } = match answer {
            Ok(answer) => answer,
            Err(failure) => return vec![self.foreign_unknown(&failure)],
        };
        if let Some(failures) = self.foreign.failures.ends() {
            tracing::info!(failures, "the open transitions of the power upstream are known again");
        }
        let mut commands = Vec::new();
        self.foreign.listing = ForeignListing::Known;
        found.retain(|one| !self.foreign.abandoned.contains(&one.id));
        self.foreign.abandoned.retain(|id| listed.contains(id));
        self.foreign.nameless = found
            .iter()
            .find(|one| one.open && !one.complete && one.ids.is_empty())
            .map(|one| one.id.clone());
        // The last action on a node counts, and an open transition holds its nodes.
        found.sort_by_key(|one| (one.open, one.at));
        for one in &found {
            commands.extend(self.await_foreign(one, clock, seen));
        }
        self.foreign.acted_at = HashMap::new();
        self.foreign.ended = Some(ended);
        let open: HashSet<_> = found.iter().filter(|one| one.open).map(|one| one.id.as_str()).collect();
        commands.extend(self.release_foreign(&open, seen.now));
        let pause = if open.is_empty() { NEXT_AUDIT } else { NEXT_LOOK };
        commands.push(self.ask_again(StepPause::Fixed(pause)));
        commands
    }

    fn foreign_unknown(&mut self, failure: &DriverFailure) -> EngineCommand {
        if self.foreign.failures.begins() {
            tracing::warn!(error = %failure, "cannot ask for the open transitions of the power upstream, trying again");
        }
        if self.foreign.listing != ForeignListing::Known {
            self.foreign.listing = ForeignListing::Failed(failure.to_string().into());
        }
        self.ask_again(StepPause::Backoff { failures: self.foreign.failures.count() })
    }

    /// Waits for a transition that is not on record; for one that has ended, its effect is awaited. A node with an action on
    /// record that the upstream may have taken is left out: the transition may be that action, and its own end is waited
    /// for.
    fn await_foreign(
        &mut self,
        one: &UpstreamTransition,
        clock: Option<ClockOffset>,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let ours: HashSet<&str> = self
            .transitions
            .all()
            .filter(|one| one.may_be_taken())
            .flat_map(PowerTransition::nodes)
            .collect();
        let counts = |id: &&String| {
            let acted_at = self.foreign.acted_at.get(*id).filter(|_| !one.open);
            let is_last = acted_at
                .is_none_or(|acted_at| foreign::may_be_since(one.at, one.resolution, clock, *acted_at));
            let is_known = self.nodes.is_held_as(id, &one.id);
            is_last && !is_known && seen.facts.component(id).is_some() && !ours.contains(id.as_str())
        };
        let ids: Vec<_> = one.ids.iter().filter(counts).cloned().collect();
        // An operation that this service never asks for leaves no lasting effect.
        let had_no_effect = one.action.is_none() && !one.open && self.foreign.ended.is_none();
        if ids.is_empty() || had_no_effect {
            return Vec::new();
        }
        let (upstream_id, nodes) = (&one.id, ids.len());
        let transition = PowerTransition {
            delivery: TransitionDelivery::Accepted,
            ..PowerTransition::of_another(one.action, upstream_id, ids)
        };
        self.nodes.hold(&transition);
        let judge = Self::judge_again(convert::component_ids(&transition.members).collect());
        if one.open {
            self.note_open(transition, one.at, seen.now);
        } else {
            tracing::info!(upstream_id, nodes, "a transition that is not on record has ended");
            self.nodes.release(&transition, seen.now);
        }
        judge.into()
    }

    /// Notes an open transition, or more nodes of one that is known.
    fn note_open(&mut self, transition: PowerTransition, at: Timestamp, now: PointInTime) {
        let (upstream_id, nodes) = (transition.upstream_id.as_str(), transition.members.len());
        let known = self.foreign.open.iter_mut().find(|one| one.transition.upstream_id == upstream_id);
        let Some(known) = known else {
            tracing::info!(upstream_id, nodes, "waiting for a transition that is not on record");
            let since = if at < Timestamp(i64::MAX) { at } else { now.at };
            return self.foreign.open.push(OpenForeign { transition, since });
        };
        let are_known: HashSet<_> = known.transition.members.iter().map(|member| member.id.clone()).collect();
        let more = transition.members.into_iter().filter(|member| !are_known.contains(&member.id));
        known.transition.members.extend(more);
    }

    /// Ends the wait for transitions that the upstream does not have among its `open` ones any more.
    fn release_foreign(&mut self, open: &HashSet<&str>, now: PointInTime) -> Vec<EngineCommand> {
        let is_over = |one: &mut OpenForeign| !open.contains(one.transition.upstream_id.as_str());
        let mut commands = Vec::new();
        for OpenForeign { transition, .. } in self.foreign.open.extract_if(.., is_over) {
            tracing::info!(
                upstream_id = transition.upstream_id,
                "a transition that is not on record has ended"
            );
            self.nodes.release(&transition, now);
            commands.extend(Self::judge_again(convert::component_ids(&transition.members).collect()));
        }
        commands
    }

    /// Ends the wait for a transition that an operator has abandoned, which has this id at the upstream.
    pub(super) fn abandon_foreign(&mut self, upstream_id: &str, now: PointInTime) -> Vec<EngineCommand> {
        self.foreign.abandoned.insert(upstream_id.to_owned());
        self.foreign.nameless.take_if(|id| *id == *upstream_id);
        let mut commands = Vec::new();
        let is_it = |one: &mut OpenForeign| one.transition.upstream_id == upstream_id;
        for OpenForeign { transition, .. } in self.foreign.open.extract_if(.., is_it) {
            tracing::warn!(upstream_id, "transition that is not on record abandoned");
            self.nodes.give_up(&transition, now);
            commands.extend(Self::judge_again(convert::component_ids(&transition.members).collect()));
        }
        commands
    }
}
