//! The time for which an outside system has not answered.

use std::{borrow::Borrow, collections::HashMap, hash::Hash, time::Duration};

use tokio::time::Instant;

use crate::process::memory::leave_room;

/// Longest time without answers before earlier readings count as unknown. A restart of a system takes less, and every
/// wait for the effect of an action is much longer.
pub const LONGEST_SILENCE: Duration = Duration::from_secs(3);

/// Time from the first failure in a row.
#[derive(Debug, Default)]
pub struct OutageTimer {
    since: Option<Instant>,
    /// Whether the outage is on record.
    is_recorded: bool,
}

impl OutageTimer {
    /// Ends the outage: the system answered.
    pub fn end(&mut self) {
        *self = Self::default();
    }

    /// Notes that a request made at `asked_at` was not answered. Returns whether the outage is too long: a system that
    /// hangs is silent from the request on.
    pub fn is_too_long(&mut self, asked_at: Instant, now: Instant) -> bool {
        now.saturating_duration_since(*self.since.get_or_insert(asked_at)) >= LONGEST_SILENCE
    }
}

/// An outage timer for each key, where a system may answer about some keys and not about others.
#[derive(Debug)]
pub struct KeyOutages<K> {
    timers: HashMap<K, OutageTimer>,
}

impl<K> Default for KeyOutages<K> {
    fn default() -> Self {
        Self { timers: HashMap::new() }
    }
}

impl<K: Eq + Hash + Clone> KeyOutages<K> {
    /// Ends the outage of a key that was read.
    pub fn end<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        if self.timers.remove(key).is_some() {
            leave_room(&mut self.timers);
        }
    }

    /// Notes that a request about `keys`, made at `asked_at`, was not answered. Returns the keys whose outage is too
    /// long.
    pub fn too_long(&mut self, keys: &[K], asked_at: Instant, now: Instant) -> Vec<K> {
        let is_too_long = |key: &&K| self.timers.entry(K::clone(key)).or_default().is_too_long(asked_at, now);
        keys.iter().filter(is_too_long).cloned().collect()
    }

    /// Notes that the present outage of `keys` is on record.
    pub fn note_recorded(&mut self, keys: impl IntoIterator<Item = K>) {
        keys.into_iter().for_each(|key| self.timers.entry(key).or_default().is_recorded = true);
    }

    /// Returns whether the present outage of a key is on record.
    pub fn is_recorded(&self, key: &K) -> bool {
        self.timers.get(key).is_some_and(|timer| timer.is_recorded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_silence_changes_nothing() {
        let mut outage = OutageTimer::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(!outage.is_too_long(at(0), at(1)));
        assert!(outage.is_too_long(at(2), at(3)));
        outage.end();
        assert!(!outage.is_too_long(at(4), at(5)));
        assert!(outage.is_too_long(at(6), at(26)), "a peer that hangs is silent from the request on");
        outage.end();
        assert!(outage.is_too_long(at(30), at(50)));
    }

    #[test]
    fn key_is_lost_when_nothing_was_read_of_it_for_a_while() {
        let (start, mut outages) = (Instant::now(), KeyOutages::default());
        let keys = ["x1", "x2"].map(str::to_owned);
        let too_long = |outages: &mut KeyOutages<String>, asked_at, now| {
            let [asked_at, now] = [asked_at, now].map(|after| start + Duration::from_millis(after));
            outages.too_long(&keys, asked_at, now).len()
        };
        assert_eq!(too_long(&mut outages, 0, 1), 0);
        assert_eq!(too_long(&mut outages, 2_990, 2_999), 0);
        outages.end("x2");
        assert_eq!(too_long(&mut outages, 2_999, 3_000), 1);
        assert_eq!(too_long(&mut outages, 5_000, 6_000), 2);
        keys.iter().for_each(|key| outages.end(key.as_str()));
        assert_eq!(too_long(&mut outages, 6_000, 9_000), 2, "one batch took so long");
    }

    #[test]
    fn record_of_an_outage_ends_with_it() {
        let mut outages = KeyOutages::<String>::default();
        let (one, other) = ("x1".to_owned(), "x2".to_owned());
        outages.note_recorded([one.clone()]);
        assert!(outages.is_recorded(&one) && !outages.is_recorded(&other));
        outages.end(&one);
        assert!(!outages.is_recorded(&one));
    }
}
