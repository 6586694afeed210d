//! What is remembered of open transitions beside their records. A restart forgets it, which costs no more than
//! a repeated look or report.

use std::{collections::HashMap, sync::Arc, time::Duration};

use domain::{
    blame::{Next, Round},
    power::{Caller, REFUSED_ALONE, WITHDRAW_AGAIN},
    trouble::Trouble,
};
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long members show one error at least while they wait.
const STEADY: Duration = Duration::from_secs(30);

/// What is remembered of one.
#[derive(Debug, Clone, Default)]
struct Note {
    /// How often in a row the upstream did not say what was to be known.
    failures: u32,
    /// Trouble that the members show now.
    shown: Option<Trouble>,
    /// Since when they show it.
    shown_since: Option<Instant>,
    /// Since when nobody knows whether the upstream took the transition, and who had called it.
    doubt: Option<(Instant, Caller)>,
    /// Whether the upstream has under the id of the transition what was asked for.
    read_back: bool,
    /// When the upstream has heard that it is to end the transition early.
    withdrawal_heard: Option<Instant>,
    refusals: Option<Arc<Mutex<Refusals>>>,
}

/// Refusals of transitions that were one.
#[derive(Debug)]
struct Refusals {
    round: Round,
    since: Instant,
    /// Whether there were several nodes.
    several: bool,
    /// How often other nodes were probed because the upstream took none of those before.
    probed_again: u32,
}

impl Refusals {
    /// Whether those that are left are probed once more. A few nodes that are always refused do not stand for all, so
    /// other ones are tried: at once where the upstream takes transitions of others, else after ever longer times.
    fn is_probed_again(&self, others_taken: bool, now: Instant) -> bool {
        let pause = REFUSED_ALONE.saturating_mul(1 << self.probed_again.min(16));
        others_taken || now.saturating_duration_since(self.since) >= pause
    }
}

/// All notes, by the id of the transition.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    notes: Mutex<HashMap<String, Note>>,
    /// When the upstream last took a transition.
    taken: Mutex<Option<Instant>>,
}

impl Notes {
    fn with<A>(&self, id: &str, change: impl FnOnce(&mut Note) -> A) -> A {
        change(self.notes.lock().entry(id.to_owned()).or_default())
    }

    pub(crate) fn forget(&self, id: &str) {
        self.notes.lock().remove(id);
    }

    /// The transition goes on as these.
    pub(crate) fn hand_down<'a>(&self, id: &str, heirs: impl IntoIterator<Item = &'a str>) {
        let mut notes = self.notes.lock();
        if let Some(note) = notes.get(id).cloned() {
            notes.extend(heirs.into_iter().map(|heir| (heir.to_owned(), note.clone())));
        }
    }

    /// Counts a failure and gives how many there were in a row.
    pub(crate) fn failed(&self, id: &str) -> u32 {
        self.with(id, |note| {
            note.failures = note.failures.saturating_add(1);
            note.failures
        })
    }

    /// The upstream has said what was to be known.
    pub(crate) fn heard(&self, id: &str) {
        self.with(id, |note| note.failures = 0);
    }

    /// Remembers the trouble that members show from `now` on; `false`: they show it already, or one that has not
    /// been shown for long. A peer whose trouble looks different each time would change thousands of records
    /// with each of its words.
    pub(crate) fn show(&self, id: &str, trouble: &Trouble, now: Instant) -> bool {
        self.with(id, |note| {
            let for_long = note.shown_since.is_none_or(|since| now.duration_since(since) >= STEADY);
            let news = note.shown.as_ref() != Some(trouble) && for_long;
            if news {
                note.shown = Some(trouble.clone());
                note.shown_since = Some(now);
            }
            news
        })
    }

    /// Trouble that members show.
    pub(crate) fn shown(&self, id: &str) -> Option<Trouble> {
        self.notes.lock().get(id)?.shown.clone()
    }

    /// Trouble that members showed until now. From now on they show none.
    pub(crate) fn take_shown(&self, id: &str) -> Option<Trouble> {
        let mut notes = self.notes.lock();
        let note = notes.get_mut(id)?;
        note.shown_since = None;
        note.shown.take()
    }

    /// Since when the transition is in doubt, and who had called the upstream: `now` and this process if it was not
    /// until now.
    pub(crate) fn doubt(&self, id: &str, now: Instant) -> (Instant, Caller) {
        self.with(id, |note| *note.doubt.get_or_insert((now, Caller::Gone)))
    }

    /// The transition came from another replica, which may still be calling the upstream.
    pub(crate) fn inherit_doubt(&self, id: &str, now: Instant) {
        self.with(id, |note| note.doubt = Some((now, Caller::Elsewhere)));
    }

    pub(crate) fn no_longer_in_doubt(&self, id: &str) {
        self.with(id, |note| note.doubt = None);
    }

    /// The upstream has under the id of the transition what was asked for.
    pub(crate) fn note_read_back(&self, id: &str) {
        self.with(id, |note| note.read_back = true);
    }

    pub(crate) fn is_read_back(&self, id: &str) -> bool {
        self.notes.lock().get(id).is_some_and(|note| note.read_back)
    }

    /// The upstream has heard that it is to end the transition early.
    pub(crate) fn withdrawal_heard(&self, id: &str, now: Instant) {
        self.with(id, |note| note.withdrawal_heard = Some(now));
    }

    /// Whether the upstream is to be told that it is to end the transition early, for the first time or once more.
    pub(crate) fn withdrawal_is_due(&self, id: &str, now: Instant) -> bool {
        let heard = self.notes.lock().get(id).and_then(|note| note.withdrawal_heard);
        heard.is_none_or(|heard| now.saturating_duration_since(heard) >= WITHDRAW_AGAIN)
    }

    /// The upstream took the transition, and so may take those that were one with it.
    pub(crate) fn taken(&self, id: &str, now: Instant) {
        *self.taken.lock() = Some(now);
        if let Some(refusals) = self.notes.lock().get(id).and_then(|note| note.refusals.clone()) {
            refusals.lock().round.take();
        }
    }

    /// The upstream refused the transition of so many `nodes`. Gives what to do about it.
    pub(crate) fn refused(&self, id: &str, nodes: usize, now: Instant) -> Next {
        let refusals = self.with(id, |note| {
            let begin =
                || Refusals { round: Round::default(), since: now, several: nodes > 1, probed_again: 0 };
            Arc::clone(note.refusals.get_or_insert_with(|| Arc::new(Mutex::new(begin()))))
        });
        let mut refusals = refusals.lock();
        let others_taken = self.taken.lock().is_some_and(|taken| taken >= refusals.since);
        let lasting = now.saturating_duration_since(refusals.since) >= REFUSED_ALONE;
        match refusals.round.refuse(nodes) {
            Next::Undecided | Next::BlameUpstream if nodes <= 1 && others_taken => Next::BlameNode,
            Next::Undecided | Next::BlameUpstream if !refusals.several && lasting => Next::BlameNode,
            Next::BlameUpstream if nodes > 1 && refusals.is_probed_again(others_taken, now) => {
                refusals.round = Round::default();
                refusals.since = now;
                refusals.probed_again = refusals.probed_again.saturating_add(1);
                refusals.round.refuse(nodes)
            }
            next => next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_follows_the_last_error_now_and_then() {
        let (notes, start) = (Notes::default(), Instant::now());
        for (after, error, news) in [
            (0, "refused", true),
            (1, "refused", false),
            (29, "no answer", false),
            (30, "no answer", true),
            (59, "refused", false),
            (90, "no answer", false),
        ] {
            let trouble = Trouble::failed(error).unwrap();
            let shown = notes.show("t1", &trouble, start + Duration::from_secs(after));
            assert_eq!(shown, news, "{after}");
        }
        assert_eq!(notes.shown("t1"), Trouble::failed("no answer"));
    }

    #[test]
    fn nodes_that_are_left_are_probed_again() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        for (name, taken_at, rows) in [
            (
                "nobody is taken",
                None,
                vec![(1, "wait"), (59, "wait"), (60, "probe"), (61, "wait"), (179, "wait"), (180, "probe")],
            ),
            ("others are taken", Some(2), vec![(1, "wait"), (3, "probe"), (4, "wait")]),
        ] {
            let notes = Notes::default();
            assert_eq!(notes.refused("all", 10, at(0)), Next::Probe, "{name}");
            notes.hand_down("all", ["p1", "p2", "p3", "left"]);
            let mut probes = ["p1", "p2", "p3"].map(|probe| notes.refused(probe, 1, at(0)));
            for (second, expected) in rows {
                if let Some(taken_at) = taken_at.filter(|taken_at| *taken_at < second) {
                    notes.taken("other", at(taken_at));
                }
                let next = notes.refused("left", 7, at(second));
                let expected = if expected == "probe" { Next::Probe } else { Next::BlameUpstream };
                assert_eq!(next, expected, "{name}, {second} s");
                if next == Next::Probe {
                    probes = ["p1", "p2", "p3"].map(|probe| notes.refused(probe, 1, at(second)));
                }
            }
            assert_eq!(probes, [Next::Undecided, Next::Undecided, Next::BlameUpstream], "{name}");
        }
    }

    #[test]
    fn a_doubt_keeps_its_beginning_until_it_is_over_or_comes_from_elsewhere() {
        let (notes, start) = (Notes::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(notes.doubt("t1", at(1)), (at(1), Caller::Gone));
        assert_eq!(notes.doubt("t1", at(2)), (at(1), Caller::Gone));
        notes.inherit_doubt("t1", at(3));
        assert_eq!(notes.doubt("t1", at(4)), (at(3), Caller::Elsewhere));
        notes.no_longer_in_doubt("t1");
        assert_eq!(notes.doubt("t1", at(5)), (at(5), Caller::Gone));
    }
}
