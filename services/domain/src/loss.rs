//! What to do about records of which a database has lost the last commits, for example because its stand-in took over
//! without them.

use crate::{
    component::{Action, Component},
    evaluation::DecisionVersion,
    write::begin_generation,
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
pub fn begin_anew(component: &Component, revision: u64) -> Component {
    let mut anew = component.clone();
    anew.generation = anew.generation.max(revision);
    anew.decided_by = DecisionVersion::default();
    begin_generation(&mut anew);
    anew
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        component::{
            BootPreparation, EventStats,
            view::{bare, trouble},
        },
        presence::InventoryPresence,
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
