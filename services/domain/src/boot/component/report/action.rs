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
/// An attempt that waited for the upstream begins when the upstream has taken it: only then its time runs. The time of
/// an attempt that fails counts from its beginning.
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
            Ok(component.power.trouble != self.trouble || self.fails_now(component))
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
        power.trouble.clone_from(&self.trouble);
    }

    fn consequences(&self, before: &Component) -> Vec<Consequence> {
        let has_begun = self.begins(before) && self.action == Action::PoweringOn;
        has_begun.then_some(Consequence::BootBegan { attempt: self.attempt }).into_iter().collect()
    }
}

impl ActionReport {
    /// Returns whether the attempt may not have been counted yet, by a record that may be an earlier one.
    pub fn may_begin(&self, component: &Component) -> bool {
        self.generation != component.generation || self.begins(component)
    }

    /// Returns whether the attempt has not been counted yet.
    fn begins(&self, component: &Component) -> bool {
        self.attempt > component.attempts(self.action)
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
