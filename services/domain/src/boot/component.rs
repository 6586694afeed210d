//! Machines that boot, as the registry stores them (BOS reference 3.2).
//!
//! A record has exactly the members that were written, so nearly every member is an `Option`: a member that was never
//! given differs from an empty one.
//!
//! Thousands of components have equal members: those of one session share its name, its configuration, its token. So
//! texts, artifacts and staged states are shared, and a changed copy of a record shares its unchanged parts.

use std::time::Duration;

use crate::{
    boot::bos::options::Options,
    core::{
        id::ComponentId,
        shared_part::SharedPart,
        time::Timestamp,
        trouble::{Trouble, TroubleKind},
    },
};
use artifacts::BootArtifacts;

mod action;
pub mod artifacts;
pub mod boot_token;
pub mod event;
pub mod filter;
mod group;
mod limits;
pub mod lock_belief;
pub mod loss;
mod part;
mod patch;
mod pause_mark;
mod presence;
pub mod repetition;
pub mod report;
mod sharing;
mod shutdown;
pub mod status;
pub mod turns;
pub mod work_phase;
pub mod write;

pub use action::{Action, Phase, PowerTurns};
pub use group::{
    ComponentEvaluation, ComponentInventory, ComponentPower, ComponentPreparation, ComponentWish,
    ReportedBoots,
};
pub use limits::validate;
pub use part::{
    ActualState, BegunBoot, BootPreparation, DesiredState, EventStats, LastAction, LateReport, NumberedToken,
    SessionReference, StagedState, Status,
};
pub use patch::ComponentPatch;
pub use pause_mark::{PauseHolder, PauseMark};
pub use presence::{ERROR_ABSENT, ERROR_DOUBTFUL, InventoryPresence};
pub use sharing::ComponentPools;

#[cfg(test)]
pub(crate) mod view;

/// Node of the fleet.
///
/// Identity and bookkeeping are the registry's own. Every other member is in the group of its author. Groups that are
/// mostly equal in thousands of components are shared; the reported boots have the time of each report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// Identity, usually an xname.
    pub id: ComponentId,
    /// Revision of the last change; the registry's store sets it.
    pub revision: u64,
    /// Revision of the latest change that has events; the registry's store sets it.
    pub last_event: u64,
    /// Number of times the wanted state or the bookkeeping of actions was set. Evidence and actions belong to one
    /// generation.
    pub generation: u64,
    /// Wish of a session or an operator.
    pub wish: SharedPart<ComponentWish>,
    /// Decision of the status evaluator.
    pub evaluation: SharedPart<ComponentEvaluation>,
    /// Power actions.
    pub power: SharedPart<ComponentPower>,
    /// Preparation of boots.
    pub preparation: SharedPart<ComponentPreparation>,
    /// Boots that the node reported.
    pub reported: ReportedBoots,
    /// Answers of the inventory.
    pub inventory: SharedPart<ComponentInventory>,
}

impl Component {
    /// Creates a record with nothing but its id.
    pub fn new(id: ComponentId) -> Self {
        Self {
            id,
            revision: 0,
            last_event: 0,
            generation: 0,
            wish: SharedPart::default(),
            evaluation: SharedPart::default(),
            power: SharedPart::default(),
            preparation: SharedPart::default(),
            reported: ReportedBoots::default(),
            inventory: SharedPart::default(),
        }
    }

    /// Returns the record after a change.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Notes when the trouble began that the component shows after a change at `now`. `before`: the decision before it.
    pub(crate) fn note_trouble_begin(&mut self, before: &ComponentEvaluation, now: Timestamp) {
        SharedPart::update(&mut self.evaluation, |evaluation| evaluation.note_begin(before, now));
    }

    /// Returns whether Reveille acts on the node.
    pub fn is_enabled(&self) -> bool {
        self.wish.enabled == Some(true)
    }

    /// Returns whether the inventory allows switching the node: it lists the node and does not lock it.
    pub fn may_be_switched(&self) -> bool {
        !self.inventory.locked && self.inventory.presence == InventoryPresence::Listed
    }

    /// Returns whether the session of the node is paused, so that nothing begins for the node.
    pub fn is_paused(&self) -> bool {
        self.wish.pause.is_some()
    }

    /// Returns the trouble of a node whose session is paused.
    pub(crate) fn pause_trouble(&self) -> Option<Trouble> {
        Some(self.wish.pause.as_ref()?.trouble(self.session_name()))
    }

    /// Returns the phase; a missing one is none.
    pub fn phase(&self) -> Phase {
        self.evaluation.status.as_ref().and_then(|status| status.phase).unwrap_or_default()
    }

    /// Returns the status override; empty: none.
    pub fn status_override(&self) -> &str {
        self.evaluation
            .status
            .as_ref()
            .and_then(|status| status.status_override.as_deref())
            .unwrap_or_default()
    }

    /// Returns the last action, if there was any.
    pub fn last_action(&self) -> Option<Action> {
        self.power.last_action.as_ref().and_then(|last| last.action)
    }

    /// Returns whether the last action is known not to have had its effect.
    pub fn last_action_failed(&self) -> bool {
        self.power.last_action.as_ref().is_some_and(|last| last.failed == Some(true))
    }

    /// Returns when the last action began or failed; `None`: unknown, which counts as longer ago than any limit.
    pub fn last_action_at(&self) -> Option<Timestamp> {
        self.power.last_action.as_ref().and_then(|last| last.last_updated)
    }

    /// Returns the first moment at which the last action is older than `wait`: one millisecond after the wait, since
    /// ages are compared strictly (BOS reference 3.9). `None`: it is older at any time.
    pub(crate) fn last_action_wait_ends(&self, wait: Duration) -> Option<Timestamp> {
        Some(self.last_action_at()?.plus(wait).plus(Duration::from_millis(1)))
    }

    /// Returns the artifacts that the node should boot.
    pub fn desired_artifacts(&self) -> Option<&BootArtifacts> {
        self.wish.desired_state.as_ref().and_then(|desired| desired.boot_artifacts.as_deref())
    }

    /// Returns the artifacts that the node reported.
    pub fn actual_artifacts(&self) -> Option<&BootArtifacts> {
        self.reported.actual_state.as_ref().and_then(|actual| actual.boot_artifacts.as_deref())
    }

    /// Returns whether the node runs the wanted artifacts, as far as the boot that began last has been reported. An
    /// actual state from before that boot is no evidence, even if its artifacts are the wanted ones.
    pub fn runs_wanted(&self) -> bool {
        let is_of_this_boot = self.reported.boot.as_ref().is_none_or(|boot| boot.reported);
        is_of_this_boot && artifacts::matches(self.actual_artifacts(), self.desired_artifacts())
    }

    /// Returns when the node last reported the boot that began last, by the clock of the registry; `None`: it has not,
    /// or reported another boot, even one of the same artifacts.
    pub fn boot_reported_at(&self) -> Option<Timestamp> {
        let actual = self.reported.actual_state.as_ref()?;
        let token = match &self.reported.boot {
            Some(boot) => Some(&*boot.token.token).filter(|_| boot.reported),
            None => self.wish.desired_state.as_ref()?.bss_token.as_deref(),
        };
        let token = token.filter(|token| !token.is_empty());
        actual.last_updated.filter(|_| token.is_some() && actual.bss_token.as_deref() == token)
    }

    /// Returns whether the node has reported the token that was prepared for the power-on attempt under way.
    pub fn has_reported_attempt(&self) -> bool {
        let is_under_way = |boot: &SharedPart<BegunBoot>| {
            (boot.generation, boot.attempt) == (self.generation, self.attempts(Action::PoweringOn))
        };
        self.last_action() == Some(Action::PoweringOn)
            && self.reported.boot.as_ref().is_some_and(is_under_way)
            && self.boot_reported_at().is_some()
    }

    /// Returns the number of power-on attempts of this generation that are over: all but one that was made and has not
    /// failed yet.
    pub fn spent_power_ons(&self) -> u32 {
        let is_called = self.last_action() == Some(Action::PoweringOn) && !self.last_action_failed();
        self.attempts(Action::PoweringOn).saturating_sub(is_called.into())
    }

    /// Returns the number of power actions of this generation that have begun.
    pub fn begun_actions(&self) -> u32 {
        let actions = [Action::PoweringOn, Action::PoweringOffGracefully, Action::PoweringOffForcefully];
        actions.into_iter().map(|action| self.attempts(action)).fold(0, u32::saturating_add)
    }

    /// Returns whether a shutdown of this generation was called and has not failed.
    pub fn is_being_shut_down(&self) -> bool {
        self.phase() == Phase::PoweringOff
            && self.is_switched_off()
            && !self.power.acted_before
            && self.last_action().is_some_and(|action| self.attempts(action) > 0)
    }

    /// Returns whether the last action switches the node off and is not known to have failed, in whichever generation.
    pub(crate) fn is_switched_off(&self) -> bool {
        let action = self.last_action();
        let is_off = matches!(action, Some(Action::PoweringOffGracefully | Action::PoweringOffForcefully));
        is_off && !self.last_action_failed()
    }

    /// Returns whether the node was asked to shut down in this generation, as far as is known: a single attempt that still
    /// waits for its upstream was not taken.
    pub(crate) fn may_be_shutting_down(&self) -> bool {
        let attempts =
            self.attempts(Action::PoweringOffGracefully) + self.attempts(Action::PoweringOffForcefully);
        let is_untaken = attempts == 1 && self.is_switched_off() && self.waits_for_power_upstream();
        self.phase() == Phase::PoweringOff && self.was_asked_to_shut_down() && !is_untaken
    }

    /// Returns whether the node was asked to shut down, or its power was cut, in this generation.
    pub fn was_asked_to_shut_down(&self) -> bool {
        shutdown::was_asked_to_shut_down(self)
    }

    /// Returns whether the node should be on.
    pub fn kernel_wanted(&self) -> bool {
        self.desired_artifacts().is_some_and(BootArtifacts::kernel_wanted)
    }

    /// Returns the configuration as written; `None` and an empty text both mean that none is wanted, but they differ in
    /// the comparison with a peer's record (BOS reference 5.2, "configuration set").
    pub fn desired_configuration(&self) -> Option<&str> {
        self.wish.desired_state.as_ref().and_then(|desired| desired.configuration.as_deref())
    }

    /// Returns the name of the session that owns the node; empty: none.
    pub fn session_name(&self) -> &str {
        self.wish.session_name()
    }

    /// Returns the session that staged a state, if any.
    pub fn staged_by(&self) -> Option<SessionReference> {
        let staged = self.wish.staged_state.as_ref()?;
        let name = staged.session.clone().filter(|name| !name.is_empty())?;
        Some(SessionReference { name, tenant: staged.tenant.clone(), id: staged.assignment.clone() })
    }

    /// Returns the name of the session that staged a state; empty: none.
    pub fn staged_session_name(&self) -> &str {
        self.wish.staged_session_name()
    }

    /// Returns the error text for operators; empty: no error.
    pub fn error_text(&self) -> &str {
        self.evaluation.error.as_deref().unwrap_or_default()
    }

    /// Returns the trouble that the error describes, if there is one.
    pub fn error_trouble(&self) -> Option<Trouble> {
        self.evaluation.trouble()
    }

    /// Returns whether the error passes as soon as its obstacle is gone.
    pub(crate) fn error_passes(&self) -> bool {
        !self.error_text().is_empty() && self.evaluation.error_kind.passes()
    }

    /// Returns whether the error passes when the component is not acted on any more.
    pub(crate) fn error_passes_when_left_alone(&self) -> bool {
        !self.error_text().is_empty() && self.evaluation.error_kind.passes_when_left_alone()
    }

    /// Returns the text about a refused or waiting power action; empty: the last one has no trouble.
    pub fn power_error(&self) -> &str {
        self.power.trouble.as_ref().map_or("", |trouble| trouble.text())
    }

    /// Returns the kind of the trouble with the last power action, if there is any.
    pub fn power_trouble_kind(&self) -> Option<TroubleKind> {
        self.power.trouble.as_ref().map(|trouble| trouble.kind())
    }

    /// Returns whether the last power action waits for its upstream. Its time does not run yet, and its attempt is not lost.
    pub fn waits_for_power_upstream(&self) -> bool {
        self.power_trouble_kind() == Some(TroubleKind::Waiting)
    }

    /// Returns the number of attempts at `action`; 0 for an action that is not counted.
    pub fn attempts(&self, action: Action) -> u32 {
        let Some(stats) = &self.power.event_stats else { return 0 };
        let counter = match action {
            Action::PoweringOn => stats.power_on_attempts,
            Action::PoweringOffGracefully => stats.power_off_graceful_attempts,
            Action::PoweringOffForcefully => stats.power_off_forceful_attempts,
            Action::ActualStateCleanup
            | Action::ApplyStaged
            | Action::NewlyDiscovered
            | Action::SessionSetup => None,
        };
        counter.unwrap_or(0)
    }

    /// Returns the preparation of that power-on attempt, counted from 1, in the current generation. The preparation of
    /// another attempt or generation is no evidence for it.
    pub fn preparation_of(&self, attempt: u32) -> Option<&BootPreparation> {
        let generation = self.generation;
        self.preparation.outcome.as_ref().filter(|one| (one.generation, one.attempt) == (generation, attempt))
    }

    /// Returns the most attempts per power action (BOS reference 5.15).
    pub fn retry_limit(&self, options: &Options) -> u32 {
        self.wish.retry_policy.unwrap_or(options.default_retry_policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_components_own_policy_goes_before_the_option() {
        let mut component = view::bare();
        let options = Options::default();
        assert_eq!(component.retry_limit(&options), 3);
        component.wish.retry_policy = Some(0);
        assert_eq!(component.retry_limit(&options), 0);
    }
}
