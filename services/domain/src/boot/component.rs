//! Machines that boot, as the registry stores them (BOS reference 3.2).
//!
//! A record has exactly the members that were written, so nearly every member is an `Option`: a member that was never
//! given differs from an empty one.
//!
//! Thousands of components have equal members: those of one session share its name, its configuration, its token. So
//! texts, artifacts and staged states are shared, and a changed copy of a record shares its unchanged parts.

use std::{sync::Arc, time::Duration};

use crate::{
    boot::bos::options::Options,
    core::{
        decision::DecisionVersion,
        id::{ComponentId, Tenant},
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
mod limits;
pub mod loss;
mod presence;
pub mod repetition;
pub mod report;
pub mod status;
pub mod turns;
pub mod write;

pub use action::{Action, Phase, PowerTurns};
pub use limits::validate;
pub use presence::{ERROR_ABSENT, ERROR_DOUBTFUL, InventoryPresence};

#[cfg(test)]
pub(crate) mod view;

/// Node of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// Identity, usually an xname.
    pub id: ComponentId,
    /// Boot that the node reported.
    pub actual_state: Option<ActualState>,
    /// Wanted state of the node.
    pub desired_state: Option<DesiredState>,
    /// Wanted state of the node once the staged session is applied.
    pub staged_state: Option<Arc<StagedState>>,
    /// Last action on the node.
    pub last_action: Option<LastAction>,
    /// Number of attempts at each power action.
    pub event_stats: Option<EventStats>,
    /// Phase of the node, and its status override.
    pub status: Option<Status>,
    /// Whether Reveille acts on the node; missing counts as false.
    pub enabled: Option<bool>,
    /// Error text for operators; empty: no error.
    pub error: Option<Arc<str>>,
    /// Kind of the trouble that `error` describes; meaningless without a text.
    pub error_kind: TroubleKind,
    /// Name of the session that owns the node; empty: none.
    pub session: Option<Arc<str>>,
    /// Tenant of that session; `None`: unknown, the session is identified by its name alone. In a written record or
    /// patch: the tenant whose sessions the writer means.
    pub session_tenant: Option<Tenant>,
    /// Most attempts per power action; missing: the option `default_retry_policy`.
    pub retry_policy: Option<u32>,
    /// Revision of the last change; the registry's store sets it.
    pub revision: u64,
    /// Revision of the latest change that has events; the registry's store sets it.
    pub last_event: u64,
    /// Number of times the wanted state or the bookkeeping of actions was set. Evidence and actions belong to one
    /// generation.
    pub generation: u64,
    /// Outcome of the last preparation of a boot.
    pub preparation: Option<BootPreparation>,
    /// Unique id of the session that assigned the desired state; empty once desired state or session were written by an
    /// operator.
    pub assignment: Arc<str>,
    /// Unique id of the latest session that assigned the component, whoever owns it by now.
    pub latest_assignment: Arc<str>,
    /// Trouble with the last power action; `None`: there is none.
    pub power_trouble: Option<Arc<Trouble>>,
    /// Whether the inventory locks the node against power operations.
    pub locked: bool,
    /// Token that was prepared last.
    pub prepared_token: Option<NumberedToken>,
    /// Boot that began last, to which a report has to belong.
    pub boot: Option<BegunBoot>,
    /// Last report of a boot that was over when the report arrived.
    pub late_report: Option<Arc<LateReport>>,
    /// Whether the inventory lists the node, by answers since the generation began.
    pub presence: InventoryPresence,
    /// Rules and options of the last decision about the current wish.
    pub decided_by: DecisionVersion,
    /// Number of turns of the power for the current wish.
    pub turns: PowerTurns,
}

/// Token of the boot script server with its place in the order of all tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedToken {
    /// The token.
    pub token: Arc<str>,
    /// Number of the token: the registry stores a later token under a higher number.
    pub number: u64,
}

/// Boot that began with a power-on by Reveille.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunBoot {
    /// Generation of the component that the power-on was for.
    pub generation: u64,
    /// Attempt of the power-on, counted from 1.
    pub attempt: u32,
    /// Token that was prepared for it; reports with a lower number come from an earlier boot.
    pub token: NumberedToken,
    /// Whether the actual state was written since the power-on began; an older one belongs to an earlier boot.
    pub reported: bool,
}

/// Report of a boot that was over when the report arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateReport {
    /// Token that the node found on its kernel command line.
    pub token: Arc<str>,
    /// Artifacts of that boot.
    pub boot_artifacts: Arc<BootArtifacts>,
    /// Time of the first arrival of the report.
    pub reported_at: Timestamp,
}

/// Boot that the node reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActualState {
    /// Artifacts of the token.
    pub boot_artifacts: Option<Arc<BootArtifacts>>,
    /// Token that the node found on its kernel command line.
    pub bss_token: Option<Arc<str>>,
    /// Time at which the state was last reported or cleared.
    pub last_updated: Option<Timestamp>,
}

/// Wanted state of the node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DesiredState {
    /// Artifacts to boot; no kernel: the node should be off.
    pub boot_artifacts: Option<Arc<BootArtifacts>>,
    /// Name of the wanted configuration; empty: none.
    pub configuration: Option<Arc<str>>,
    /// Token of the boot data at the boot script server.
    pub bss_token: Option<Arc<str>>,
    /// Time at which artifacts or configuration were last written.
    pub last_updated: Option<Timestamp>,
}

/// Wanted state of the node once the staged session is applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct StagedState {
    /// Artifacts to boot.
    pub boot_artifacts: Option<Arc<BootArtifacts>>,
    /// Name of the wanted configuration; empty: none.
    pub configuration: Option<Arc<str>>,
    /// Name of the session that staged this; empty: none.
    pub session: Option<Arc<str>>,
    /// Tenant of that session; `None`: unknown, the session is identified by its name alone.
    pub tenant: Option<Tenant>,
    /// Unique id of that session; empty if an operator wrote its name.
    pub assignment: Arc<str>,
    /// Whether the state was applied since it was staged, and is still kept.
    pub applied: bool,
    /// Time at which the staged state was last written.
    pub last_updated: Option<Timestamp>,
}

/// Reference to a session in a component: by its id where that is known, or else by name and tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionReference {
    /// Name of the session.
    pub name: Arc<str>,
    /// Tenant of the session; `None`: unknown, the session is identified by its name alone.
    pub tenant: Option<Tenant>,
    /// Unique id of the session; empty if an operator wrote its name.
    pub id: Arc<str>,
}

/// Last action on the node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastAction {
    /// Kind of the action.
    pub action: Option<Action>,
    /// Whether the action is known not to have had its effect.
    pub failed: Option<bool>,
    /// Time at which the action began, or was found to have failed.
    pub last_updated: Option<Timestamp>,
}

/// Number of attempts at each power action since the desired state was set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventStats {
    /// Power-ons.
    pub power_on_attempts: Option<u32>,
    /// Power-offs that shut the node down.
    pub power_off_graceful_attempts: Option<u32>,
    /// Power-offs without a shutdown.
    pub power_off_forceful_attempts: Option<u32>,
}

impl EventStats {
    /// Returns counters without attempts.
    pub fn zeros() -> Self {
        Self {
            power_on_attempts: Some(0),
            power_off_graceful_attempts: Some(0),
            power_off_forceful_attempts: Some(0),
        }
    }
}

/// Phase of the node, and its status override.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Phase of the work on the node.
    pub phase: Option<Phase>,
    /// Word that replaces the computed status, such as `on_hold` or `failed`; empty: none.
    pub status_override: Option<Arc<str>>,
}

/// Outcome of the preparation of one power-on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootPreparation {
    /// Generation of the component that was prepared.
    pub generation: u64,
    /// Power-on attempt that was prepared, counted from 1.
    pub attempt: u32,
    /// Trouble at the end of the preparation; `None`: it succeeded.
    pub trouble: Option<Arc<Trouble>>,
}

impl BootPreparation {
    /// Returns the text about a failed preparation; empty: it succeeded.
    pub fn error(&self) -> &str {
        self.trouble.as_ref().map_or("", |trouble| trouble.text())
    }
}

impl Component {
    /// Creates a record with nothing but its id.
    pub fn new(id: ComponentId) -> Self {
        Self {
            id,
            actual_state: None,
            desired_state: None,
            staged_state: None,
            last_action: None,
            event_stats: None,
            status: None,
            enabled: None,
            error: None,
            error_kind: TroubleKind::default(),
            session: None,
            session_tenant: None,
            retry_policy: None,
            revision: 0,
            last_event: 0,
            generation: 0,
            preparation: None,
            assignment: Arc::default(),
            latest_assignment: Arc::default(),
            power_trouble: None,
            locked: false,
            prepared_token: None,
            boot: None,
            late_report: None,
            presence: InventoryPresence::default(),
            decided_by: DecisionVersion::default(),
            turns: PowerTurns::default(),
        }
    }

    /// Returns whether Reveille acts on the node.
    pub fn is_enabled(&self) -> bool {
        self.enabled == Some(true)
    }

    /// Returns whether the inventory allows switching the node: it lists the node and does not lock it.
    pub fn may_be_switched(&self) -> bool {
        !self.locked && self.presence == InventoryPresence::Listed
    }

    /// Returns the phase; a missing one is none.
    pub fn phase(&self) -> Phase {
        self.status.as_ref().and_then(|status| status.phase).unwrap_or_default()
    }

    /// Returns the status override; empty: none.
    pub fn status_override(&self) -> &str {
        self.status.as_ref().and_then(|status| status.status_override.as_deref()).unwrap_or_default()
    }

    /// Returns the last action, if there was any.
    pub fn last_action(&self) -> Option<Action> {
        self.last_action.as_ref().and_then(|last| last.action)
    }

    /// Returns whether the last action is known not to have had its effect.
    pub fn last_action_failed(&self) -> bool {
        self.last_action.as_ref().is_some_and(|last| last.failed == Some(true))
    }

    /// Returns when the last action began or failed; `None`: unknown, which counts as longer ago than any limit.
    pub fn last_action_at(&self) -> Option<Timestamp> {
        self.last_action.as_ref().and_then(|last| last.last_updated)
    }

    /// Returns the first moment at which the last action is older than `wait`: one millisecond after the wait, since
    /// ages are compared strictly (BOS reference 3.9). `None`: it is older at any time.
    pub(crate) fn last_action_wait_ends(&self, wait: Duration) -> Option<Timestamp> {
        Some(self.last_action_at()?.plus(wait).plus(Duration::from_millis(1)))
    }

    /// Returns the artifacts that the node should boot.
    pub fn desired_artifacts(&self) -> Option<&BootArtifacts> {
        self.desired_state.as_ref().and_then(|desired| desired.boot_artifacts.as_deref())
    }

    /// Returns the artifacts that the node reported.
    pub fn actual_artifacts(&self) -> Option<&BootArtifacts> {
        self.actual_state.as_ref().and_then(|actual| actual.boot_artifacts.as_deref())
    }

    /// Returns whether the node runs the wanted artifacts, as far as the boot that began last has been reported. An
    /// actual state from before that boot is no evidence, even if its artifacts are the wanted ones.
    pub fn runs_wanted(&self) -> bool {
        let is_of_this_boot = self.boot.as_ref().is_none_or(|boot| boot.reported);
        is_of_this_boot && artifacts::matches(self.actual_artifacts(), self.desired_artifacts())
    }

    /// Returns when the node last reported the boot that began last, by the clock of the registry; `None`: it has not,
    /// or reported another boot, even one of the same artifacts.
    pub fn boot_reported_at(&self) -> Option<Timestamp> {
        let actual = self.actual_state.as_ref()?;
        let token = match &self.boot {
            Some(boot) => Some(&*boot.token.token).filter(|_| boot.reported),
            None => self.desired_state.as_ref()?.bss_token.as_deref(),
        };
        let token = token.filter(|token| !token.is_empty());
        actual.last_updated.filter(|_| token.is_some() && actual.bss_token.as_deref() == token)
    }

    /// Returns whether the node has reported the token that was prepared for the power-on attempt under way.
    pub fn has_reported_attempt(&self) -> bool {
        let is_under_way = |boot: &BegunBoot| {
            (boot.generation, boot.attempt) == (self.generation, self.attempts(Action::PoweringOn))
        };
        self.last_action() == Some(Action::PoweringOn)
            && self.boot.as_ref().is_some_and(is_under_way)
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
        let action = self
            .last_action()
            .filter(|action| matches!(action, Action::PoweringOffGracefully | Action::PoweringOffForcefully));
        self.phase() == Phase::PoweringOff
            && !self.last_action_failed()
            && action.is_some_and(|action| self.attempts(action) > 0)
    }

    /// Returns whether the node should be on.
    pub fn kernel_wanted(&self) -> bool {
        self.desired_artifacts().is_some_and(BootArtifacts::kernel_wanted)
    }

    /// Returns the configuration as written; `None` and an empty text both mean that none is wanted, but they differ in
    /// the comparison with a peer's record (BOS reference 5.2, "configuration set").
    pub fn desired_configuration(&self) -> Option<&str> {
        self.desired_state.as_ref().and_then(|desired| desired.configuration.as_deref())
    }

    /// Returns the name of the session that owns the node; empty: none.
    pub fn session_name(&self) -> &str {
        self.session.as_deref().unwrap_or_default()
    }

    /// Returns the session that staged a state, if any.
    pub fn staged_by(&self) -> Option<SessionReference> {
        let staged = self.staged_state.as_ref()?;
        let name = staged.session.clone().filter(|name| !name.is_empty())?;
        Some(SessionReference { name, tenant: staged.tenant.clone(), id: staged.assignment.clone() })
    }

    /// Returns the name of the session that staged a state; empty: none.
    pub fn staged_session_name(&self) -> &str {
        self.staged_state.as_ref().and_then(|staged| staged.session.as_deref()).unwrap_or_default()
    }

    /// Returns the error text for operators; empty: no error.
    pub fn error_text(&self) -> &str {
        self.error.as_deref().unwrap_or_default()
    }

    /// Returns the trouble that the error describes, if there is one.
    pub fn error_trouble(&self) -> Option<Trouble> {
        Trouble::new(self.error_kind, self.error.clone()?)
    }

    /// Returns whether the error passes as soon as its obstacle is gone.
    pub(crate) fn error_passes(&self) -> bool {
        !self.error_text().is_empty() && self.error_kind.passes()
    }

    /// Returns whether the error passes when the component is not acted on any more.
    pub(crate) fn error_passes_when_left_alone(&self) -> bool {
        !self.error_text().is_empty() && self.error_kind.passes_when_left_alone()
    }

    /// Returns the text about a refused or waiting power action; empty: the last one has no trouble.
    pub fn power_error(&self) -> &str {
        self.power_trouble.as_ref().map_or("", |trouble| trouble.text())
    }

    /// Returns the kind of the trouble with the last power action, if there is any.
    pub fn power_trouble_kind(&self) -> Option<TroubleKind> {
        self.power_trouble.as_ref().map(|trouble| trouble.kind())
    }

    /// Returns whether the last power action waits for its upstream. Its time does not run yet, and its attempt is not lost.
    pub fn waits_for_power_upstream(&self) -> bool {
        self.power_trouble_kind() == Some(TroubleKind::Waiting)
    }

    /// Returns the number of attempts at `action`; 0 for an action that is not counted.
    pub fn attempts(&self, action: Action) -> u32 {
        let Some(stats) = &self.event_stats else { return 0 };
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
        self.preparation.as_ref().filter(|one| (one.generation, one.attempt) == (generation, attempt))
    }

    /// Returns the most attempts per power action (BOS reference 5.15).
    pub fn retry_limit(&self, options: &Options) -> u32 {
        self.retry_policy.unwrap_or(options.default_retry_policy)
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
        component.retry_policy = Some(0);
        assert_eq!(component.retry_limit(&options), 0);
    }
}
