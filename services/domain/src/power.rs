//! When to act on the power of a node (BOS reference 5.5 to 5.7, 5.15).

use crate::{
    component::{Action, Component},
    evaluation::{PowerObservation, wait_ends},
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
    /// An action is due, and its power is not known or not what the action would change.
    AwaitingPower,
}

/// Decides whether an action on the power of `component` is due. `power` is what is known about it in its
/// generation: what is not known is never acted on.
pub fn decide(
    component: &Component,
    power: &PowerObservation,
    options: &Options,
    now: Timestamp,
) -> PowerDecision {
    match due(component, options, now) {
        PowerDecision::Act { action, .. } if !would_change(action, power) => {
            nothing(PowerIdle::AwaitingPower)
        }
        decision => decision,
    }
}

/// Whether `action` would change the power of a node of which `power` is known. Nothing that is not known
/// can be changed on purpose.
pub fn would_change(action: Action, power: &PowerObservation) -> bool {
    match action {
        Action::PoweringOn => *power == PowerObservation::Off,
        Action::PoweringOffGracefully | Action::PoweringOffForcefully => *power == PowerObservation::On,
        Action::ActualStateCleanup | Action::ApplyStaged | Action::NewlyDiscovered | Action::SessionSetup => {
            false
        }
    }
}

/// Whether an action may still change the power of a node. While it may, a reading says nothing to a newer
/// generation: "off" is no evidence for "off as wanted" when a power-on is still on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// The power is as it will be: the effect has come, or its time has passed.
    Settled,
    /// The effect may still come.
    Pending {
        /// First moment at which it is not waited for any longer; `None`: the time does not run yet.
        until: Option<Timestamp>,
    },
}

/// Judges by the newest reading whether `action` may still have its effect. It has the time that the options
/// give it (BOS reference 4, `max_power_on_wait_time` and `max_power_off_wait_time`) from `accepted_at`;
/// `None`: it is not known yet whether the upstream takes it.
pub fn outlook(
    action: Action,
    accepted_at: Option<Timestamp>,
    power: &PowerObservation,
    options: &Options,
    now: Timestamp,
) -> Outlook {
    let (effect, wait) = match action {
        Action::PoweringOn => (PowerObservation::On, options.power_on_wait()),
        Action::PoweringOffGracefully | Action::PoweringOffForcefully => {
            (PowerObservation::Off, options.power_off_wait())
        }
        Action::ActualStateCleanup | Action::ApplyStaged | Action::NewlyDiscovered | Action::SessionSetup => {
            return Outlook::Settled;
        }
    };
    let until = accepted_at.map(|at| at.plus(wait));
    if *power == effect || until.is_some_and(|until| now >= until) {
        return Outlook::Settled;
    }
    Outlook::Pending { until }
}

/// What is due by the record alone.
fn due(component: &Component, options: &Options, now: Timestamp) -> PowerDecision {
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
    let preparation = component.preparation_of(component.attempts(Action::PoweringOn) + 1);
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

#[cfg(test)]
mod tests;
