//! What to do about records of which a database has lost the last commits, for example because its stand-in took over
//! without them.

use crate::{
    boot::component::{
        Action, Component, EventStats,
        status::{ComponentProgress, computed_progress},
        write::begin_generation,
    },
    core::decision::DecisionVersion,
};

/// What makes good a loss, in the order in which it has to be done: what came back is in the way of what is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// It has come back: it is recorded as over, which it is.
    Close,
    /// It has come back: it had been taken back, or cut in two.
    Delete,
    /// It is on record as it was before: it is recorded once more as it is known.
    Renew,
    /// It is missing: the same.
    Restore,
}

impl Remedy {
    /// Whether what came back has to go again.
    pub fn is_of_what_came_back(self) -> bool {
        matches!(self, Self::Close | Self::Delete)
    }
}

/// What is on record of something that begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Revision of its last change.
    pub revision: u64,
    /// Whether it has not ended.
    pub is_open: bool,
}

/// The remedy for what is `known` to be open as of a revision, or is not, with this `record`. `has_left`: it was known to be
/// open, and then to be no more. `is_over`: it is known that it has ended, whatever is on record.
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

/// Whether an `attempt` at an action may have been sent although the record says that it was only prepared: a database
/// without its last commits may have lost the mark. The registry counts each attempt before it is sent, so one that it has
/// not counted was not sent. Nobody can tell where the component is not known, or where another generation of it has begun,
/// as one does when commits are lost.
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

/// The record of a component, of which any change may be lost after those on record, in a database that was taken on to
/// `revision`, above all that was ever seen.
///
/// What was done for the lost changes has happened, and nobody knows for which attempts. So a generation begins that nobody
/// has heard of, and what is done about the node from then on rests on a new look at it.
///
/// A shutdown that is on record as called may have had its effect, and the node may have booted again since. So it counts
/// as not called: a node that is on is asked to shut down, rather than cut off once the time of that shutdown is over.
pub fn begin_anew(component: &Component, revision: u64) -> Component {
    let mut anew = component.clone();
    anew.generation = anew.generation.max(revision);
    anew.decided_by = DecisionVersion::default();
    if is_shutdown_under_way(component) {
        let power_on_attempts = Some(component.attempts(Action::PoweringOn));
        anew.event_stats = Some(EventStats { power_on_attempts, ..EventStats::zeros() });
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
                BootPreparation, InventoryPresence, LastAction, Phase, Status,
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
            event_stats: Some(EventStats { power_on_attempts: Some(attempts), ..EventStats::default() }),
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
            preparation,
            power_trouble: trouble("refused"),
            error: Some("trouble".into()),
            decided_by: DecisionVersion { rules: 1, options: 9 },
            ..bare()
        };
        for (revision, generation) in [(3, 8), (7, 8), (60, 61)] {
            let expected = Component {
                generation,
                preparation: None,
                power_trouble: None,
                presence: InventoryPresence::default(),
                decided_by: DecisionVersion::default(),
                ..known.clone()
            };
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
            enabled: Some(true),
            status: Some(Status { phase: Some(phase), status_override: None }),
            last_action: Some(LastAction {
                action: Some(action),
                failed: Some(false),
                last_updated: Some(Timestamp(NOW.0 - age)),
            }),
            event_stats: Some(stats),
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
            assert_eq!(anew.event_stats, Some(expected), "{name}");
            let listed = Component { presence: InventoryPresence::Listed, ..anew };
            let decision = power::decide(&listed, &PowerObservation::On, &Options::default(), NOW);
            assert_eq!(decision, PowerDecision::Act { action: ask, attempt: 1 }, "{name}");
        }
        let disabled = Component { enabled: Some(false), ..called(off, ask, 1, stats(0, 1, 0)) };
        for (name, known) in [
            ("switched on", called(Phase::PoweringOn, on, 1, stats(1, 1, 0))),
            ("to be switched on", called(Phase::PoweringOn, ask, 1, stats(0, 1, 0))),
            ("to be switched off", called(off, on, 1, stats(1, 1, 0))),
            ("disabled", disabled),
        ] {
            assert_eq!(begin_anew(&known, 60).event_stats, known.event_stats, "{name}");
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
