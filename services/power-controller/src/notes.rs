//! What is remembered of open transitions beside their records. A restart forgets it, which costs no more than
//! a repeated look or report.

use std::{collections::HashMap, time::Duration};

use domain::power::Caller;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long members show one error at least while they wait.
const STEADY: Duration = Duration::from_secs(30);

/// What is remembered of one.
#[derive(Debug, Clone, Default)]
struct Note {
    /// How often in a row the upstream did not say what was to be known.
    failures: u32,
    /// Error that the members show now; empty: none.
    shown: String,
    /// Since when they show it.
    shown_since: Option<Instant>,
    /// Since when nobody knows whether the upstream took the transition, and who had called it.
    doubt: Option<(Instant, Caller)>,
    abort: Abort,
}

/// Whether the upstream was asked to end the transition early.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Abort {
    #[default]
    NotAsked,
    /// It did not hear, or perhaps did not.
    Unheard,
    Heard,
}

/// All notes, by the id of the transition.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    notes: Mutex<HashMap<String, Note>>,
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

    /// Remembers the error that members show from `now` on; `false`: they show it already, or one that has not
    /// been shown for long. A peer whose trouble looks different each time would change thousands of records
    /// with each of its words.
    pub(crate) fn show(&self, id: &str, error: &str, now: Instant) -> bool {
        self.with(id, |note| {
            let for_long = note.shown_since.is_none_or(|since| now.duration_since(since) >= STEADY);
            let news = note.shown != error && for_long;
            if news {
                error.clone_into(&mut note.shown);
                note.shown_since = Some(now);
            }
            news
        })
    }

    /// Error that members show; empty: none.
    pub(crate) fn shown(&self, id: &str) -> String {
        self.notes.lock().get(id).map(|note| note.shown.clone()).unwrap_or_default()
    }

    /// Error that members showed until now; empty: none. From now on they show none.
    pub(crate) fn take_shown(&self, id: &str) -> String {
        let mut notes = self.notes.lock();
        notes
            .get_mut(id)
            .map(|note| {
                note.shown_since = None;
                std::mem::take(&mut note.shown)
            })
            .unwrap_or_default()
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

    /// The upstream was asked to end the transition early. Whether it `heard` may not be known.
    pub(crate) fn aborted(&self, id: &str, heard: bool) {
        self.with(id, |note| note.abort = if heard { Abort::Heard } else { Abort::Unheard });
    }

    /// Whether the upstream knows that it is to end the transition early.
    pub(crate) fn knows_of_abort(&self, id: &str) -> bool {
        self.notes.lock().get(id).is_some_and(|note| note.abort == Abort::Heard)
    }

    /// Whether the upstream may have been asked to end the transition early.
    pub(crate) fn is_aborted(&self, id: &str) -> bool {
        self.notes.lock().get(id).is_some_and(|note| note.abort != Abort::NotAsked)
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
            assert_eq!(notes.show("t1", error, start + Duration::from_secs(after)), news, "{after}");
        }
        assert_eq!(notes.shown("t1"), "no answer");
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
