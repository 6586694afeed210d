//! The order of readings of an outside system.
//!
//! Answers may overtake each other, and a pushed change may overtake an answer. Arrival times do not tell which of two
//! readings is newer: the time of the request does.

use std::{collections::HashMap, hash::Hash};

use crate::process::memory::leave_room;

/// Position of a request, of a pushed change or of a gap in the order of one observer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalTime(u64);

/// Logical clock of one observer, with the origin of the newest reading of each key.
///
/// The clock orders readings. Which of two readings stands is a rule about their kind, and belongs to `domain`.
#[derive(Debug)]
pub struct ReadingClock<K, O> {
    now: LogicalTime,
    /// Last gap: changes from before it may have been missed.
    gap: LogicalTime,
    newest: HashMap<K, NewestReading<O>>,
}

#[derive(Debug)]
struct NewestReading<O> {
    /// Time of the request that the reading answers, or at which the change was pushed.
    time: LogicalTime,
    origin: O,
}

impl<K, O> Default for ReadingClock<K, O> {
    fn default() -> Self {
        Self { now: LogicalTime(0), gap: LogicalTime(0), newest: HashMap::new() }
    }
}

impl<K: Eq + Hash, O> ReadingClock<K, O> {
    /// Returns the time of a request that is made now, or of a change that arrives now.
    pub fn tick(&mut self) -> LogicalTime {
        self.now.0 += 1;
        self.now
    }

    /// Notes a reading that stands. One that only confirms a reading of a later time does not make that one older.
    pub fn note(&mut self, key: K, time: LogicalTime, origin: O) {
        let time = self.newest.get(&key).map_or(time, |newest| newest.time.max(time));
        self.newest.insert(key, NewestReading { time, origin });
    }

    /// Returns the origin of the newest reading of a key.
    pub fn newest(&self, key: &K) -> Option<&O> {
        self.newest.get(key).map(|newest| &newest.origin)
    }

    /// Returns the origin of the newest reading of a key, if every change since would have been noticed.
    pub fn fresh(&self, key: &K) -> Option<&O> {
        self.newest.get(key).filter(|newest| newest.time >= self.gap).map(|newest| &newest.origin)
    }

    /// Returns whether a reading that was requested or pushed at `time` arrives after one of a later time.
    pub fn is_overtaken(&self, key: &K, time: LogicalTime) -> bool {
        self.newest.get(key).is_some_and(|newest| newest.time > time)
    }

    /// Notes a gap: changes may have been missed, so no reading from before it is fresh.
    pub fn note_gap(&mut self) {
        self.gap = self.tick();
    }

    /// Forgets the reading of a key, so that the next one stands whenever it was requested.
    pub fn forget(&mut self, key: &K) {
        if self.newest.remove(key).is_some() {
            leave_room(&mut self.newest);
        }
    }

    /// Forgets all readings.
    pub fn clear(&mut self) {
        self.newest = HashMap::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_request_counts_however_late_the_earlier_answer_comes() {
        let mut clock = ReadingClock::default();
        let (first, second) = (clock.tick(), clock.tick());
        clock.note("a", second, 'b');
        assert_eq!([first, second].map(|time| clock.is_overtaken(&"a", time)), [true, false]);
        clock.note("a", first, 'c');
        assert!(clock.is_overtaken(&"a", first), "a confirmation makes no reading older");
        assert_eq!(clock.newest(&"a"), Some(&'c'));
        clock.forget(&"a");
        assert!(!clock.is_overtaken(&"a", first));
    }

    #[test]
    fn reading_from_before_a_gap_is_not_fresh() {
        let mut clock = ReadingClock::default();
        assert_eq!(clock.fresh(&"a"), None, "never read");
        let before = clock.tick();
        clock.note("a", before, 1);
        assert_eq!(clock.fresh(&"a"), Some(&1));
        let under_way = clock.tick();
        clock.note_gap();
        clock.note("a", under_way, 2);
        assert_eq!((clock.newest(&"a"), clock.fresh(&"a")), (Some(&2), None));
        let after = clock.tick();
        clock.note("a", after, 3);
        assert_eq!(clock.fresh(&"a"), Some(&3));
        clock.clear();
        assert_eq!(clock.newest(&"a"), None);
    }
}
