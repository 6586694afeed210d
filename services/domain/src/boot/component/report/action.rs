//! Reports of the power controller.

use std::sync::Arc;

use crate::{
    boot::component::{
        Action, Component, ComponentPower, LastAction, Phase,
        report::{AuthorReport, Consequence, Stale},
        turns::turns_with,
    },
    core::{id::ComponentId, time::Timestamp, trouble::Trouble},
};

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

/// Records that an attempt at a power action begins, before the upstream is called, or that it was refused or failed.
/// The first report of an attempt counts it; later ones only carry its trouble.
///
/// The time of an attempt that waits for the upstream runs from when the upstream takes it, and that of one that fails
/// from its first report. The reason of a failure stays until the next attempt.
///
/// A report is stale when the generation has passed, when other attempts have followed, or when an attempt would begin
/// on a component that is disabled, paused, locked, not listed, held, not decided about yet in its generation, or in a
/// phase that does not ask for the action.
impl AuthorReport for ActionReport {
    type Group = ComponentPower;

    fn group(component: &mut Component) -> &mut ComponentPower {
        &mut component.power
    }

    fn has_news(&self, component: &Component) -> Result<bool, Stale> {
        if self.generation != component.generation {
            return Err(Stale);
        }
        if self.begins(component) {
            return if asks_for(component, self.action) { Ok(true) } else { Err(Stale) };
        }
        let is_latest =
            self.attempt == component.attempts(self.action) && component.last_action() == Some(self.action);
        if is_latest {
            let tells = component.power.trouble != self.trouble && !self.leaves_reason(component);
            Ok(tells || self.fails_now(component))
        } else {
            Err(Stale)
        }
    }

    fn write(&self, power: &mut ComponentPower, before: &Component, now: Timestamp) {
        if self.begins(before) {
            self.count(power);
            power.turns = turns_with(before, self.action, now);
            power.acted_before = false;
            let (action, failed) = (Some(self.action), Some(self.failed));
            power.last_action = Some(LastAction { action, failed, last_updated: Some(now) });
        } else if self.fails_now(before) {
            power.last_action.get_or_insert_default().failed = Some(true);
        } else if before.waits_for_power_upstream() && self.trouble.is_none() && !self.failed {
            let last = power.last_action.get_or_insert_default();
            (last.failed, last.last_updated) = (Some(false), Some(now));
        }
        if !self.leaves_reason(before) {
            power.trouble.clone_from(&self.trouble);
        }
    }

    fn consequences(&self, before: &Component) -> Vec<Consequence> {
        if !self.begins(before) {
            return Vec::new();
        }
        match self.action {
            Action::PoweringOn => vec![Consequence::BootBegan { attempt: self.attempt }],
            Action::PoweringOffGracefully | Action::PoweringOffForcefully => vec![Consequence::ShutdownBegan],
            Action::ActualStateCleanup
            | Action::ApplyStaged
            | Action::NewlyDiscovered
            | Action::SessionSetup => Vec::new(),
        }
    }
}

impl ActionReport {
    /// Returns whether the attempt may still have to be counted. `component` may be an earlier record.
    pub fn may_begin(&self, component: &Component) -> bool {
        self.generation != component.generation || self.begins(component)
    }

    /// Returns whether the attempt has not been counted yet.
    fn begins(&self, component: &Component) -> bool {
        self.attempt > component.attempts(self.action)
    }

    /// Returns whether the attempt failed with a reason that this report, which has none, does not take away. The end of a
    /// wait may cross the report of the failure.
    fn leaves_reason(&self, component: &Component) -> bool {
        let has_reason = component.power_trouble_kind().is_some_and(|kind| !kind.passes());
        !self.begins(component) && self.trouble.is_none() && component.last_action_failed() && has_reason
    }

    fn fails_now(&self, component: &Component) -> bool {
        self.failed && !component.last_action_failed()
    }

    fn count(&self, power: &mut ComponentPower) {
        let stats = power.event_stats.get_or_insert_default();
        let counter = match self.action {
            Action::PoweringOn => &mut stats.power_on_attempts,
            Action::PoweringOffGracefully => &mut stats.power_off_graceful_attempts,
            Action::PoweringOffForcefully => &mut stats.power_off_forceful_attempts,
            Action::ActualStateCleanup
            | Action::ApplyStaged
            | Action::NewlyDiscovered
            | Action::SessionSetup => return,
        };
        *counter = Some(self.attempt);
    }
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
        && !component.is_paused()
        && !component.evaluation.is_undecided
        && component.may_be_switched()
        && component.status_override().is_empty()
        && component.phase() == phase
}
