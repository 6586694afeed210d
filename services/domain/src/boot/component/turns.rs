//! The number of times that the power of a node was turned against its last action under one wish. Enabling a component
//! again wants nothing else of it, so its turns go on.
//!
//! Failed boots turn a node off and on again, as often as its retry policy allows. More turns mean that two parties
//! decide about the node, such as two versions with different rules, or this mesh and a system outside it.

use std::time::Duration;

use crate::{
    boot::{
        bos::options::Options,
        component::{Action, Component, PowerTurns},
    },
    core::time::Timestamp,
};

/// Turns beyond those of retried boots, three times off and on again: enough for a node that is changed by an operator,
/// loses its power, or is replaced while it is kept as wanted.
const SPARE_TURNS: u32 = 6;

/// Time after the last action at which its turns are forgotten. Two parties turn a node within minutes; a node that is
/// kept as wanted for months loses its power now and then.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// The node was switched off and on in turn too often.
pub const ERROR_TURNED_TOO_OFTEN: &str = "the node was switched off and on in turn too often although nothing else was \
     wanted of it; it is held until something else is wanted of it or it is given to a session again";

/// Every turn is spent, and the effect of the last one is awaited.
pub const ERROR_TURNS_SPENT: &str = "the node was switched off and on in turn as often as one wish can explain; \
     before it is switched against its last action again, it is held until something else is wanted of it or it is \
     given to a session again";

/// Returns the turns of `component` once `action` has begun at `now`. Turns before a long pause are forgotten; a node
/// that is held for its turns begins no action, so it stays held.
#[must_use]
pub(crate) fn turns_with(component: &Component, action: Action, now: Timestamp) -> PowerTurns {
    let are_old = component.last_action_at().is_some_and(|last| now.since(last) >= FORGOTTEN_AFTER);
    let before = if are_old { PowerTurns::default() } else { component.power.turns };
    before.with(action)
}

/// Returns whether `action` would turn the power of the node more often than one wish can explain. Each attempt at a
/// boot is at most one off and one on, so no retry policy reaches the limit by itself.
pub(crate) fn turned_too_often(component: &Component, action: Action, options: &Options) -> bool {
    let limit = component.retry_limit(options).saturating_mul(2).saturating_add(SPARE_TURNS);
    component.power.turns.with(action).count > limit
}

/// Returns whether no turn is left: an action against the last one would be one too many.
pub(crate) fn are_turns_spent(component: &Component, options: &Options) -> bool {
    let actions = [Action::PoweringOn, Action::PoweringOffGracefully];
    actions.into_iter().any(|action| turned_too_often(component, action, options))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::component::{ComponentPower, ComponentWish, LastAction, view::bare};

    const NOW: Timestamp = Timestamp(100_000_000);
    const ON: Action = Action::PoweringOn;
    const ASK: Action = Action::PoweringOffGracefully;
    const CUT: Action = Action::PoweringOffForcefully;

    #[test]
    fn retried_boots_never_reach_the_limit() {
        for policy in [0, 1, 3, 10, u32::MAX] {
            let mut component = Component {
                wish: ComponentWish { retry_policy: Some(policy), ..ComponentWish::default() }.into(),
                ..bare()
            };
            for attempt in 1..=policy.min(50) {
                for action in [ASK, CUT, ON] {
                    let held = turned_too_often(&component, action, &Options::default());
                    assert!(!held, "{policy}: {action:?} {attempt}");
                    component.power.turns = component.power.turns.with(action);
                }
            }
        }
    }

    #[test]
    fn too_many_turns_forbid_the_next_but_not_a_repeat() {
        let at = |count| Component {
            power: ComponentPower {
                turns: PowerTurns { count, last: Some(ON) },
                ..ComponentPower::default()
            }
            .into(),
            ..bare()
        };
        let options = Options { default_retry_policy: 3, ..Options::default() };
        assert!(!turned_too_often(&at(11), ASK, &options));
        assert!(turned_too_often(&at(12), ASK, &options));
        assert!(turned_too_often(&at(12), CUT, &options));
        assert!(!turned_too_often(&at(12), ON, &options));
        assert_eq!([11, 12].map(|count| are_turns_spent(&at(count), &options)), [false, true]);
    }

    #[test]
    fn old_turns_are_forgotten() {
        for (age, count) in [(3_599, 13), (3_600, 0)] {
            let last_updated = Some(Timestamp(NOW.0 - age * 1000));
            let last_action = Some(LastAction { last_updated, ..LastAction::default() });
            let component = Component {
                power: ComponentPower {
                    last_action,
                    turns: PowerTurns { count: 12, last: Some(ON) },
                    ..ComponentPower::default()
                }
                .into(),
                ..bare()
            };
            assert_eq!(turns_with(&component, ASK, NOW).count, count, "{age}");
        }
    }
}
