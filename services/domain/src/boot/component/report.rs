//! The effect on a component of a report by one of the mesh's own services.
//!
//! Each kind of report has one author and changes only that author's fields. A report about an outdated record is
//! [`Stale`]: it changes nothing, and its author reports again once it sees the current record. A report that repeats
//! the record returns `Ok(None)`, so that repeating is harmless.

use std::sync::Arc;

use crate::{
    boot::component::{
        Action, BegunBoot, BootPreparation, Component, DesiredState, EventStats, LastAction, NumberedToken,
        Phase, StagedState, Status,
        artifacts::BootArtifacts,
        turns::turns_with,
        write::{begin_generation, begin_wish, cleared_actual_state, hooked_merge},
    },
    core::{
        decision::DecisionVersion,
        id::{ComponentId, Tenant},
        time::Timestamp,
        trouble::{ErrorChange, Trouble, TroubleKind},
    },
};

pub mod inventory;

/// Wish of a session for a member. Written by the session manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Unique id of the session: repeating an assignment under the same id changes nothing, and ids sort by the
    /// creation of their sessions.
    pub assignment_id: Arc<str>,
    /// Name of the session as components show it.
    pub session: Arc<str>,
    /// Tenant of the session.
    pub tenant: Tenant,
    /// Artifacts to boot.
    pub boot_artifacts: Arc<BootArtifacts>,
    /// The wanted configuration; empty: none.
    pub configuration: Arc<str>,
    /// Whether to forget the reported boot, so that the node boots again (reboot).
    pub clear_actual_state: bool,
    /// Whether to forget the token of the desired state (shutdown).
    pub clear_bss_token: bool,
    /// Whether only to stage the state.
    pub stage: bool,
}

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
            || self.changes_error(component)
    }

    /// Returns whether `component` shows another error. Errors of different kinds differ even if their texts are equal.
    fn changes_error(&self, component: &Component) -> bool {
        match &self.error {
            ErrorChange::Keep => false,
            ErrorChange::Clear => !component.error_text().is_empty(),
            ErrorChange::Show(trouble) => component.error_trouble().as_ref() != Some(trouble),
        }
    }
}

/// Power action that begins now, or was refused. Written by the power controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionReport {
    /// Id of the component.
    pub id: ComponentId,
    /// Generation that the action belongs to.
    pub generation: u64,
    /// Kind of action, one of the three powering actions.
    pub action: Action,
    /// Number of the attempt, counted from 1.
    pub attempt: u32,
    /// Trouble of the attempt: a refusal, a failure, or a peer that it waits for; `None`: there is none.
    pub trouble: Option<Arc<Trouble>>,
    /// Whether the attempt is known not to have had its effect and will not have it.
    pub failed: bool,
}

/// Outcome of preparing a power-on. Written by the config coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparationReport {
    /// Id of the component.
    pub id: ComponentId,
    /// Generation that was prepared.
    pub generation: u64,
    /// Power-on attempt that was prepared, counted from 1.
    pub attempt: u32,
    /// Token of the boot script server; empty: no boot data were needed or the preparation failed.
    pub bss_token: Arc<str>,
    /// Number under which the registry has stored the token; 0 without a token.
    pub token_number: u64,
    /// Trouble of the preparation; `None`: it succeeded.
    pub trouble: Option<Arc<Trouble>>,
    /// Whether an upstream refused the data of this very component, which spends the power-on attempt.
    pub refused: bool,
}

/// Error of a report whose component has moved on since its author read the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the component has changed since it was looked at")]
pub struct Stale;

/// Gives a component to a session (BOS reference 5.4.4, 5.4.6). The latest session wins: ids of sessions are in the
/// order of their creation. Each session gets a component once. A session that repeats its assignment after a crash
/// does not take a component back, whether from a later session, from an earlier one's staged state that was applied
/// since, or from an operator who wrote it.
///
/// # Errors
/// When a later session has the component, or this one had it and has it no more.
pub fn assign(
    component: &Component,
    assignment: &Assignment,
    now: Timestamp,
) -> Result<Option<Component>, Stale> {
    if assignment.stage {
        return stage(component, assignment, now);
    }
    if component.assignment == assignment.assignment_id && *component.session_name() == *assignment.session {
        return Ok(None);
    }
    let latest = (&component.assignment).max(&component.latest_assignment);
    if *latest > assignment.assignment_id || component.latest_assignment == assignment.assignment_id {
        return Err(Stale);
    }
    let patch = Component {
        actual_state: assignment.clear_actual_state.then(cleared_actual_state),
        desired_state: Some(DesiredState {
            boot_artifacts: Some(assignment.boot_artifacts.clone()),
            configuration: Some(assignment.configuration.clone()),
            bss_token: assignment.clear_bss_token.then(Arc::default),
            last_updated: None,
        }),
        last_action: Some(LastAction {
            action: Some(Action::SessionSetup),
            failed: Some(false),
            last_updated: None,
        }),
        enabled: Some(true),
        error: Some(Arc::default()),
        session: Some(assignment.session.clone()),
        ..Component::new(component.id.clone())
    };
    let mut assigned = hooked_merge(component, patch, |_| None, now);
    assigned.assignment.clone_from(&assignment.assignment_id);
    assigned.latest_assignment.clone_from(&assignment.assignment_id);
    assigned.session_tenant = Some(assignment.tenant.clone());
    begin_wish(&mut assigned);
    Ok(Some(assigned))
}

/// Stages a state for later. A shutdown names its session too, so that it can be applied (BUG-20). A state that was
/// applied already, while the session was interrupted, is not staged again.
fn stage(component: &Component, assignment: &Assignment, now: Timestamp) -> Result<Option<Component>, Stale> {
    let id = &assignment.assignment_id;
    let staged = StagedState {
        boot_artifacts: Some(assignment.boot_artifacts.clone()),
        configuration: Some(assignment.configuration.clone()),
        session: Some(assignment.session.clone()),
        ..StagedState::default()
    };
    let stored = component.staged_state.as_ref();
    if component.assignment == *id || stored.is_some_and(|stored| same_stage(stored, &staged, id)) {
        return Ok(None);
    }
    if stored.is_some_and(|stored| stored.assignment > *id) {
        return Err(Stale);
    }
    let patch = Component {
        staged_state: Some(staged.into()),
        error: Some(Arc::default()),
        ..Component::new(component.id.clone())
    };
    let mut changed = hooked_merge(component, patch, |_| None, now);
    if let Some(staged) = changed.staged_state.as_mut().map(Arc::make_mut) {
        staged.tenant = Some(assignment.tenant.clone());
        (staged.assignment, staged.applied) = (id.clone(), false);
    }
    Ok(Some(changed))
}

fn same_stage(stored: &StagedState, staged: &StagedState, id: &str) -> bool {
    let artifacts = match (&stored.boot_artifacts, &staged.boot_artifacts) {
        (Some(stored), Some(staged)) => stored.same_texts(staged),
        (stored, staged) => stored.is_none() && staged.is_none(),
    };
    let names = stored.configuration == staged.configuration && stored.session == staged.session;
    artifacts && names && *stored.assignment == *id
}

/// Writes the decision about a component, with the consequences of BOS reference 5.3.2: a finished phase zeroes the
/// counters of attempts, and leaving `powering_off` forgets the reported boot. Where a finished component stays enabled
/// a generation begins: later work on it is separate from the work before.
///
/// # Errors
/// When the component has changed in any way since it was evaluated, or was decided on by newer rules or options for the
/// same wish.
pub fn status(
    component: &Component,
    report: &StatusReport,
    now: Timestamp,
) -> Result<Option<Component>, Stale> {
    if report.revision != component.revision || report.decided_by.is_older_than(component.decided_by) {
        return Err(Stale);
    }
    if !report.changes(component) {
        return Ok(None);
    }
    let old_phase = component.phase();
    let moved = report.phase != old_phase;
    let failed_now = report.action_failed && !component.last_action_failed();
    let patch = Component {
        actual_state: (moved && old_phase == Phase::PoweringOff).then(cleared_actual_state),
        event_stats: (moved && report.phase == Phase::None).then(EventStats::zeros),
        last_action: failed_now.then(|| LastAction { failed: Some(true), ..LastAction::default() }),
        status: Some(Status {
            phase: moved.then_some(report.phase),
            status_override: Some(report.status_override.clone()),
        }),
        enabled: report.settled.then_some(false),
        error: report.error.shared_text(),
        error_kind: report.error.trouble().map_or(TroubleKind::default(), Trouble::kind),
        ..Component::new(component.id.clone())
    };
    let mut changed = hooked_merge(component, patch, |_| None, now);
    changed.decided_by = report.decided_by;
    if moved && report.phase == Phase::None && !report.settled {
        begin_generation(&mut changed);
    }
    Ok(Some(changed))
}

/// Records that an attempt at a power action begins, before the upstream is called, or that it was refused or failed.
/// The first report of an attempt counts it; later ones only carry its trouble.
///
/// An attempt that waited for the upstream begins when the upstream has taken it: only then its time runs. The time of
/// an attempt that fails counts from its beginning.
///
/// # Errors
/// When the generation has passed, when others have followed the attempt, or when an attempt would begin on a component
/// that is disabled, locked, not listed, held or in a phase that does not ask for the action: the author decided on an
/// older record.
pub fn action(
    component: &Component,
    report: &ActionReport,
    now: Timestamp,
) -> Result<Option<Component>, Stale> {
    if report.generation != component.generation {
        return Err(Stale);
    }
    if report.attempt > component.attempts(report.action) {
        return if asks_for(component, report.action) {
            Ok(Some(begin(component, report, now)))
        } else {
            Err(Stale)
        };
    }
    let latest =
        report.attempt == component.attempts(report.action) && component.last_action() == Some(report.action);
    let fails_now = report.failed && !component.last_action_failed();
    if !latest {
        return Err(Stale);
    }
    if component.power_trouble == report.trouble && !fails_now {
        return Ok(None);
    }
    let begins_now = component.waits_for_power_upstream() && report.trouble.is_none();
    let patch = Component {
        last_action: (fails_now || begins_now)
            .then(|| LastAction { failed: Some(fails_now), ..LastAction::default() }),
        ..Component::new(component.id.clone())
    };
    let mut merged = hooked_merge(component, patch, |_| None, now);
    if let Some(last) = merged.last_action.as_mut().filter(|_| fails_now) {
        last.last_updated = component.last_action_at();
    }
    Ok(Some(Component { power_trouble: report.trouble.clone(), ..merged }))
}

fn asks_for(component: &Component, action: Action) -> bool {
    let phase = match action {
        Action::PoweringOn => Phase::PoweringOn,
        Action::PoweringOffGracefully | Action::PoweringOffForcefully => Phase::PoweringOff,
        Action::ActualStateCleanup | Action::ApplyStaged | Action::NewlyDiscovered | Action::SessionSetup => {
            return false;
        }
    };
    component.is_enabled()
        && component.may_be_switched()
        && component.status_override().is_empty()
        && component.phase() == phase
}

fn begin(component: &Component, report: &ActionReport, now: Timestamp) -> Component {
    let counter = |action| (report.action == action).then_some(report.attempt);
    let patch = Component {
        last_action: Some(LastAction {
            action: Some(report.action),
            failed: Some(report.failed),
            last_updated: None,
        }),
        event_stats: Some(EventStats {
            power_on_attempts: counter(Action::PoweringOn),
            power_off_graceful_attempts: counter(Action::PoweringOffGracefully),
            power_off_forceful_attempts: counter(Action::PoweringOffForcefully),
        }),
        ..Component::new(component.id.clone())
    };
    let merged = hooked_merge(component, patch, |_| None, now);
    let boot = if report.action == Action::PoweringOn {
        begun_boot(component, report)
    } else {
        component.boot.clone()
    };
    let turns = turns_with(component, report.action, now);
    Component { power_trouble: report.trouble.clone(), boot, turns, ..merged }
}

/// Returns the boot that begins with a power-on. Every earlier report belongs to an earlier boot: the node is off.
fn begun_boot(component: &Component, report: &ActionReport) -> Option<BegunBoot> {
    let token = component.prepared_token.clone()?;
    Some(BegunBoot { generation: report.generation, attempt: report.attempt, token, reported: false })
}

/// Records the outcome of preparing a power-on. The token of the accepted boot data becomes part of the desired state
/// without counting as a change of it (BOS reference 5.5, step 4b). An upstream that refuses the data of the component
/// spends the attempt, once; one that does not answer spends nothing.
///
/// # Errors
/// When the generation has passed.
pub fn preparation(
    component: &Component,
    report: &PreparationReport,
    _now: Timestamp,
) -> Result<Option<Component>, Stale> {
    if report.generation != component.generation {
        return Err(Stale);
    }
    let known = component.preparation.as_ref().filter(|known| known.generation == report.generation);
    if known.is_some_and(|known| known.attempt > report.attempt) {
        return Ok(None);
    }
    let mut prepared = component.clone();
    prepared.preparation = Some(BootPreparation {
        generation: report.generation,
        attempt: report.attempt,
        trouble: report.trouble.clone(),
    });
    if !report.bss_token.is_empty() {
        prepared.desired_state.get_or_insert_default().bss_token = Some(report.bss_token.clone());
        prepared.prepared_token =
            Some(NumberedToken { token: report.bss_token.clone(), number: report.token_number });
    }
    if report.refused && report.attempt > component.attempts(Action::PoweringOn) {
        prepared.event_stats.get_or_insert_default().power_on_attempts = Some(report.attempt);
    }
    Ok((prepared != *component).then_some(prepared))
}

#[cfg(test)]
mod tests;
