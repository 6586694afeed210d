//! Reports of the status evaluator.

use std::sync::Arc;

use crate::{
    boot::component::{
        Component, ComponentEvaluation, Phase,
        report::{AuthorReport, Consequence, Stale},
    },
    core::{
        decision::DecisionVersion,
        id::ComponentId,
        time::Timestamp,
        trouble::{ErrorChange, Trouble, TroubleKind},
    },
};

/// Decision about a component. Written by the status evaluator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusReport {
    /// Id of the component.
    pub id: ComponentId,
    /// Revision of the record that was evaluated.
    pub revision: u64,
    /// Phase of the component from now on.
    pub phase: Phase,
    /// Word that replaces the computed status; empty: none.
    pub status_override: Arc<str>,
    /// Whether the component is finished or failed, so that no service acts on it any more.
    pub settled: bool,
    /// Whether the last action is known not to have had its effect.
    pub action_failed: bool,
    /// Whether evidence of the generation is missing, so that nothing but the wait for it was decided.
    pub awaits_evidence: bool,
    /// Change of the error that the component shows.
    pub error: ErrorChange,
    /// Rules and options that the decision was made with.
    pub decided_by: DecisionVersion,
    /// Word for the rule that decided, for the event of the change.
    pub reason: Arc<str>,
}

impl StatusReport {
    /// Returns whether `component` differs from the report.
    pub fn changes(&self, component: &Component) -> bool {
        self.phase != component.phase()
            || *self.status_override != *component.status_override()
            || self.settled && component.is_enabled()
            || self.action_failed && !component.last_action_failed()
            || self.shows_other_error(component)
            || self.decides_first(component)
    }

    /// Returns whether this is the first decision in the generation that rests on evidence.
    fn decides_first(&self, component: &Component) -> bool {
        component.evaluation.is_undecided && component.is_enabled() && !self.awaits_evidence
    }

    /// Returns whether the last report of the node is void because its shutdown ends. A node that runs as wanted and was
    /// never asked to shut down keeps its report. BOS forgets that report, and so boots the node again.
    fn outdates_report(&self, before: &Component) -> bool {
        let is_asked = before.was_asked_to_shut_down() || before.is_switched_off();
        let runs_on = before.kernel_wanted() && before.runs_wanted() && self.phase != Phase::PoweringOn;
        self.phase != before.phase() && before.phase() == Phase::PoweringOff && (is_asked || !runs_on)
    }

    /// Returns whether `component` shows another error. Errors of different kinds differ even if their texts are equal.
    fn shows_other_error(&self, component: &Component) -> bool {
        match &self.error {
            ErrorChange::Keep => false,
            ErrorChange::Clear => !component.error_text().is_empty(),
            ErrorChange::Show(trouble) => component.error_trouble().as_ref() != Some(trouble),
        }
    }
}

/// Writes the decision about a component, with the consequences of BOS reference 5.3.2: a finished phase zeroes the
/// counters of attempts, and leaving `powering_off` forgets the reported boot, unless nobody had asked the node to shut down.
/// Where a finished component stays enabled a generation begins: later work on it is separate from the work before.
///
/// A decision is stale when the component has changed in any way since it was evaluated, or was decided on by newer
/// rules or options for the same wish.
impl AuthorReport for StatusReport {
    type Group = ComponentEvaluation;

    fn group(component: &mut Component) -> &mut ComponentEvaluation {
        &mut component.evaluation
    }

    fn has_news(&self, component: &Component) -> Result<bool, Stale> {
        let decided_by = component.evaluation.decided_by;
        if self.revision != component.revision || self.decided_by.is_older_than(decided_by) {
            return Err(Stale);
        }
        Ok(self.changes(component))
    }

    fn write(&self, evaluation: &mut ComponentEvaluation, before: &Component, _now: Timestamp) {
        let status = evaluation.status.get_or_insert_default();
        if self.phase != before.phase() {
            status.phase = Some(self.phase);
        }
        status.status_override = Some(self.status_override.clone());
        if let Some(text) = self.error.shared_text() {
            evaluation.error = Some(text);
            evaluation.error_kind = self.error.trouble().map_or(TroubleKind::default(), Trouble::kind);
        }
        evaluation.decided_by = self.decided_by;
        evaluation.is_undecided &= self.awaits_evidence;
    }

    fn consequences(&self, before: &Component) -> Vec<Consequence> {
        let has_moved = self.phase != before.phase();
        let has_finished = has_moved && self.phase == Phase::None;
        let has_failed = self.action_failed && !before.last_action_failed();
        let consequences = [
            (self.outdates_report(before), Consequence::ReportForgotten),
            (has_finished, Consequence::AttemptsForgotten),
            (has_failed, Consequence::ActionFailed),
            (self.settled, Consequence::Disabled),
            (has_finished && !self.settled, Consequence::GenerationBegan),
        ];
        consequences.into_iter().filter_map(|(follows, consequence)| follows.then_some(consequence)).collect()
    }
}
