//! Waits for transitions that the upstream works on and that are not on record here: those of other clients, and those of
//! this service that a database has lost.
//!
//! The engine neither repeats nor withdraws such a transition. The transition counts as an action of a generation before all others: until
//! the upstream has ended it, a reading that lacks its effect is evidence for no generation. The upstream is asked for
//! these transitions when a term begins, and no power is read before it has answered.

use std::collections::HashSet;

use domain::boot::power::{
    self, Caller,
    transition::{PowerTransition, TransitionDelivery, TransitionMember},
};

use super::*;
use crate::driver::{DriverFailure, UpstreamTransition};

/// Generation that no component has: theirs count from 1.
pub(super) const NO_GENERATION: u64 = 0;

/// Time between looks at these transitions. Upstreams confirm in steps of several seconds.
const NEXT_LOOK: Duration = Duration::from_secs(5);

/// Transitions of the upstream that are not on record.
#[derive(Debug, Default)]
pub(crate) struct ForeignTransitions {
    open: Vec<PowerTransition>,
    listing: ForeignListing,
    /// Questions for them.
    failures: FailureStreak,
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
    /// Returns what the upstream has answered in this term.
    pub(crate) fn listing(&self) -> ForeignListing {
        self.listing.clone()
    }
}

impl PowerEngine {
    /// Asks for the transitions that are not on record, as a term begins. `is_after_loss`: calls of the engine before may
    /// still arrive at the upstream.
    pub(super) fn ask_for_foreign(is_after_loss: bool, seen: EventContext<'_>) -> EngineCommand {
        let quiet = power::last_look(Caller::Gone, seen.upstream_deadline());
        let pause = StepPause::Fixed(if is_after_loss { quiet } else { Duration::ZERO });
        EngineCommand::Ask(UpstreamCall::Foreign { pause })
    }

    /// Learns which transitions of the upstream are not on record: the first answer of a term names those to wait for,
    /// and later ones lack those that have ended.
    pub(super) fn foreign_found(
        &mut self,
        answer: Result<Vec<UpstreamTransition>, DriverFailure>,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let found = match answer {
            Ok(found) => found,
            Err(failure) => return vec![self.foreign_unknown(&failure)],
        };
        if let Some(failures) = self.foreign.failures.ends() {
            tracing::info!(failures, "the open transitions of the power upstream are known again");
        }
        if self.foreign.listing != ForeignListing::Known {
            self.foreign.listing = ForeignListing::Known;
            found.iter().for_each(|one| self.await_foreign(one, seen));
        }
        let ids: HashSet<_> = found.iter().map(|one| one.id.as_str()).collect();
        let mut commands = self.release_foreign(&ids, seen.now);
        if !self.foreign.open.is_empty() {
            let pause = StepPause::Fixed(NEXT_LOOK);
            commands.push(EngineCommand::Ask(UpstreamCall::Foreign { pause }));
        }
        commands
    }

    fn foreign_unknown(&mut self, failure: &DriverFailure) -> EngineCommand {
        if self.foreign.failures.begins() {
            tracing::warn!(error = %failure, "cannot ask for the open transitions of the power upstream, trying again");
        }
        if self.foreign.listing != ForeignListing::Known {
            self.foreign.listing = ForeignListing::Failed(failure.to_string().into());
        }
        let pause = StepPause::Backoff { failures: self.foreign.failures.count() };
        EngineCommand::Ask(UpstreamCall::Foreign { pause })
    }

    /// Waits for a transition that is not on record. A node with an open action that is on record is left out: the
    /// transition may be that action, and its own end is waited for. So is an operation that this service never asks for,
    /// of which no lasting effect is known.
    fn await_foreign(&mut self, one: &UpstreamTransition, seen: EventContext<'_>) {
        let Some(action) = one.action else { return };
        let ids =
            one.ids.iter().filter(|id| seen.facts.component(id).is_some() && !self.nodes.is_awaited(id));
        let member = |id: &String| TransitionMember {
            id: id.clone(),
            generation: NO_GENERATION,
            ..TransitionMember::default()
        };
        let members: Vec<_> = ids.map(member).collect();
        if members.is_empty() {
            return;
        }
        tracing::info!(
            upstream_id = one.id,
            nodes = members.len(),
            "waiting for a transition that is not on record"
        );
        let transition = PowerTransition {
            action: Some(action),
            members,
            delivery: TransitionDelivery::Accepted,
            upstream_id: one.id.clone(),
            ..PowerTransition::default()
        };
        self.nodes.begin(&transition);
        self.nodes.follow(&transition, false);
        self.foreign.open.push(transition);
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
}
