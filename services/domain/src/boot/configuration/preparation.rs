//! The data to put in place before a node is switched on (BOS reference 5.5, steps 2 to 5).

use std::{sync::Arc, time::Duration};

use crate::{
    boot::{
        bos::options::Options,
        component::{
            Action, Component, InventoryPresence,
            artifacts::BootArtifacts,
            status::{ComponentProgress, computed_progress},
        },
        power::PowerObservation,
    },
    core::time::Timestamp,
};

/// Pause after an upstream refused the data of a node, for each spent attempt. An operator has to mend refused data
/// first.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

/// Age up to which a step of a preparation is not repeated. An upstream without calls may restart or be written to by
/// others unnoticed, so the step is repeated now and then while another upstream is waited for.
const STEP_STANDS: Duration = Duration::from_secs(5 * 60);

/// Step of a preparation that its upstream took, while the preparation waits for another upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepTaken {
    /// Generation of the component for which the step was taken.
    pub generation: u64,
    /// Power-on attempt for which the step was taken, counted from 1.
    pub attempt: u32,
    /// Boot data of the step.
    pub artifacts: Arc<BootArtifacts>,
    /// Time since the step.
    pub age: Duration,
    /// Whether an outage of the upstream began since then: the upstream may have restarted without its data. Further
    /// failures of an earlier outage are no new sign.
    pub disturbed: bool,
}

/// Returns whether a step need not be repeated for this `preparation` of a component in that `generation`. A step of
/// another attempt is repeated, because others may have written in between.
#[must_use]
pub fn stands(step: &StepTaken, generation: u64, preparation: &Preparation) -> bool {
    let StepTaken { age, disturbed, artifacts, .. } = step;
    (step.generation, step.attempt) == (generation, preparation.attempt)
        && *artifacts == preparation.artifacts
        && !disturbed
        && *age < STEP_STANDS
}

/// Next step for the coming power-on of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreparationDecision {
    /// Put boot data and configuration in place, then report.
    Prepare(Preparation),
    /// Wait, and decide again at `until`.
    Wait {
        /// First moment at which to prepare.
        until: Timestamp,
    },
    /// Do nothing until the record changes.
    Nothing {
        /// Reason for doing nothing.
        reason: PreparationIdle,
    },
}

/// Preparation of one power-on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preparation {
    /// Power-on attempt to prepare, counted from 1.
    pub attempt: u32,
    /// Boot data for the boot script server.
    pub artifacts: Arc<BootArtifacts>,
    /// Configuration to set, disabled and with its state cleared; empty: none.
    pub configuration: Arc<str>,
    /// Name of the session to note beside the configuration; empty: none.
    pub session: Arc<str>,
}

/// Reason for not preparing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PreparationIdle {
    /// The component is not enabled.
    NotEnabled,
    /// No decision rests on evidence of this generation yet.
    Undecided,
    /// The component does not wait to be switched on.
    NotPending,
    /// The desired state has nothing to boot, so the node is wanted off. An evaluator of another version may still have
    /// marked it as pending.
    NothingToBoot,
    /// The inventory does not list the node, or has not answered yet.
    NotListed,
    /// All data are in place.
    Prepared,
    /// No attempt is left (BOS reference 5.15).
    Exhausted,
    /// No reading shows that the node is off and stays so: the attempt before may still have its effect.
    AwaitingPower,
    /// The session of the component is paused.
    Paused,
}

/// Evidence about the power of a node that is to be prepared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerEvidence {
    /// Power in the generation of the component.
    pub observation: PowerObservation,
    /// Power-on attempts of that generation that were over at the time of the power request.
    pub spent_power_ons: u32,
}

impl PowerEvidence {
    /// No evidence.
    pub const UNKNOWN: Self = Self { observation: PowerObservation::Unknown, spent_power_ons: 0 };

    /// Returns whether the node was read as off after every attempt so far was over. An earlier reading may show the
    /// moment before the effect of the last attempt.
    fn shows_off(&self, component: &Component) -> bool {
        self.observation == PowerObservation::Off && self.spent_power_ons == component.spent_power_ons()
    }
}

/// Decides whether the coming power-on of `component` has to be prepared.
///
/// Every attempt is prepared again: between two attempts the boot script server may have lost the boot data, and the
/// configuration state of the last boot must not count for the next. A failed preparation is repeated; the caller
/// spaces such repeats by a growing pause.
///
/// A preparation is an action: the configuration service forgets its state of the earlier boot, so a running node must
/// not be prepared. Only a `power` reading from after the last attempt was over shows that the node is off.
///
/// `refused` is the time at which an upstream refused the data of the last spent attempt, if that is how it was spent:
/// the next attempt is prepared after a pause, whatever the upstream answers about other nodes meanwhile.
pub fn decide(
    component: &Component,
    power: &PowerEvidence,
    refused: Option<Timestamp>,
    options: &Options,
    now: Timestamp,
) -> PreparationDecision {
    if !component.is_enabled() {
        return nothing(PreparationIdle::NotEnabled);
    }
    let is_pending = computed_progress(component) == ComponentProgress::PowerOnPending;
    if !component.status_override().is_empty() || !is_pending {
        return nothing(PreparationIdle::NotPending);
    }
    if component.evaluation.is_undecided {
        return nothing(PreparationIdle::Undecided);
    }
    if component.is_paused() {
        return nothing(PreparationIdle::Paused);
    }
    let Some(desired) = component.wish.desired_state.as_ref() else {
        return nothing(PreparationIdle::NothingToBoot);
    };
    let Some(artifacts) = desired.boot_artifacts.clone().filter(|artifacts| !artifacts.is_empty()) else {
        return nothing(PreparationIdle::NothingToBoot);
    };
    if component.inventory.presence != InventoryPresence::Listed {
        return nothing(PreparationIdle::NotListed);
    }
    let spent = component.attempts(Action::PoweringOn);
    if spent >= component.retry_limit(options) {
        return nothing(PreparationIdle::Exhausted);
    }
    let attempt = spent + 1;
    if component.preparation_of(attempt).is_some_and(|done| done.trouble.is_none()) {
        return nothing(PreparationIdle::Prepared);
    }
    if !power.shows_off(component) {
        return nothing(PreparationIdle::AwaitingPower);
    }
    let pause = RETRY_PAUSE.saturating_mul(spent.max(1)).min(options.power_on_wait());
    if let Some(until) = refused.map(|refused| refused.plus(pause)).filter(|until| now < *until) {
        return PreparationDecision::Wait { until };
    }
    PreparationDecision::Prepare(Preparation {
        attempt,
        artifacts,
        configuration: desired.configuration.clone().unwrap_or_default(),
        session: component.wish.session.clone().unwrap_or_default(),
    })
}

fn nothing(reason: PreparationIdle) -> PreparationDecision {
    PreparationDecision::Nothing { reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::component::{
        BootPreparation, ComponentEvaluation, ComponentInventory, ComponentPower, ComponentWish,
        DesiredState, EventStats, PauseMark, Phase, Status,
        view::{artifacts, bare, trouble},
    };

    fn pending() -> Component {
        Component {
            generation: 7,
            wish: ComponentWish {
                enabled: Some(true),
                desired_state: Some(DesiredState {
                    boot_artifacts: Some(artifacts("k p i")),
                    configuration: Some("conf".into()),
                    ..DesiredState::default()
                }),
                session: Some("s1".into()),
                ..ComponentWish::default()
            }
            .into(),
            evaluation: ComponentEvaluation {
                status: Some(Status {
                    phase: Some(Phase::PoweringOn),
                    status_override: Some(Arc::default()),
                }),
                ..ComponentEvaluation::default()
            }
            .into(),
            power: ComponentPower {
                event_stats: Some(EventStats { power_on_attempts: Some(1), ..EventStats::zeros() }),
                ..ComponentPower::default()
            }
            .into(),
            inventory: ComponentInventory {
                presence: InventoryPresence::Listed,
                ..(*bare().inventory).clone()
            }
            .into(),
            ..bare()
        }
    }

    const NOW: Timestamp = Timestamp(1_000_000);

    /// Returns power that is off, and was read after every attempt was over.
    fn off(component: &Component) -> PowerEvidence {
        PowerEvidence { observation: PowerObservation::Off, spent_power_ons: component.spent_power_ons() }
    }

    fn unlisted() -> InventoryPresence {
        InventoryPresence::Absent { since: NOW }
    }

    fn decided(component: &Component) -> PreparationDecision {
        decide(component, &off(component), None, &Options::default(), NOW)
    }

    fn prepared(generation: u64, attempt: u32, error: &str) -> Component {
        let preparation = Some(BootPreparation { generation, attempt, trouble: trouble(error) });
        pending().with(|one| one.preparation.outcome = preparation)
    }

    #[test]
    fn every_power_on_is_prepared_once() {
        let first = Preparation {
            attempt: 2,
            artifacts: artifacts("k p i"),
            configuration: "conf".into(),
            session: "s1".into(),
        };
        let rows = [
            ("never prepared", pending(), PreparationDecision::Prepare(first.clone())),
            ("an older generation", prepared(6, 2, ""), PreparationDecision::Prepare(first.clone())),
            ("the attempt before", prepared(7, 1, ""), PreparationDecision::Prepare(first.clone())),
            ("refused before", prepared(7, 2, "no"), PreparationDecision::Prepare(first)),
            ("prepared", prepared(7, 2, ""), nothing(PreparationIdle::Prepared)),
        ];
        for (name, component, expected) in rows {
            assert_eq!(decided(&component), expected, "{name}");
        }
    }

    #[test]
    fn a_step_is_repeated_once_something_may_have_undone_it() {
        let preparation = Preparation {
            attempt: 2,
            artifacts: artifacts("k p i"),
            configuration: "conf".into(),
            session: "s1".into(),
        };
        let taken = StepTaken {
            generation: 7,
            attempt: 2,
            artifacts: artifacts("k p i"),
            age: Duration::from_secs(50),
            disturbed: false,
        };
        let rows = [
            ("another step waits", taken.clone(), true),
            ("another generation", StepTaken { generation: 6, ..taken.clone() }, false),
            ("another attempt", StepTaken { attempt: 1, ..taken.clone() }, false),
            ("other boot data", StepTaken { artifacts: artifacts("k q i"), ..taken.clone() }, false),
            ("trouble of its upstream", StepTaken { disturbed: true, ..taken.clone() }, false),
            ("about to be old", StepTaken { age: Duration::from_millis(299_999), ..taken.clone() }, true),
            ("old", StepTaken { age: Duration::from_secs(300), ..taken }, false),
        ];
        for (name, step, expected) in rows {
            assert_eq!(stands(&step, 7, &preparation), expected, "{name}");
        }
    }

    #[test]
    fn a_node_without_anything_to_boot_is_not_prepared() {
        let empty =
            DesiredState { boot_artifacts: Some(BootArtifacts::empty().into()), ..DesiredState::default() };
        for desired_state in [Some(empty), Some(DesiredState::default()), None] {
            let component = pending().with(|one| one.wish.desired_state = desired_state);
            assert_eq!(decided(&component), nothing(PreparationIdle::NothingToBoot));
        }
    }

    #[test]
    fn only_nodes_that_wait_to_be_switched_on_are_prepared() {
        let at = |phase, word: &str| {
            pending().with(|one| {
                one.evaluation.status =
                    Some(Status { phase: Some(phase), status_override: Some(word.into()) })
            })
        };
        let rows = [
            ("disabled", pending().with(|one| one.wish.enabled = Some(false)), PreparationIdle::NotEnabled),
            ("held", at(Phase::PoweringOn, "on_hold"), PreparationIdle::NotPending),
            (
                "not decided about",
                pending().with(|one| one.evaluation.is_undecided = true),
                PreparationIdle::Undecided,
            ),
            (
                "paused",
                pending().with(|one| {
                    one.wish.pause = Some(PauseMark::by("alice", NOW).into());
                }),
                PreparationIdle::Paused,
            ),
            ("misleading", at(Phase::None, "power_on_pending"), PreparationIdle::NotPending),
            ("being switched off", at(Phase::PoweringOff, ""), PreparationIdle::NotPending),
            ("stable", at(Phase::None, ""), PreparationIdle::NotPending),
            (
                "not listed",
                pending().with(|one| one.inventory.presence = unlisted()),
                PreparationIdle::NotListed,
            ),
            (
                "not asked for",
                pending().with(|one| one.inventory.presence = InventoryPresence::default()),
                PreparationIdle::NotListed,
            ),
        ];
        for (name, component, reason) in rows {
            assert_eq!(decided(&component), nothing(reason), "{name}");
        }
    }

    #[test]
    fn only_a_node_seen_off_after_the_last_attempt_is_prepared() {
        let seen = |observation, spent_power_ons| PowerEvidence { observation, spent_power_ons };
        let undefined = PowerObservation::Undefined { error: String::new() };
        let rows = [
            ("off since the last attempt", seen(PowerObservation::Off, 1), true),
            ("off before the last attempt", seen(PowerObservation::Off, 0), false),
            ("on", seen(PowerObservation::On, 1), false),
            ("off before its last report", seen(PowerObservation::OffInDoubt, 1), false),
            ("not known", PowerEvidence::UNKNOWN, false),
            ("not known since the last attempt", seen(PowerObservation::Unknown, 1), false),
            ("missing", seen(PowerObservation::Missing, 1), false),
            ("undefined", seen(undefined, 1), false),
        ];
        for (name, power, prepares) in rows {
            let decision = decide(&pending(), &power, None, &Options::default(), NOW);
            let waits = decision == nothing(PreparationIdle::AwaitingPower);
            assert_eq!(!waits, prepares, "{name}: {decision:?}");
        }
    }

    #[test]
    fn an_attempt_after_a_refusal_waits_and_the_last_one_was_the_last() {
        let spent = |attempts: u32, policy: Option<u32>| {
            pending().with(|one| {
                one.power.event_stats =
                    Some(EventStats { power_on_attempts: Some(attempts), ..EventStats::zeros() });
                one.wish.retry_policy = policy;
            })
        };
        let rows = [
            (spent(1, None), Some(9_999), Some(1)),
            (spent(1, None), Some(10_000), None),
            (spent(2, None), Some(10_000), Some(10_000)),
            (spent(2, None), Some(20_000), None),
            (spent(30, Some(99)), Some(119_999), Some(1)),
            (spent(30, Some(99)), Some(120_000), None),
            (spent(2, None), None, None),
        ];
        for (component, ago, waits) in rows {
            let refused = ago.map(|ago| Timestamp(NOW.0 - ago));
            let decision = decide(&component, &off(&component), refused, &Options::default(), NOW);
            let expected = waits.map(|waits| Timestamp(NOW.0 + waits));
            match decision {
                PreparationDecision::Wait { until } => assert_eq!(Some(until), expected, "{ago:?}"),
                PreparationDecision::Prepare(_) => assert_eq!(None, expected, "{ago:?}"),
                PreparationDecision::Nothing { .. } => panic!("{ago:?}"),
            }
        }
        for component in [spent(3, None), spent(0, Some(0)), spent(9, Some(1))] {
            assert_eq!(decided(&component), nothing(PreparationIdle::Exhausted));
        }
    }
}
