//! Memory of the refusals of one service.

use std::{
    collections::HashMap,
    hash::Hash,
    time::{Duration, Instant},
};

use super::{REFUSED_ALONE, RefusalStep, Witness, next_step, witness};

/// Items that a service refused, each with the times of its refusals, and the time when the service last took any.
///
/// A refusal counts for [`REFUSED_ALONE`] after the last one of its item, and is forgotten then: every refused call is
/// repeated more often than that, so the item was not asked for in between.
#[derive(Debug)]
pub struct RefusalMemory<K> {
    suspects: HashMap<K, Suspect>,
    taken_at: Option<Instant>,
    rounds: u32,
}

/// First and last refusal of an item. The refusals of an older generation do not count for a newer one.
#[derive(Debug, Clone, Copy)]
struct Suspect {
    generation: u64,
    since: Instant,
    last: Instant,
}

impl<K> Default for RefusalMemory<K> {
    fn default() -> Self {
        Self { suspects: HashMap::new(), taken_at: None, rounds: 0 }
    }
}

impl<K: Clone + Eq + Hash> RefusalMemory<K> {
    /// Number of the next round of calls, by which other items are probed than in the last one.
    pub fn next_round(&mut self) -> u32 {
        self.rounds = self.rounds.wrapping_add(1);
        self.rounds
    }

    /// Notes that the service took a call about `items`.
    pub fn take<'a>(&mut self, items: impl IntoIterator<Item = &'a K>, now: Instant)
    where
        K: 'a,
    {
        self.forget(items);
        self.taken_at = Some(now);
    }

    /// Notes that the service refused a call about `items`, each of which comes with its generation.
    pub fn refuse<'a>(&mut self, items: impl IntoIterator<Item = (&'a K, u64)>, now: Instant)
    where
        K: 'a,
    {
        self.suspects.retain(|_, suspect| now.saturating_duration_since(suspect.last) < REFUSED_ALONE);
        for (item, generation) in items {
            let known = self.suspects.get(item).filter(|known| known.generation == generation);
            let since = known.map_or(now, |known| known.since);
            self.suspects.insert(item.clone(), Suspect { generation, since, last: now });
        }
    }

    /// Forgets the refusals of `items`, because they no longer exist or because they are to be judged again.
    pub fn forget<'a>(&mut self, items: impl IntoIterator<Item = &'a K>)
    where
        K: 'a,
    {
        for item in items {
            self.suspects.remove(item);
        }
    }

    /// Evidence about an item that was refused just now. `within`: the service has taken others of its batch.
    #[must_use]
    pub fn witness(&self, item: &K, within: bool, now: Instant) -> Witness {
        let since = self.suspects.get(item).map(|suspect| suspect.since);
        let refused_for = since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let taken_ago = self.taken_at.map(|taken_at| now.saturating_duration_since(taken_at));
        let alone = self.suspects.len() <= usize::from(since.is_some());
        witness(within, refused_for, taken_ago, alone)
    }

    /// Evidence by which an item that was refused just now is set aside; `None`: the item waits. Where only time can
    /// tell, the same time has to pass before the item is set aside once more.
    pub fn blame(&mut self, item: &K, within: bool, now: Instant) -> Option<Witness> {
        let witness = self.witness(item, within, now);
        let is_blamed = next_step(1, witness, true) == RefusalStep::SetAside;
        if witness == Witness::Alone {
            self.restart_suspicion(item, now);
        }
        is_blamed.then_some(witness)
    }

    /// Notes that only time was the reason to set an item aside. Its refusals before do not count again.
    pub fn restart_suspicion(&mut self, item: &K, now: Instant) {
        if let Some(suspect) = self.suspects.get_mut(item) {
            suspect.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    /// Plays calls, each as its second, the letters that it is about, and whether the service takes it (`+`) or refuses it
    /// in this generation. Shows after each refusal whether each letter is set aside on its own.
    fn play(calls: &[(u64, &str, &str)]) -> String {
        let (mut memory, start) = (RefusalMemory::default(), Instant::now());
        let mut rows = String::new();
        for (second, letters, outcome) in calls {
            let now = start + Duration::from_secs(*second);
            let items: Vec<_> = letters.chars().collect();
            match outcome.parse() {
                Ok(generation) => memory.refuse(items.iter().map(|item| (item, generation)), now),
                Err(_) => memory.take(&items, now),
            }
            let verdicts = items.iter().map(|item| match memory.blame(item, false, now) {
                _ if *outcome == "+" => "taken",
                Some(Witness::Alone) => "set aside alone",
                Some(_) => "set aside",
                None => "waits",
            });
            let verdicts: Vec<_> = verdicts.collect();
            let remembered = memory.suspects.len();
            rows += &format!("{second} s {letters}: {}, {remembered} remembered\n", verdicts.join(" "));
        }
        rows
    }

    #[test]
    fn items_are_set_aside_only_while_others_are_taken() {
        expect![[r#"
            0 s ab: waits waits, 2 remembered
            5 s c: taken, 2 remembered
            9 s a: set aside, 2 remembered
            10 s a: waits, 2 remembered
            11 s b: set aside, 2 remembered
            12 s b: taken, 1 remembered
        "#]]
        .assert_eq(&play(&[
            (0, "ab", "1"),
            (5, "c", "+"),
            (9, "a", "1"),
            (10, "a", "2"),
            (11, "b", "1"),
            (12, "b", "+"),
        ]));
    }

    #[test]
    fn lone_item_is_set_aside_after_a_while_each_time() {
        expect![[r#"
            0 s a: waits, 1 remembered
            30 s a: waits, 1 remembered
            60 s a: set aside alone, 1 remembered
            70 s a: waits, 1 remembered
            119 s a: waits, 1 remembered
            120 s a: set aside alone, 1 remembered
            179 s a: waits, 1 remembered
            180 s a: set aside alone, 1 remembered
            181 s a: waits, 1 remembered
            201 s b: waits, 2 remembered
            220 s a: waits, 2 remembered
            241 s a: waits, 2 remembered
            262 s a: set aside alone, 1 remembered
        "#]]
        .assert_eq(&play(&[
            (0, "a", "1"),
            (30, "a", "1"),
            (60, "a", "1"),
            (70, "a", "1"),
            (119, "a", "1"),
            (120, "a", "1"),
            (179, "a", "1"),
            (180, "a", "1"),
            (181, "a", "2"),
            (201, "b", "1"),
            (220, "a", "2"),
            (241, "a", "2"),
            (262, "a", "2"),
        ]));
    }

    #[test]
    fn refusal_that_was_not_repeated_is_forgotten() {
        expect![[r#"
            0 s abc: waits waits waits, 3 remembered
            59 s d: waits, 4 remembered
            60 s d: waits, 1 remembered
            120 s a: waits, 1 remembered
            179 s a: waits, 1 remembered
            180 s a: set aside alone, 1 remembered
        "#]]
        .assert_eq(&play(&[
            (0, "abc", "1"),
            (59, "d", "1"),
            (60, "d", "1"),
            (120, "a", "1"),
            (179, "a", "1"),
            (180, "a", "1"),
        ]));
    }
}
