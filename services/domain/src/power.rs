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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::{BootPreparation, EventStats, LastAction, Phase, Status, view::bare};

    const NOW: Timestamp = Timestamp(1_000_000);

    fn component(phase: Phase, last: Action, age: i64, tries: [u32; 3]) -> Component {
        let [on, graceful, forceful] = tries.map(Some);
        Component {
            enabled: Some(true),
            status: Some(Status { phase: Some(phase), status_override: Some(String::new()) }),
            last_action: Some(LastAction {
                action: Some(last),
                failed: Some(false),
                last_updated: Some(Timestamp(NOW.0 - age)),
            }),
            event_stats: Some(EventStats {
                power_on_attempts: on,
                power_off_graceful_attempts: graceful,
                power_off_forceful_attempts: forceful,
            }),
            generation: 7,
            ..bare()
        }
    }

    fn act(action: Action, attempt: u32) -> PowerDecision {
        PowerDecision::Act { action, attempt }
    }

    #[test]
    fn power_on_needs_a_preparation_of_this_attempt() {
        let pending = component(Phase::PoweringOn, Action::SessionSetup, 0, [1, 0, 0]);
        let prepared = |generation, attempt, error: &str| Component {
            preparation: Some(BootPreparation { generation, attempt, error: error.to_owned() }),
            ..pending.clone()
        };
        let limited = |limit| Component { retry_policy: Some(limit), ..prepared(7, 2, "") };
        let rows = [
            ("never prepared", pending.clone(), nothing(PowerIdle::NotPrepared)),
            ("an older generation", prepared(6, 2, ""), nothing(PowerIdle::NotPrepared)),
            ("the attempt before", prepared(7, 1, ""), nothing(PowerIdle::NotPrepared)),
            ("refused", prepared(7, 2, "no"), nothing(PowerIdle::PreparationFailed)),
            ("prepared", prepared(7, 2, ""), act(Action::PoweringOn, 2)),
            ("prepared, one left", limited(2), act(Action::PoweringOn, 2)),
            ("prepared, none left", limited(1), nothing(PowerIdle::Exhausted)),
        ];
        for (name, component, expected) in rows {
            assert_eq!(decide(&component, &Options::default(), NOW), expected, "{name}");
        }
    }

    #[test]
    fn power_off_is_asked_for_and_then_forced() {
        use Action::{PoweringOffForcefully as Force, PoweringOffGracefully as Ask, PoweringOn as On};
        let off = |last, age, tries| component(Phase::PoweringOff, last, age, tries);
        let wait = |ms| PowerDecision::Wait { until: Timestamp(NOW.0 + ms) };
        let exhausted = nothing(PowerIdle::Exhausted);
        let rows = [
            ("pending", off(On, 0, [1, 0, 0]), act(Ask, 1)),
            ("pending again", off(On, 0, [1, 2, 0]), act(Ask, 3)),
            ("pending, none left", off(On, 0, [1, 3, 0]), exhausted),
            ("just asked", off(Ask, 0, [0, 1, 0]), wait(300_001)),
            ("asked as long ago as allowed", off(Ask, 300_000, [0, 1, 0]), wait(1)),
            ("asked longer ago", off(Ask, 300_001, [0, 1, 0]), act(Force, 1)),
            ("forced", off(Force, 300_000, [0, 1, 1]), wait(1)),
            ("forced longer ago", off(Force, 300_001, [0, 1, 1]), act(Force, 2)),
            ("forced, none left", off(Force, 300_001, [0, 1, 3]), exhausted),
        ];
        for (name, component, expected) in rows {
            assert_eq!(decide(&component, &Options::default(), NOW), expected, "{name}");
        }
        let mut undated = off(Ask, 0, [0, 1, 0]);
        undated.last_action = Some(LastAction { last_updated: None, ..undated.last_action.expect("given") });
        assert_eq!(decide(&undated, &Options::default(), NOW), act(Force, 1));
    }

    #[test]
    fn nothing_is_done_to_a_component_that_does_not_ask_for_it() {
        let pending = component(Phase::PoweringOff, Action::SessionSetup, 0, [0, 0, 0]);
        let with = |word: &str| {
            let mut component = pending.clone();
            component.status.get_or_insert_default().status_override = Some(word.to_owned());
            component
        };
        let called = component(Phase::PoweringOn, Action::PoweringOn, 0, [1, 0, 0]);
        let rows = [
            ("disabled", Component { enabled: Some(false), ..pending.clone() }, PowerIdle::NotEnabled),
            ("never enabled", Component { enabled: None, ..pending.clone() }, PowerIdle::NotEnabled),
            ("held", with("on_hold"), PowerIdle::Overridden),
            ("failed", with("failed"), PowerIdle::Overridden),
            ("in other hands", with("gone fishing"), PowerIdle::Overridden),
            // An override may be any text, so also the word of a status.
            ("misleading", with("power_off_pending"), PowerIdle::Overridden),
            ("called", called, PowerIdle::NotWanted),
            (
                "configuring",
                component(Phase::Configuring, Action::PoweringOn, 0, [1, 0, 0]),
                PowerIdle::NotWanted,
            ),
            ("stable", component(Phase::None, Action::PoweringOn, 0, [0, 0, 0]), PowerIdle::NotWanted),
        ];
        for (name, component, reason) in rows {
            assert_eq!(decide(&component, &Options::default(), NOW), nothing(reason), "{name}");
        }
    }
}
