//! Decides which power actions begin.

use std::{collections::HashSet, time::Duration};

use domain::{
    boot::{
        component::{Action, Component},
        power::{self, PowerDecision, PowerObservation, transition::PowerTransition},
    },
    core::id::ComponentId,
};
use proto::component::ActionReport;

use super::{
    AttemptOpening, BEHIND, EngineCommand, EventContext, PowerAttempt, PowerEngine, TransitionId, attempts,
    plan, step_now,
};
use crate::convert;

impl PowerEngine {
    /// Opens the attempts that are due, and records their transitions, so that a crash from here on leaves a trace of
    /// them. Components whose attempt comes later are queued for that time.
    pub(super) fn decide(&mut self, ids: &[ComponentId], seen: EventContext<'_>) -> Vec<EngineCommand> {
        // Waits and retry limits are unknown without the options. Every component is queued once they arrive.
        let Some(options) = seen.facts.options() else { return Vec::new() };
        let mut due = Vec::new();
        let mut idle = Vec::new();
        let mut commands = Vec::new();
        let mut ends = Vec::new();
        for id in ids {
            let Some(component) = seen.facts.component(id.as_str()) else {
                self.nodes.forget(id);
                self.transitions.forget_refusals(id);
                continue;
            };
            self.nodes.note_report(&component);
            let power = self.power(&component, seen);
            ends.extend(self.end_of_wait(&component, &power));
            match power::decide(&component, &power, &options, seen.now.at) {
                PowerDecision::Act { action, attempt } => {
                    let attempt = PowerAttempt { generation: component.generation, action, number: attempt };
                    match self.nodes.open(&component.id, attempt) {
                        AttemptOpening::Opened => due.push((component.id.clone(), attempt)),
                        AttemptOpening::Blocked | AttemptOpening::Repeated => {}
                    }
                }
                PowerDecision::Wait { until } => {
                    let pause = until.since(seen.now.at);
                    commands.push(EngineCommand::Decide { ids: vec![id.clone()], pause });
                }
                PowerDecision::Nothing { .. } => idle.push(id.clone()),
            }
        }
        commands.push(EngineCommand::Report(ends));
        commands.push(EngineCommand::Rest(idle));
        if !due.is_empty() {
            let batches = plan::batches(due, &options, seen.facts.most_nodes()).into_iter();
            let begin = batches.map(|(action, members)| convert::prepared(action, members, seen.now.at));
            commands.push(EngineCommand::Begin(begin.collect()));
        }
        commands
    }

    /// Returns the report that ends a wait which the component shows although its attempt is not open.
    fn end_of_wait(&self, component: &Component, power: &PowerObservation) -> Option<ActionReport> {
        let fate = |action: Action, number: u32| {
            let attempt = PowerAttempt { generation: component.generation, action, number };
            self.nodes.fate(component.id.as_str(), attempt)
        };
        let wait = power::orphaned_wait(component, fate, power)?;
        Some(convert::end_of_wait(component, wait))
    }

    /// Continues transitions that are on record. Members that were not recorded are decided on again: another attempt
    /// on them is still under way.
    pub(super) fn begun(
        &mut self,
        wanted: &[PowerTransition],
        begun: Vec<PowerTransition>,
    ) -> Vec<EngineCommand> {
        let written: HashSet<_> = begun.iter().flat_map(attempts).collect();
        let mut left = Vec::new();
        for (id, attempt) in wanted.iter().flat_map(attempts).filter(|one| !written.contains(one)) {
            self.nodes.withdraw_attempt(&id, attempt);
            left.push(id);
        }
        let ids: Vec<TransitionId> = begun.iter().map(|transition| transition.id.as_str().into()).collect();
        begun.into_iter().for_each(|transition| self.transitions.put(transition));
        vec![EngineCommand::Decide { ids: left, pause: BEHIND }, step_now(ids)]
    }

    /// Makes members available for another decision that are not acted on any more.
    pub(super) fn withdraw(&mut self, gone: Vec<ComponentId>) -> [EngineCommand; 2] {
        gone.iter().for_each(|id| self.nodes.withdraw(id));
        [EngineCommand::Decide { ids: gone.clone(), pause: BEHIND }, EngineCommand::Read(gone)]
    }

    /// Queues components whose power and next action are to be judged now.
    pub(super) fn judge_again(ids: Vec<ComponentId>) -> [EngineCommand; 2] {
        [EngineCommand::Read(ids.clone()), EngineCommand::Decide { ids, pause: Duration::ZERO }]
    }
}
