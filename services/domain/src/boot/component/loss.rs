//! Recovery of records after the loss of a database's last commits, for example because its standby took over without
//! them.

use crate::{
    boot::component::{
        Action, Component, LastAction,
        shutdown::{forget_shutdown_attempts, is_shutdown_called},
        write::begin_generation,
    },
    core::decision::DecisionVersion,
};

/// Returns whether an `attempt` at an action may have been sent although its record is only prepared: a database
/// without its last commits may have lost the mark. The registry counts each attempt before it is sent, so an attempt
/// that is not counted was not sent. That is undecidable where the component is unknown, or where another generation of
/// it has begun, as one does after a loss of commits.
#[must_use]
pub fn may_have_been_sent(
    component: Option<&Component>,
    action: Action,
    generation: u64,
    attempt: u32,
) -> bool {
    component
        .is_none_or(|component| component.generation != generation || component.attempts(action) >= attempt)
}

/// Returns the record of a component after a loss of commits, in a database that was advanced to `revision`, above all
/// revisions ever shown. Any later change of the record may be lost.
///
/// Actions of the lost changes have happened, for unknown attempts. So a new generation begins, and nothing is done to the
/// node before its power and its configuration were observed again.
///
/// A shutdown on record as called may have had its effect, and the node may have booted again since. So the shutdown
/// counts as not called, by its attempts and as the last action: a node that is on is asked to shut down at once, rather
/// than cut off once the time of that shutdown is over.
pub fn begin_anew(component: &Component, revision: u64) -> Component {
    let mut anew = component.clone();
    anew.generation = anew.generation.max(revision);
    anew.evaluation.decided_by = DecisionVersion::default();
    anew.evaluation.is_undecided = true;
    if component.is_enabled() && is_shutdown_called(component) {
        forget_shutdown_attempts(&mut anew);
        let last_updated = component.last_action_at();
        anew.power.last_action = Some(LastAction { action: None, failed: Some(false), last_updated });
    }
    begin_generation(&mut anew);
    anew
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        boot::{
            bos::options::Options,
            component::{
                BootPreparation, ComponentEvaluation, ComponentPower, ComponentPreparation, ComponentWish,
                EventStats, InventoryPresence, Phase, Status,
                status::{ComponentProgress, computed_progress},
                view::{bare, trouble},
            },
            power::{self, PowerDecision, PowerIdle, PowerObservation},
        },
        core::time::Timestamp,
    };

    #[test]
    fn what_was_prepared_may_have_been_sent_unless_it_is_not_counted() {
        let counted = |generation, attempts| Component {
            generation,
            power: ComponentPower {
                event_stats: Some(EventStats { power_on_attempts: Some(attempts), ..EventStats::default() }),
                ..ComponentPower::default()
            }
            .into(),
            ..bare()
        };
        for (name, component, expected) in [
            ("not counted", Some(counted(7, 1)), false),
            ("counted", Some(counted(7, 2)), true),
            ("counted, and another after it", Some(counted(7, 3)), true),
            ("of an older generation", Some(counted(8, 0)), true),
            ("not known", None, true),
        ] {
            let found = may_have_been_sent(component.as_ref(), Action::PoweringOn, 7, 2);
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn a_component_begins_a_generation_that_nobody_has_seen() {
        let preparation = Some(BootPreparation { generation: 7, attempt: 1, trouble: None });
        let known = Component {
            revision: 40,
            generation: 7,
            preparation: ComponentPreparation { outcome: preparation, ..ComponentPreparation::default() }
                .into(),
            power: ComponentPower { trouble: trouble("refused"), ..ComponentPower::default() }.into(),
            evaluation: ComponentEvaluation {
                error: Some("trouble".into()),
                decided_by: DecisionVersion { rules: 1, options: 9 },
                ..ComponentEvaluation::default()
            }
            .into(),
            ..bare()
        };
        for (revision, generation) in [(3, 8), (7, 8), (60, 61)] {
            let expected = known.clone().with(|one| {
                one.preparation.outcome = None;
                one.power.trouble = None;
                one.inventory.presence = InventoryPresence::default();
                one.evaluation.decided_by = DecisionVersion::default();
                one.evaluation.is_undecided = true;
                one.power.acted_before = true;
                one.generation = generation;
            });
            assert_eq!(begin_anew(&known, revision), expected, "{revision}");
        }
    }

    #[test]
    fn a_shutdown_of_before_a_loss_is_asked_for_again_and_never_forced() {
        const NOW: Timestamp = Timestamp(10_000_000);
        let stats = |on, asked, forced| EventStats {
            power_on_attempts: Some(on),
            power_off_graceful_attempts: Some(asked),
            power_off_forceful_attempts: Some(forced),
        };
        let called = |phase, action, age, stats| Component {
            wish: ComponentWish { enabled: Some(true), ..ComponentWish::default() }.into(),
            evaluation: ComponentEvaluation {
                status: Some(Status { phase: Some(phase), status_override: None }),
                ..ComponentEvaluation::default()
            }
            .into(),
            power: ComponentPower {
                last_action: Some(LastAction {
                    action: Some(action),
                    failed: Some(false),
                    last_updated: Some(Timestamp(NOW.0 - age)),
                }),
                event_stats: Some(stats),
                ..ComponentPower::default()
            }
            .into(),
            ..bare()
        };
        let (ask, force, on) =
            (Action::PoweringOffGracefully, Action::PoweringOffForcefully, Action::PoweringOn);
        let off = Phase::PoweringOff;
        let failed = called(off, ask, 1, stats(0, 1, 0)).with(|one| {
            one.power.last_action.get_or_insert_default().failed = Some(true);
        });
        for (name, known, expected) in [
            ("asked", called(off, ask, 1, stats(0, 1, 0)), stats(0, 0, 0)),
            ("asked long ago", called(off, ask, 999_999, stats(0, 1, 0)), stats(0, 0, 0)),
            ("asked after a boot that failed", called(off, ask, 1, stats(2, 3, 1)), stats(2, 0, 0)),
            ("the request failed", failed, stats(0, 0, 0)),
            ("forced", called(off, force, 1, stats(0, 1, 1)), stats(0, 0, 0)),
        ] {
            let anew = begin_anew(&known, 60);
            assert_eq!(anew.power.event_stats, Some(expected), "{name}");
            assert_eq!(computed_progress(&anew), ComponentProgress::PowerOffPending, "{name}");
            assert_eq!(power::effect_due(&anew, &Options::default()), None, "{name}: nothing is waited for");
            let listed = anew.with(|one| one.inventory.presence = InventoryPresence::Listed);
            let decide =
                |one: &Component| power::decide(one, &PowerObservation::On, &Options::default(), NOW);
            let undecided = PowerDecision::Nothing { reason: PowerIdle::Undecided };
            assert_eq!(decide(&listed), undecided, "{name}: its configuration may be unknown");
            let decided = listed.with(|one| one.evaluation.is_undecided = false);
            assert_eq!(decide(&decided), PowerDecision::Act { action: ask, attempt: 1 }, "{name}");
        }
        let disabled = called(off, ask, 1, stats(0, 1, 0)).with(|one| one.wish.enabled = Some(false));
        for (name, known) in [
            ("switched on", called(Phase::PoweringOn, on, 1, stats(1, 1, 0))),
            ("to be switched on", called(Phase::PoweringOn, ask, 1, stats(0, 1, 0))),
            ("to be switched off", called(off, on, 1, stats(1, 1, 0))),
            ("disabled", disabled),
        ] {
            let anew = begin_anew(&known, 60).power;
            let known = known.power;
            assert_eq!(anew.event_stats, known.event_stats, "{name}");
            assert_eq!(anew.last_action, known.last_action, "{name}");
        }
    }
}
