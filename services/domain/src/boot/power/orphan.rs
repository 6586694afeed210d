//! Waits that a component shows although nobody waits any more.
//!
//! The report of a wait and the end of its transition may cross: the wait arrives at the record after the last report
//! about the transition, and nothing would clear it. So a wait without an open attempt ends by what is seen, whoever left
//! it behind: an operator who gave the transition up, a process that died, a replica that lost its role.

use crate::{
    boot::{
        component::{Action, Component},
        power::{PowerObservation, would_change},
    },
    core::trouble::TroubleKind,
};

/// Fate of an attempt, as far as the power controller knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptFate {
    /// Its outcome is awaited.
    Open,
    /// Over, and the upstream had taken it.
    Taken,
    /// Over, and not known to have been taken.
    Dropped,
}

/// Wait on record whose attempt is not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrphanedWait {
    /// Action of the attempt.
    pub action: Action,
    /// Number of the attempt, counted from 1.
    pub attempt: u32,
    /// Whether the attempt is known to have failed, or was a request to shut down that is not known to have been taken:
    /// the node is asked again, rather than forced off.
    pub has_failed: bool,
}

/// Returns the wait that the record shows for its last attempt, unless the attempt is open by its `fate`. `power`: the
/// newest observation.
#[must_use]
pub fn orphaned_wait(
    component: &Component,
    fate: impl Fn(Action, u32) -> AttemptFate,
    power: &PowerObservation,
) -> Option<OrphanedWait> {
    let was_told = match component.power_trouble_kind()? {
        TroubleKind::Waiting => false,
        TroubleKind::NoResults => true,
        TroubleKind::Failed
        | TroubleKind::Exhausted
        | TroubleKind::ConfigurationRefused
        | TroubleKind::Held
        | TroubleKind::NotListed
        | TroubleKind::Paused => return None,
    };
    let action = component.last_action()?;
    let attempt = component.attempts(action);
    if attempt == 0 {
        return None;
    }
    let was_taken = match fate(action, attempt) {
        AttemptFate::Open => return None,
        AttemptFate::Taken => true,
        AttemptFate::Dropped => was_told,
    };
    let has_effect = (power.is_on() || *power == PowerObservation::Off) && !would_change(action, power);
    let is_unasked = action == Action::PoweringOffGracefully && !was_taken && !has_effect;
    Some(OrphanedWait { action, attempt, has_failed: is_unasked || component.last_action_failed() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        boot::component::{ComponentPower, EventStats, LastAction, view::bare},
        core::trouble::Trouble,
    };

    #[test]
    fn waits_without_an_open_attempt_end() {
        use {AttemptFate::*, PowerObservation::*, TroubleKind::*};
        let (ask, on) = (Action::PoweringOffGracefully, Action::PoweringOn);
        let rows = [
            ("unsent", ask, Some(Waiting), Dropped, On, Some(true)),
            ("unsent, power unknown", ask, Some(Waiting), Dropped, Unknown, Some(true)),
            ("unsent, and off by itself", ask, Some(Waiting), Dropped, Off, Some(false)),
            ("taken, and the record is late", ask, Some(Waiting), Taken, On, Some(false)),
            ("sent", ask, Some(NoResults), Dropped, On, Some(false)),
            ("a power-on has its time", on, Some(Waiting), Dropped, Off, Some(false)),
            ("still open", ask, Some(Waiting), Open, On, None),
            ("refused", ask, Some(Failed), Dropped, On, None),
            ("no trouble", ask, None, Dropped, On, None),
        ];
        for (name, action, kind, fate, power, expected) in rows {
            let component = waiting(action, kind);
            let found = orphaned_wait(&component, |_, _| fate, &power);
            let expected = expected.map(|has_failed| OrphanedWait { action, attempt: 1, has_failed });
            assert_eq!(found, expected, "{name}");
        }
        let failed = waiting(on, Some(Waiting)).with(|one| {
            one.power.last_action.get_or_insert_default().failed = Some(true);
        });
        let found = orphaned_wait(&failed, |_, _| Dropped, &Off);
        assert!(found.is_some_and(|wait| wait.has_failed), "a failed attempt stays so");
        let uncounted = waiting(ask, Some(Waiting)).with(|one| one.power.event_stats = None);
        assert_eq!(orphaned_wait(&uncounted, |_, _| Dropped, &On), None);
    }

    /// Returns a component with one attempt at `action` and a trouble of that kind.
    fn waiting(action: Action, kind: Option<TroubleKind>) -> Component {
        Component {
            power: ComponentPower {
                last_action: Some(LastAction { action: Some(action), ..LastAction::default() }),
                event_stats: Some(EventStats {
                    power_on_attempts: Some(1),
                    power_off_graceful_attempts: Some(1),
                    power_off_forceful_attempts: Some(1),
                }),
                trouble: kind.map(|kind| Trouble::own(kind, "waiting for transition t-1").into()),
                ..ComponentPower::default()
            }
            .into(),
            ..bare()
        }
    }
}
