//! Recovery of records after the loss of a database's last commits, for example because its standby took over without
//! them.

use crate::{
    boot::component::{
        Action, Component, EventStats,
        status::{ComponentProgress, computed_progress},
        write::begin_generation,
    },
    core::decision::DecisionVersion,
};

/// Remedy for a loss. The order is that of carrying out: reappeared records block missing ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// The record reappeared as open although it had finished: mark it finished.
    Close,
    /// The record reappeared although it was withdrawn or split: delete it.
    Delete,
    /// The record is older than the known state: record the known state again.
    Renew,
    /// The record is missing: record the known state again.
    Restore,
}

impl Remedy {
    /// Returns whether the remedy removes a record that reappeared.
    pub fn is_of_what_came_back(self) -> bool {
        matches!(self, Self::Close | Self::Delete)
    }
}

/// State on record of an operation that begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Revision of the last change of the record.
    pub revision: u64,
    /// Whether the operation has not ended.
    pub is_open: bool,
}

/// Returns the remedy for an operation with this `record`. `known`: the revision as of which the operation is known to
/// be open, if it is. `has_left`: the operation was known to be open, and then not to be any more. `is_over`: the
/// operation is known to have ended, whatever its record.
#[must_use]
pub fn remedy(known: Option<u64>, record: Option<Record>, has_left: bool, is_over: bool) -> Option<Remedy> {
    match (known, record) {
        (Some(_), None) => (!is_over).then_some(Remedy::Restore),
        (Some(known), Some(record)) => (record.revision < known).then_some(Remedy::Renew),
        (None, Some(record)) if record.is_open && has_left => {
            Some(if is_over { Remedy::Close } else { Remedy::Delete })
        }
        (None, _) => None,
    }
}

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
/// Actions of the lost changes have happened, for unknown attempts. So a new generation begins, and later decisions
/// about the node rest on new observations.
///
/// A shutdown on record as called may have had its effect, and the node may have booted again since. So the shutdown
/// counts as not called: a node that is on is asked to shut down, rather than cut off once the time of that shutdown is
/// over.
pub fn begin_anew(component: &Component, revision: u64) -> Component {
    let mut anew = component.clone();
    anew.generation = anew.generation.max(revision);
    anew.evaluation.decided_by = DecisionVersion::default();
    if is_shutdown_under_way(component) {
        let power_on_attempts = Some(component.attempts(Action::PoweringOn));
        anew.power.event_stats = Some(EventStats { power_on_attempts, ..EventStats::zeros() });
    }
    begin_generation(&mut anew);
    anew
}

fn is_shutdown_under_way(component: &Component) -> bool {
    let is_called = match computed_progress(component) {
        ComponentProgress::PowerOffGracefullyCalled | ComponentProgress::PowerOffForcefullyCalled => true,
        ComponentProgress::PowerOnPending
        | ComponentProgress::PowerOnCalled
        | ComponentProgress::PowerOffPending
        | ComponentProgress::Configuring
        | ComponentProgress::Stable => false,
    };
    component.is_enabled() && is_called
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        boot::{
            bos::options::Options,
            component::{
                BootPreparation, ComponentEvaluation, ComponentPower, ComponentPreparation, ComponentWish,
                InventoryPresence, LastAction, Phase, Status,
                view::{bare, trouble},
            },
            power::{self, PowerDecision, PowerObservation},
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
            },
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
            preparation: ComponentPreparation { outcome: preparation, ..ComponentPreparation::default() },
            power: ComponentPower { trouble: trouble("refused"), ..ComponentPower::default() },
            evaluation: ComponentEvaluation {
                error: Some("trouble".into()),
                decided_by: DecisionVersion { rules: 1, options: 9 },
                ..ComponentEvaluation::default()
            },
            ..bare()
        };
        for (revision, generation) in [(3, 8), (7, 8), (60, 61)] {
            let expected = known.clone().with(|one| {
                one.preparation.outcome = None;
                one.power.trouble = None;
                one.inventory.presence = InventoryPresence::default();
                one.evaluation.decided_by = DecisionVersion::default();
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
            wish: ComponentWish { enabled: Some(true), ..ComponentWish::default() },
            evaluation: ComponentEvaluation {
                status: Some(Status { phase: Some(phase), status_override: None }),
                ..ComponentEvaluation::default()
            },
            power: ComponentPower {
                last_action: Some(LastAction {
                    action: Some(action),
                    failed: Some(false),
                    last_updated: Some(Timestamp(NOW.0 - age)),
                }),
                event_stats: Some(stats),
                ..ComponentPower::default()
            },
            ..bare()
        };
        let (ask, force, on) =
            (Action::PoweringOffGracefully, Action::PoweringOffForcefully, Action::PoweringOn);
        let off = Phase::PoweringOff;
        for (name, known, expected) in [
            ("asked", called(off, ask, 1, stats(0, 1, 0)), stats(0, 0, 0)),
            ("asked long ago", called(off, ask, 999_999, stats(0, 1, 0)), stats(0, 0, 0)),
            ("asked after a boot that failed", called(off, ask, 1, stats(2, 3, 1)), stats(2, 0, 0)),
            ("forced", called(off, force, 1, stats(0, 1, 1)), stats(0, 0, 0)),
        ] {
            let anew = begin_anew(&known, 60);
            assert_eq!(anew.power.event_stats, Some(expected), "{name}");
            let listed = anew.with(|one| one.inventory.presence = InventoryPresence::Listed);
            let decision = power::decide(&listed, &PowerObservation::On, &Options::default(), NOW);
            assert_eq!(decision, PowerDecision::Act { action: ask, attempt: 1 }, "{name}");
        }
        let disabled = called(off, ask, 1, stats(0, 1, 0)).with(|one| one.wish.enabled = Some(false));
        for (name, known) in [
            ("switched on", called(Phase::PoweringOn, on, 1, stats(1, 1, 0))),
            ("to be switched on", called(Phase::PoweringOn, ask, 1, stats(0, 1, 0))),
            ("to be switched off", called(off, on, 1, stats(1, 1, 0))),
            ("disabled", disabled),
        ] {
            assert_eq!(begin_anew(&known, 60).power.event_stats, known.power.event_stats, "{name}");
        }
    }

    #[test]
    fn what_is_missing_is_recorded_again_and_what_came_back_goes_again() {
        let open = |revision| Some(Record { revision, is_open: true });
        let ended = |revision| Some(Record { revision, is_open: false });
        for (known, record, has_left, is_over, expected) in [
            (Some(5), None, false, false, Some(Remedy::Restore)),
            (Some(5), None, false, true, None),
            (Some(5), open(3), false, false, Some(Remedy::Renew)),
            (Some(5), open(5), false, false, None),
            (Some(5), ended(6), false, true, None),
            (Some(5), open(9), false, false, None),
            (None, open(4), true, true, Some(Remedy::Close)),
            (None, open(4), true, false, Some(Remedy::Delete)),
            (None, open(4), false, true, None),
            (None, open(4), false, false, None),
            (None, ended(4), true, true, None),
            (None, None, true, true, None),
        ] {
            let found = remedy(known, record, has_left, is_over);
            assert_eq!(found, expected, "{known:?} {record:?} {has_left} {is_over}");
        }
        assert!(Remedy::Close < Remedy::Renew && Remedy::Delete < Remedy::Restore);
    }
}
