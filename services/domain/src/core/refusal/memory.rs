//! Memory of the refusals of one service.

use std::{collections::HashMap, hash::Hash, time::Instant};

use super::{LONG, RefusalStep, TakenBetween, Witness, next_step, witness};

/// Items that a service refused, each with the items taken between its refusals, and the time of the last taken one.
///
/// A refusal is forgotten a minute after the last one of its item: every refused call is repeated more often than that, so
/// nobody asks for the item any more. Blame is not forgotten so: it stays until the service takes the item, or until the
/// item has another generation.
#[derive(Debug)]
pub struct RefusalMemory<K> {
    suspects: HashMap<K, Suspect>,
    taken_at: Option<Instant>,
    rounds: u32,
}

/// Refusals of an item. Those of an older generation do not count for a newer one.
#[derive(Debug, Clone, Copy)]
struct Suspect {
    generation: u64,
    suspicion: Suspicion,
}

/// Verdict on an item that was refused.
#[derive(Debug, Clone, Copy)]
enum Suspicion {
    /// Fault of the item or of the service, which no answer has shown yet.
    Open(OpenSuspicion),
    /// The item was refused while others were taken.
    Blamed,
}

/// Refusals of an item that nothing explains yet.
#[derive(Debug, Clone, Copy)]
struct OpenSuspicion {
    last_refused: Instant,
    /// Number of times that others were taken between two refusals.
    taken_between: u32,
    /// First of those times.
    first_taken: Option<Instant>,
    /// Last of those times.
    last_taken: Option<Instant>,
}

impl OpenSuspicion {
    /// Returns the suspicion after a first refusal. `taken_at`: when others were taken last.
    fn first(taken_at: Option<Instant>, now: Instant) -> Self {
        let open = Self { last_refused: now, taken_between: 0, first_taken: None, last_taken: None };
        open.again(taken_at, now)
    }

    /// Returns the suspicion after a further refusal. Items that were taken at the very time of the refusal before
    /// count too: they were answered beside it.
    fn again(self, taken_at: Option<Instant>, now: Instant) -> Self {
        let is_between = |at: &Instant| *at >= self.last_refused && Some(*at) > self.last_taken;
        match taken_at.filter(is_between) {
            None => Self { last_refused: now, ..self },
            Some(at) => Self {
                last_refused: now,
                taken_between: self.taken_between + 1,
                first_taken: self.first_taken.or(Some(at)),
                last_taken: Some(at),
            },
        }
    }

    fn between(self, now: Instant) -> TakenBetween {
        let first_ago = self.first_taken.map(|taken_at| now.saturating_duration_since(taken_at));
        TakenBetween { times: self.taken_between, first_ago: first_ago.unwrap_or_default() }
    }
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
        self.suspects.retain(|_, suspect| match suspect.suspicion {
            Suspicion::Open(open) => now.saturating_duration_since(open.last_refused) < LONG,
            Suspicion::Blamed => true,
        });
        for (item, generation) in items {
            let known = self.suspects.get(item).filter(|known| known.generation == generation);
            let suspicion = match known.map(|known| known.suspicion) {
                Some(Suspicion::Blamed) => Suspicion::Blamed,
                Some(Suspicion::Open(open)) => Suspicion::Open(open.again(self.taken_at, now)),
                None => Suspicion::Open(OpenSuspicion::first(self.taken_at, now)),
            };
            self.suspects.insert(item.clone(), Suspect { generation, suspicion });
        }
    }

    /// Forgets the refusals of `items` that nothing explains yet, because each is to be judged by what the service takes from
    /// now on. One that was blamed stays so.
    pub fn forget_suspicions<'a>(&mut self, items: impl IntoIterator<Item = &'a K>)
    where
        K: 'a,
    {
        for item in items {
            let suspicion = self.suspects.get(item).map(|suspect| suspect.suspicion);
            if let Some(Suspicion::Open(_)) = suspicion {
                self.suspects.remove(item);
            }
        }
    }

    /// Recalls that an item was blamed in that generation, before the process began.
    pub fn recall_blame(&mut self, item: K, generation: u64) {
        let known = self.suspects.get(&item);
        if known.is_none_or(|known| known.generation <= generation) {
            self.suspects.insert(item, Suspect { generation, suspicion: Suspicion::Blamed });
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
        let between = match self.suspects.get(item).map(|suspect| suspect.suspicion) {
            Some(Suspicion::Blamed) if !within => return Witness::Before,
            Some(Suspicion::Open(open)) => open.between(now),
            Some(Suspicion::Blamed) | None => TakenBetween::default(),
        };
        witness(within, between)
    }

    /// Evidence by which an item that was refused just now is set aside, from now on at each refusal of the generation;
    /// `None`: the item waits.
    pub fn blame(&mut self, item: &K, within: bool, now: Instant) -> Option<Witness> {
        let witness = self.witness(item, within, now);
        let is_blamed = next_step(1, witness, true) == RefusalStep::SetAside;
        if let Some(suspect) = self.suspects.get_mut(item).filter(|_| is_blamed) {
            suspect.suspicion = Suspicion::Blamed;
        }
        is_blamed.then_some(witness)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
                Some(Witness::Before) => "set aside as before",
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
    fn items_are_set_aside_when_others_were_taken_twice_between_their_refusals() {
        expect![[r#"
            0 s c: taken, 0 remembered
            1 s ab: waits waits, 2 remembered
            5 s c: taken, 2 remembered
            9 s a: waits, 2 remembered
            9 s a: waits, 2 remembered
            10 s c: taken, 2 remembered
            11 s a: set aside, 2 remembered
            12 s a: waits, 2 remembered
            13 s b: waits, 2 remembered
            14 s c: taken, 2 remembered
            15 s b: set aside, 2 remembered
            16 s b: taken, 1 remembered
            17 s b: waits, 2 remembered
            18 s b: waits, 2 remembered
        "#]]
        .assert_eq(&play(&[
            (0, "c", "+"),
            (1, "ab", "1"),
            (5, "c", "+"),
            (9, "a", "1"),
            (9, "a", "1"),
            (10, "c", "+"),
            (11, "a", "1"),
            (12, "a", "2"),
            (13, "b", "1"),
            (14, "c", "+"),
            (15, "b", "1"),
            (16, "b", "+"),
            (17, "b", "1"),
            (18, "b", "1"),
        ]));
    }

    #[test]
    fn lone_item_waits_however_long_it_is_refused() {
        expect![[r#"
            0 s a: waits, 1 remembered
            30 s a: waits, 1 remembered
            60 s a: waits, 1 remembered
            119 s a: waits, 1 remembered
            178 s a: waits, 1 remembered
        "#]]
        .assert_eq(&play(&[(0, "a", "1"), (30, "a", "1"), (60, "a", "1"), (119, "a", "1"), (178, "a", "1")]));
    }

    #[test]
    fn others_that_are_taken_beside_the_first_refusal_count() {
        expect![[r#"
            0 s c: taken, 0 remembered
            0 s a: waits, 1 remembered
            5 s c: taken, 1 remembered
            9 s a: set aside, 1 remembered
        "#]]
        .assert_eq(&play(&[(0, "c", "+"), (0, "a", "1"), (5, "c", "+"), (9, "a", "1")]));
    }

    #[test]
    fn item_is_set_aside_that_is_refused_for_a_minute_after_others_were_taken_once() {
        expect![[r#"
            0 s a: waits, 1 remembered
            1 s b: taken, 1 remembered
            2 s a: waits, 1 remembered
            30 s a: waits, 1 remembered
            60 s a: waits, 1 remembered
            61 s a: set aside, 1 remembered
        "#]]
        .assert_eq(&play(&[
            (0, "a", "1"),
            (1, "b", "+"),
            (2, "a", "1"),
            (30, "a", "1"),
            (60, "a", "1"),
            (61, "a", "1"),
        ]));
    }

    #[test]
    fn blamed_item_stays_blamed_in_its_generation() {
        expect![[r#"
            0 s a: waits, 1 remembered
            5 s b: taken, 1 remembered
            9 s a: waits, 1 remembered
            10 s b: taken, 1 remembered
            11 s a: set aside, 1 remembered
            200 s a: set aside as before, 1 remembered
            201 s c: waits, 2 remembered
            300 s a: set aside as before, 1 remembered
            301 s a: waits, 1 remembered
            302 s a: waits, 1 remembered
        "#]]
        .assert_eq(&play(&[
            (0, "a", "1"),
            (5, "b", "+"),
            (9, "a", "1"),
            (10, "b", "+"),
            (11, "a", "1"),
            (200, "a", "1"),
            (201, "c", "1"),
            (300, "a", "1"),
            (301, "a", "2"),
            (302, "a", "2"),
        ]));
    }

    #[test]
    fn refusal_that_was_not_repeated_is_forgotten() {
        expect![[r#"
            0 s abc: waits waits waits, 3 remembered
            59 s d: waits, 4 remembered
            60 s d: waits, 1 remembered
            61 s e: taken, 1 remembered
            120 s a: waits, 1 remembered
            121 s d: waits, 2 remembered
        "#]]
        .assert_eq(&play(&[
            (0, "abc", "1"),
            (59, "d", "1"),
            (60, "d", "1"),
            (61, "e", "+"),
            (120, "a", "1"),
            (121, "d", "1"),
        ]));
    }

    #[test]
    fn recalled_blame_counts_for_its_generation() {
        let (mut memory, now) = (RefusalMemory::default(), Instant::now());
        memory.recall_blame('a', 3);
        memory.recall_blame('a', 2);
        memory.refuse([(&'a', 3), (&'b', 3)], now);
        memory.forget_suspicions(&['a', 'b', 'c']);
        assert_eq!(memory.suspects.len(), 1);
        assert_eq!(memory.blame(&'a', false, now), Some(Witness::Before));
        memory.refuse([(&'a', 4)], now);
        assert_eq!(memory.blame(&'a', false, now), None);
    }
}
