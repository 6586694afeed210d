//! Waits for transitions of the upstream that are not on record here: those of other clients, and those of this service
//! that a database has lost.
//!
//! The engine neither repeats nor withdraws such a transition. The transition counts as an action of a generation before
//! all others: until the upstream has ended it, a reading that lacks its effect is evidence for no generation. The upstream
//! is asked for these transitions when a term begins, and no power is read before it has answered. One that has ended
//! shortly before counts as one that ends then, because its effect may still come.

use std::collections::{HashMap, HashSet};

use domain::{
    boot::power::{
        self, Caller, foreign,
        transition::{PowerTransition, TransitionDelivery},
    },
    core::clock_offset::ClockOffset,
};

use super::*;
use crate::{
    driver::{DriverFailure, FoundTransitions, UpstreamTransition},
    outcome,
};

/// Time between looks at these transitions. Upstreams confirm in steps of several seconds.
const NEXT_LOOK: Duration = Duration::from_secs(5);

/// Transitions of the upstream that are not on record.
#[derive(Debug, Default)]
pub(crate) struct ForeignTransitions {
    open: Vec<PowerTransition>,
    listing: ForeignListing,
    /// Questions for them.
    failures: FailureStreak,
    /// Time of the last action on record, by node, until the transitions are known: an older one that has ended has no
    /// effect any more.
    acted_at: HashMap<String, Timestamp>,
    /// Upstream ids of those that operators have abandoned before the transitions are known: the question for them may
    /// have been on its way.
    abandoned: HashSet<String>,
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

    /// Returns what the upstream has answered in this term.
    pub(crate) fn listing(&self) -> ForeignListing {
        self.listing.clone()
    }
}

impl PowerEngine {
    /// Asks for the transitions that are not on record, as a term begins. `is_after_loss`: calls of the engine before may
    /// still arrive at the upstream.
    pub(super) fn ask_for_foreign(&self, is_after_loss: bool, seen: EventContext<'_>) -> EngineCommand {
        let quiet = power::last_look(Caller::Gone, seen.upstream_deadline());
        self.ask_again(StepPause::Fixed(if is_after_loss { quiet } else { Duration::ZERO }), seen)
    }

    /// Asks after a pause, and for those that have ended as well while none is known.
    fn ask_again(&self, pause: StepPause, seen: EventContext<'_>) -> EngineCommand {
        let is_known = self.foreign.listing == ForeignListing::Known;
        let ended_since =
            (!is_known).then(|| foreign::effect_may_come_since(&seen.options_in_force(), seen.now.at));
        EngineCommand::Ask(UpstreamCall::Foreign { pause, ended_since })
    }

    /// Learns which transitions of the upstream are not on record: the first answer of a term names those to wait for,
    /// and later ones lack those that have ended.
    pub(super) fn foreign_found(
        &mut self,
        answer: Result<FoundTransitions, DriverFailure>,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let FoundTransitions { accepted: mut found, clock } = match answer {
            Ok(found) => found,
            Err(failure) => return vec![self.foreign_unknown(&failure, seen)],
        };
        if let Some(failures) = self.foreign.failures.ends() {
            tracing::info!(failures, "the open transitions of the power upstream are known again");
        }
        let mut commands = Vec::new();
        if self.foreign.listing != ForeignListing::Known {
            self.foreign.listing = ForeignListing::Known;
            let abandoned = std::mem::take(&mut self.foreign.abandoned);
            found.retain(|one| !abandoned.contains(&one.id));
            // The last action on a node counts, and an open transition holds its nodes.
            found.sort_by_key(|one| (one.open, one.at));
            for one in &found {
                commands.extend(self.await_foreign(one, clock, seen));
            }
            self.foreign.acted_at = HashMap::new();
        }
        let open: HashSet<_> = found.iter().filter(|one| one.open).map(|one| one.id.as_str()).collect();
        commands.extend(self.release_foreign(&open, seen.now));
        if !self.foreign.open.is_empty() {
            commands.push(self.ask_again(StepPause::Fixed(NEXT_LOOK), seen));
        }
        commands
    }

    fn foreign_unknown(&mut self, failure: &DriverFailure, seen: EventContext<'_>) -> EngineCommand {
        if self.foreign.failures.begins() {
            tracing::warn!(error = %failure, "cannot ask for the open transitions of the power upstream, trying again");
        }
        if self.foreign.listing != ForeignListing::Known {
            self.foreign.listing = ForeignListing::Failed(failure.to_string().into());
        }
        self.ask_again(StepPause::Backoff { failures: self.foreign.failures.count() }, seen)
    }

    /// Waits for a transition that is not on record; for one that has ended, its effect is awaited. A node with an open
    /// action that is on record is left out: the transition may be that action, and its own end is waited for. So is an
    /// operation that this service never asks for, of which no lasting effect is known.
    fn await_foreign(
        &mut self,
        one: &UpstreamTransition,
        clock: Option<ClockOffset>,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let counts = |id: &&String| {
            let acted_at = self.foreign.acted_at.get(*id).filter(|_| !one.open);
            let is_last = acted_at
                .is_none_or(|acted_at| foreign::may_be_since(one.at, one.resolution, clock, *acted_at));
            is_last && seen.facts.component(id).is_some() && !self.nodes.is_awaited(id)
        };
        let ids: Vec<_> = one.ids.iter().filter(counts).cloned().collect();
        if one.action.is_none() || ids.is_empty() {
            return Vec::new();
        }
        let (upstream_id, nodes) = (&one.id, ids.len());
        let transition = PowerTransition {
            delivery: TransitionDelivery::Accepted,
            ..PowerTransition::of_another(one.action, upstream_id, ids)
        };
        self.nodes.begin(&transition);
        self.nodes.follow(&transition, false);
        if one.open {
            tracing::info!(upstream_id, nodes, "waiting for a transition that is not on record");
            self.foreign.open.push(transition);
            return Vec::new();
        }
        tracing::info!(upstream_id, nodes, "a transition that is not on record has ended before the term");
        self.nodes.release(&transition, seen.now);
        Self::judge_again(convert::component_ids(&transition.members).collect()).into()
    }

    /// Ends the wait for transitions that the upstream does not have among its `open` ones any more.
    fn release_foreign(&mut self, open: &HashSet<&str>, now: PointInTime) -> Vec<EngineCommand> {
        let is_open = |one: &PowerTransition| open.contains(one.upstream_id.as_str());
        let (kept, ended): (Vec<_>, Vec<_>) = self.foreign.open.drain(..).partition(is_open);
        self.foreign.open = kept;
        let mut commands = Vec::new();
        for transition in ended {
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
        if self.foreign.listing != ForeignListing::Known {
            self.foreign.abandoned.insert(upstream_id.to_owned());
        }
        let mut commands = Vec::new();
        for transition in self.foreign.open.extract_if(.., |one| one.upstream_id == upstream_id) {
            tracing::warn!(upstream_id, "transition that is not on record abandoned");
            self.nodes.give_up(&transition, now);
            commands.extend(Self::judge_again(convert::component_ids(&transition.members).collect()));
        }
        commands
    }
}
