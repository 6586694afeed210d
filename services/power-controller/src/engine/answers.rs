//! Continues with the answer of the upstream to a call: transitions are accepted, refused, split, or sent again later, or
//! are in doubt.

use domain::{
    boot::power::transition::{PowerTransition, TransitionDelivery, TransitionMember},
    core::{
        refusal::{self, RefusalStep},
        trouble::Trouble,
    },
};

use super::{EngineCommand, EventContext, PowerEngine, StepPause, step_after, step_now};
use crate::{convert, driver::DriverFailure, journal::JournalChanges};

impl PowerEngine {
    /// Continues with the answer of the upstream to a call.
    pub(super) fn started(
        &mut self,
        id: &str,
        answer: Result<String, DriverFailure>,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let transition = self.transitions.in_state(id, TransitionDelivery::Sent).cloned();
        let Some(transition) = transition else { return Vec::new() };
        match answer {
            Ok(upstream_id) => self.accepted(transition, upstream_id, seen),
            Err(DriverFailure::TooLarge(text)) if transition.members.len() > 1 => {
                self.halve(transition, &text)
            }
            Err(DriverFailure::Refused(text) | DriverFailure::TooLarge(text)) => {
                self.judge(transition, &text, seen)
            }
            // A denied call had no effect and is no fault of the nodes: the transition waits until an operator has
            // mended the cause, such as credentials.
            Err(DriverFailure::Denied(text) | DriverFailure::Unreachable(text)) => {
                let failures = self.transitions.failed(id);
                self.wait(transition, &text, StepPause::Backoff { failures }, seen)
            }
            Err(DriverFailure::Ambiguous(text)) => self.in_doubt(&transition, &text, seen),
        }
    }

    fn halve(&mut self, transition: PowerTransition, text: &str) -> Vec<EngineCommand> {
        let (first, second) = transition.members.split_at(transition.members.len() / 2);
        let halves = vec![first.to_vec(), second.to_vec()];
        self.split(transition, halves, Vec::new(), text)
    }

    /// Finds out whether the upstream refuses single nodes or every node.
    fn judge(
        &mut self,
        transition: PowerTransition,
        text: &str,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        match self.transitions.refused(&transition, seen.now.instant) {
            RefusalStep::Probe(count) => {
                let round = self.transitions.next_round();
                let (probes, rest) = refusal::split_probes(transition.members.clone(), count, round);
                let probes = probes.into_iter().map(|probe| vec![probe]).collect();
                self.split(transition, probes, rest, text)
            }
            RefusalStep::Halve => self.halve(transition, text),
            RefusalStep::SetAside => self.refused(transition, text, seen),
            RefusalStep::BackOff => {
                let pause = refusal::pause(self.transitions.failed(&transition.id));
                self.wait(transition, text, StepPause::Fixed(pause), seen)
            }
        }
    }

    /// Splits a transition that was refused because of some of its members: these `parts` are tried alone, and the
    /// members that are `left` after them. All keep their attempt.
    pub(super) fn split(
        &mut self,
        transition: PowerTransition,
        parts: Vec<Vec<TransitionMember>>,
        left: Vec<TransitionMember>,
        error: &str,
    ) -> Vec<EngineCommand> {
        let nodes = transition.members.len();
        tracing::info!(transition = transition.id, error, nodes, "splitting a transition");
        let part = |members| PowerTransition {
            id: convert::new_id(),
            members,
            delivery: TransitionDelivery::Prepared,
            sent_at: None,
            ..transition.clone()
        };
        let left = (!left.is_empty()).then(|| part(left));
        let parts: Vec<_> = parts.into_iter().map(part).collect();
        let put: Vec<_> = parts.iter().chain(&left).cloned().collect();
        self.transitions.hand_down(&transition.id, put.clone());
        self.transitions.forget(&transition.id);
        let ids = parts.iter().map(|part| part.id.as_str().into()).collect();
        let mut commands =
            vec![EngineCommand::Write(JournalChanges { put, delete: vec![transition.id] }), step_now(ids)];
        commands.extend(left.map(|left| step_after(&left.id, refusal::pause(1))));
        commands
    }

    /// Sends a transition again after a pause; until then its members show why.
    pub(super) fn wait(
        &mut self,
        transition: PowerTransition,
        error: &str,
        pause: StepPause,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        let waiting = prepared_again(transition, Some(&Trouble::waiting_for(error)));
        let ids = vec![waiting.id.as_str().into()];
        vec![
            self.put(waiting.clone()),
            self.show_waiting(&waiting, error, seen),
            EngineCommand::Step { ids, pause },
        ]
    }

    /// Puts a transition in doubt: the upstream may have taken it or not. Its members show why until that is known.
    pub(super) fn in_doubt(
        &mut self,
        transition: &PowerTransition,
        error: &str,
        seen: EventContext<'_>,
    ) -> Vec<EngineCommand> {
        if self.transitions.doubt_begins(&transition.id) {
            tracing::warn!(transition = transition.id, error, "transition in doubt, looking for it");
        } else {
            tracing::debug!(transition = transition.id, error, "transition in doubt again, looking for it");
        }
        self.transitions.doubt(&transition.id, seen.now.instant);
        let ids = vec![transition.id.as_str().into()];
        // The text is shown before the search, since finding the transition clears it.
        vec![
            self.put(convert::in_doubt(transition, error)),
            self.show_waiting(transition, error, seen),
            step_now(ids),
        ]
    }

    fn show_waiting(
        &mut self,
        transition: &PowerTransition,
        error: &str,
        seen: EventContext<'_>,
    ) -> EngineCommand {
        let trouble = Trouble::waiting_for(error);
        if !self.transitions.show(&transition.id, &trouble, seen.now.instant) {
            return EngineCommand::Report(Vec::new());
        }
        tracing::warn!(transition = transition.id, error, "transition waits for the power upstream");
        EngineCommand::Report(convert::reports(transition, Some(&trouble)).collect())
    }
}

/// Returns the transition as one that was not sent, with `trouble` on its record.
pub(super) fn prepared_again(transition: PowerTransition, trouble: Option<&Trouble>) -> PowerTransition {
    PowerTransition {
        delivery: TransitionDelivery::Prepared,
        sent_at: None,
        ..convert::with_trouble(transition, trouble)
    }
}
