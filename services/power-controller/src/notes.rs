//! Notes about open transitions beside their records. A restart forgets them, at the cost of a repeated poll or report.

use std::{
    collections::HashMap,
    mem,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use domain::{
    boot::power::{Caller, WITHDRAW_AGAIN},
    core::{
        refusal::{RefusalMemory, RefusalStep, RefusedBatch, Witness},
        trouble::Trouble,
    },
};
use parking_lot::Mutex;
use proto::power::Transition;
use tokio::time::Instant;

/// Least time for which waiting members show one error.
const STEADY: Duration = Duration::from_secs(30);

/// Notes about one transition.
#[derive(Debug, Clone, Default)]
struct Note {
    /// Failures in a row to get the state of the transition from the upstream.
    failures: u32,
    /// Trouble that the members show now.
    shown: Option<Trouble>,
    /// Time since which the members show it.
    shown_since: Option<Instant>,
    /// Beginning of the doubt whether the upstream took the transition, and the process that had called it.
    doubt: Option<(Instant, Caller)>,
    /// Whether the last search for the transition failed.
    unreached: bool,
    /// Number of times that the transition was in doubt since the upstream took it last.
    doubts: u32,
    /// Whether the upstream's record under the id of the transition was found to match the request.
    read_back: bool,
    /// Time at which the upstream took the request to end the transition early.
    withdrawal_heard: Option<Instant>,
    /// Batch that contains the transition, once a part of the batch was refused.
    batch: Option<Arc<Mutex<RefusedBatch>>>,
}

/// Notes of all transitions, by the id of the transition.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    notes: Mutex<HashMap<String, Note>>,
    /// Nodes of refused transitions.
    refusals: Mutex<RefusalMemory<String>>,
    /// Searches for transitions in doubt.
    pub(crate) looks: Streak,
    /// Searches for holders of nodes.
    pub(crate) holder_looks: Streak,
    /// Withdrawals of transitions.
    pub(crate) withdrawals: Streak,
}

/// Failures in a row of one kind of request. The trouble is logged when it begins and when it ends.
#[derive(Debug, Default)]
pub(crate) struct Streak(AtomicU32);

impl Streak {
    /// Counts a failure and returns whether it is the first in a row.
    pub(crate) fn begins(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// Returns how many failures end with this answer; `None`: there were none.
    pub(crate) fn ends(&self) -> Option<u32> {
        Some(self.0.swap(0, Ordering::Relaxed)).filter(|failures| *failures > 0)
    }
}

impl Notes {
    fn with<A>(&self, id: &str, change: impl FnOnce(&mut Note) -> A) -> A {
        change(self.notes.lock().entry(id.to_owned()).or_default())
    }

    pub(crate) fn forget(&self, id: &str) {
        self.notes.lock().remove(id);
    }

    /// Copies the notes to the transitions that continue this one.
    pub(crate) fn hand_down<'a>(&self, id: &str, heirs: impl IntoIterator<Item = &'a str>) {
        let mut notes = self.notes.lock();
        if let Some(note) = notes.get(id).cloned() {
            notes.extend(heirs.into_iter().map(|heir| (heir.to_owned(), note.clone())));
        }
    }

    /// Counts a failure and returns how many there were in a row.
    pub(crate) fn failed(&self, id: &str) -> u32 {
        self.with(id, |note| {
            note.failures = note.failures.saturating_add(1);
            note.failures
        })
    }

    /// Ends the row of failures: the upstream has answered about the transition.
    pub(crate) fn heard(&self, id: &str) {
        self.with(id, |note| note.failures = 0);
    }

    /// Remembers the trouble that members show from `now` on; `false`: they show it already, or another one that has
    /// not been shown for long. A peer with a different text in each answer would otherwise change thousands of records
    /// each time.
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

    /// Returns the trouble that members show.
    pub(crate) fn shown(&self, id: &str) -> Option<Trouble> {
        self.notes.lock().get(id)?.shown.clone()
    }

    /// Returns the trouble that members showed until now. From now on they show none.
    pub(crate) fn take_shown(&self, id: &str) -> Option<Trouble> {
        let mut notes = self.notes.lock();
        let note = notes.get_mut(id)?;
        note.shown_since = None;
        note.shown.take()
    }

    /// Returns when the doubt began, and which process had called the upstream: `now` and this process if the
    /// transition was not in doubt until now.
    pub(crate) fn doubt(&self, id: &str, now: Instant) -> (Instant, Caller) {
        self.with(id, |note| {
            let (since, caller) = note.doubt.unwrap_or((now, Caller::Gone));
            let is_anew = mem::take(&mut note.unreached) && caller == Caller::Gone;
            *note.doubt.insert((if is_anew { now } else { since }, caller))
        })
    }

    /// Counts that the transition is in doubt again and returns whether that is the first time since the upstream took
    /// it.
    pub(crate) fn doubt_begins(&self, id: &str) -> bool {
        self.with(id, |note| {
            note.doubts = note.doubts.saturating_add(1);
            note.doubts == 1
        })
    }

    /// Returns whether the transition has been in doubt more than once.
    pub(crate) fn doubt_recurs(&self, id: &str) -> bool {
        self.notes.lock().get(id).is_some_and(|note| note.doubts > 1)
    }

    /// Begins the doubt of a transition that came from another replica, which may still be calling the upstream.
    pub(crate) fn inherit_doubt(&self, id: &str, now: Instant) {
        self.with(id, |note| note.doubt = Some((now, Caller::Elsewhere)));
    }

    /// Notes a failed search. A call of this process that was still on its way may arrive when the upstream is
    /// reachable again, so the doubt counts from the first search that succeeds.
    pub(crate) fn look_failed(&self, id: &str) {
        self.with(id, |note| note.unreached = true);
    }

    pub(crate) fn no_longer_in_doubt(&self, id: &str) {
        self.with(id, |note| note.doubt = None);
    }

    /// Notes that the upstream's record under the id of the transition matches the request.
    pub(crate) fn note_read_back(&self, id: &str) {
        self.with(id, |note| note.read_back = true);
    }

    pub(crate) fn is_read_back(&self, id: &str) -> bool {
        self.notes.lock().get(id).is_some_and(|note| note.read_back)
    }

    /// Notes that the upstream took the request to end the transition early.
    pub(crate) fn withdrawal_heard(&self, id: &str, now: Instant) {
        self.with(id, |note| note.withdrawal_heard = Some(now));
    }

    /// Returns whether the upstream is to be asked to end the transition early, for the first time or again.
    pub(crate) fn withdrawal_is_due(&self, id: &str, now: Instant) -> bool {
        let heard = self.notes.lock().get(id).and_then(|note| note.withdrawal_heard);
        heard.is_none_or(|heard| now.saturating_duration_since(heard) >= WITHDRAW_AGAIN)
    }

    /// Notes that the upstream took the transition, and so may take others of the same batch.
    pub(crate) fn taken(&self, transition: &Transition, now: Instant) {
        let ids = transition.members.iter().map(|member| &member.id);
        self.refusals.lock().take(ids, now.into_std());
        if let Some(batch) = self.notes.lock().get(&transition.id).and_then(|note| note.batch.clone()) {
            batch.lock().take();
        }
    }

    /// Notes that the upstream refused the transition. Returns the next step.
    pub(crate) fn refused(&self, transition: &Transition, now: Instant) -> RefusalStep {
        let batch = self.with(&transition.id, |note| Arc::clone(note.batch.get_or_insert_default()));
        let (mut batch, mut refusals, now) = (batch.lock(), self.refusals.lock(), now.into_std());
        let members = &transition.members;
        refusals.refuse(members.iter().map(|member| (&member.id, member.generation)), now);
        let Some(first) = members.first() else { return RefusalStep::BackOff };
        let witness = refusals.witness(&first.id, batch.is_taken(), now);
        let step = batch.next_step(members.len(), witness, now);
        if let RefusalStep::Probe(_) = step {
            // Each probe is judged by calls that the upstream takes from now on.
            refusals.forget(members.iter().map(|member| &member.id));
        }
        if witness == Witness::Alone {
            refusals.restart_suspicion(&first.id, now);
        }
        step
    }

    /// Returns the number of the next split of a transition into probes and others.
    pub(crate) fn next_round(&self) -> u32 {
        self.refusals.lock().next_round()
    }
}

#[cfg(test)]
mod tests {
    use proto::power::TransitionMember;

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

    /// Returns a transition with nodes named by the numbers.
    fn transition(id: &str, nodes: std::ops::Range<u32>) -> Transition {
        let member = |node| TransitionMember { id: format!("x{node}"), ..TransitionMember::default() };
        Transition { id: id.to_owned(), members: nodes.map(member).collect(), ..Transition::default() }
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
            ("others are taken", Some(2), vec![(1, "wait"), (4, "probe"), (5, "wait")]),
        ] {
            let notes = Notes::default();
            assert_eq!(notes.refused(&transition("all", 0..10), at(0)), RefusalStep::Probe(3), "{name}");
            notes.hand_down("all", ["p1", "p2", "p3", "left"]);
            let probe = |id, node, second| notes.refused(&transition(id, node..node + 1), at(second));
            let probe_all = |first, second| {
                [("p1", first), ("p2", first + 1), ("p3", first + 2)]
                    .map(|(id, node)| probe(id, node, second))
            };
            let mut probes = probe_all(0, 0);
            for (second, expected) in rows {
                if let Some(taken_at) = taken_at.filter(|taken_at| *taken_at < second) {
                    notes.taken(&transition("other", 20..21), at(taken_at));
                }
                let next = notes.refused(&transition("left", 3..10), at(second));
                let expected = if expected == "probe" { RefusalStep::Probe(3) } else { RefusalStep::BackOff };
                assert_eq!(next, expected, "{name}, {second} s");
                if next == RefusalStep::Probe(3) {
                    probes = probe_all(3, second);
                }
            }
            assert_eq!(probes, [RefusalStep::BackOff; 3], "{name}");
        }
    }

    #[test]
    fn lone_node_is_blamed_unless_others_are_refused() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        for (name, other_refused_at, expected) in
            [("alone", None, RefusalStep::SetAside), ("not alone", Some(30), RefusalStep::BackOff)]
        {
            let notes = Notes::default();
            let lone = transition("lone", 0..1);
            for second in [0, 59] {
                assert_eq!(notes.refused(&lone, at(second)), RefusalStep::BackOff, "{name}");
            }
            if let Some(second) = other_refused_at {
                notes.refused(&transition("other", 1..2), at(second));
            }
            assert_eq!(notes.refused(&lone, at(60)), expected, "{name}");
            if other_refused_at.is_some() {
                continue;
            }
            let next = transition("next attempt", 0..1);
            for (second, expected) in
                [(70, RefusalStep::BackOff), (119, RefusalStep::BackOff), (120, expected)]
            {
                assert_eq!(notes.refused(&next, at(second)), expected, "{name}, {second} s");
            }
        }
    }

    #[test]
    fn trouble_has_one_beginning_and_one_end() {
        let streak = Streak::default();
        assert_eq!(streak.ends(), None);
        assert_eq!([streak.begins(), streak.begins(), streak.begins()], [true, false, false]);
        assert_eq!((streak.ends(), streak.ends()), (Some(3), None));
        assert!(streak.begins());

        let notes = Notes::default();
        assert_eq!((notes.doubt_begins("t1"), notes.doubt_recurs("t1")), (true, false));
        assert_eq!((notes.doubt_begins("t1"), notes.doubt_recurs("t1")), (false, true));
        notes.forget("t1");
        assert!(notes.doubt_begins("t1"));
    }

    #[test]
    fn a_doubt_keeps_its_beginning_until_it_is_over_or_comes_from_elsewhere() {
        let (notes, start) = (Notes::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(notes.doubt("t1", at(1)), (at(1), Caller::Gone));
        assert_eq!(notes.doubt("t1", at(2)), (at(1), Caller::Gone));
        notes.inherit_doubt("t1", at(3));
        assert_eq!(notes.doubt("t1", at(4)), (at(3), Caller::Elsewhere));
        notes.look_failed("t1");
        assert_eq!(notes.doubt("t1", at(4)), (at(3), Caller::Elsewhere));
        notes.no_longer_in_doubt("t1");
        assert_eq!(notes.doubt("t1", at(5)), (at(5), Caller::Gone));
        notes.look_failed("t1");
        assert_eq!(notes.doubt("t1", at(6)), (at(6), Caller::Gone));
        assert_eq!(notes.doubt("t1", at(7)), (at(6), Caller::Gone));
    }
}
