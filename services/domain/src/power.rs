//! When to act on the power of a node (BOS reference 5.5 to 5.7, 5.15).

use crate::{
    component::{Action, Component},
    evaluation::wait_ends,
    options::Options,
    status::{self, computed_status},
    time::Timestamp,
};

/// What to do about the power of a component now. Whether an earlier action is still unresolved is not part
/// of the record: the caller looks at its own transitions before it acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerDecision {
    /// Begin this attempt.
    Act {
        /// One of the three powering actions.
        action: Action,
        /// Which attempt it is in this generation, counted from 1.
        attempt: u32,
    },
    /// Decide again then: the last power-off still has time to work.
    Wait {
        /// First moment at which the decision differs.
        until: Timestamp,
    },
    /// Leave it alone until the record changes.
    Nothing {
        /// Why.
        reason: PowerIdle,
    },
}

/// Why nothing is done about the power of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PowerIdle {
    /// The component is not enabled.
    NotEnabled,
    /// An override such as `on_hold` or `failed` stands in the way.
    Overridden,
    /// Nothing about its power is wanted, or it was done.
    NotWanted,
    /// Boot data and configuration of the coming power-on are not in place yet.
    NotPrepared,
    /// Boot data or configuration of the coming power-on were refused.
    PreparationFailed,
    /// No attempt is left.
    Exhausted,
}

impl PowerIdle {
    /// The reason as one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotEnabled => "not_enabled",
            Self::Overridden => "overridden",
            Self::NotWanted => "not_wanted",
            Self::NotPrepared => "not_prepared",
            Self::PreparationFailed => "preparation_failed",
            Self::Exhausted => "exhausted",
        }
    }
}

/// Decides whether an action on the power of `component` is due.
pub fn decide(component: &Component, options: &Options, now: Timestamp) -> PowerDecision {
    if !component.is_enabled() {
        return nothing(PowerIdle::NotEnabled);
    }
    if !component.status_override().is_empty() {
        return nothing(PowerIdle::Overridden);
    }
    match computed_status(component) {
        status::POWER_ON_PENDING => power_on(component, options),
        status::POWER_OFF_PENDING => attempt(component, Action::PoweringOffGracefully, options),
        status::POWER_OFF_GRACEFULLY_CALLED | status::POWER_OFF_FORCEFULLY_CALLED => {
            force_off(component, options, now)
        }
        _ => nothing(PowerIdle::NotWanted),
    }
}

/// A power-on needs boot data and configuration that were accepted for exactly this attempt (BUG-23).
fn power_on(component: &Component, options: &Options) -> PowerDecision {
    let coming = component.attempts(Action::PoweringOn) + 1;
    let preparation = component
        .preparation
        .as_ref()
        .filter(|done| done.generation == component.generation && done.attempt == coming);
    match (attempt(component, Action::PoweringOn, options), preparation) {
        (PowerDecision::Act { .. }, None) => nothing(PowerIdle::NotPrepared),
        (PowerDecision::Act { .. }, Some(done)) if !done.error.is_empty() => {
            nothing(PowerIdle::PreparationFailed)
        }
        (decision, _) => decision,
    }
}

/// A power-off that has had its time without effect is forced, again and again.
fn force_off(component: &Component, options: &Options, now: Timestamp) -> PowerDecision {
    let act = attempt(component, Action::PoweringOffForcefully, options);
    match (act, wait_ends(component, options.power_off_wait())) {
        (PowerDecision::Act { .. }, Some(until)) if now < until => PowerDecision::Wait { until },
        _ => act,
    }
}

/// The next attempt at `action`, if one is left.
fn attempt(component: &Component, action: Action, options: &Options) -> PowerDecision {
    let done = component.attempts(action);
    if done >= component.retry_limit(options) {
        return nothing(PowerIdle::Exhausted);
    }
    PowerDecision::Act { action, attempt: done + 1 }
}

fn nothing(reason: PowerIdle) -> PowerDecision {
    PowerDecision::Nothing { reason }
}
