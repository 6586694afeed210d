//! Durations of work, learned from earlier work, and how long work that is under way will still take.

use std::time::Duration;

/// Longest duration of the first bucket; each further one ends [`GROWTH`] times later.
const FIRST: f64 = 1.0;

/// Resolution: estimates are no better than their spread, which is wider.
const GROWTH: f64 = 1.2;

/// Buckets. The last one ends after 13 hours, and takes everything longer too.
const BUCKETS: usize = 60;

/// Number of durations beyond which the older ones count half: machines and images change.
const MOST_DURATIONS: u64 = 100_000;

/// Steps of a bisection, each of which halves the uncertainty.
const BISECTION_STEPS: usize = 40;

/// Durations of finished work, counted in buckets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DurationProfile {
    counts: Vec<u64>,
}

/// Work under way that began at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkAge {
    /// Time since the begin.
    pub age: Duration,
    /// Number of pieces of work.
    pub count: usize,
}

impl DurationProfile {
    /// Creates a profile with the counts of one on record. Counts beyond the last bucket are ignored.
    pub fn restored(mut counts: Vec<u64>) -> Self {
        counts.truncate(BUCKETS);
        Self { counts }
    }

    /// Returns the counts, for a record.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the number of durations.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Counts a duration.
    pub fn add(&mut self, took: Duration) {
        let bucket = bucket(took);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
    }

    /// Returns the profile with the durations of a newer one. Beyond [`MOST_DURATIONS`] durations the older ones count half.
    #[must_use]
    pub fn with(mut self, newer: &Self) -> Self {
        if self.total() + newer.total() > MOST_DURATIONS {
            self.counts.iter_mut().for_each(|count| *count = count.div_ceil(2));
        }
        if self.counts.len() < newer.counts.len() {
            self.counts.resize(newer.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&newer.counts) {
            *count += more;
        }
        self
    }

    /// Returns the share of durations that were no longer than `time`. Within a bucket they count as spread evenly.
    fn share_within(&self, time: Duration) -> f64 {
        let total = self.total();
        if total == 0 {
            return 0.0;
        }
        let (seconds, at) = (time.as_secs_f64(), bucket(time));
        let before: u64 = self.counts.iter().take(at).sum();
        let within = self.counts.get(at).copied().unwrap_or_default() as f64;
        let (begin, end) = (begin_of(at), begin_of(at + 1));
        let part = ((seconds - begin) / (end - begin)).clamp(0.0, 1.0);
        (before as f64 + within * part) / total as f64
    }

    /// Returns the duration within which a `share` of the work was done; `None`: nothing is known.
    pub fn within(&self, share: f64) -> Option<Duration> {
        self.bisect(|time| self.share_within(time) >= share)
    }

    /// Returns the time in which all the `work` will be done with a chance of `chance`. Work that is older than any that was
    /// seen does not count. `None`: nothing is known about any of it.
    pub fn remaining(&self, work: &[WorkAge], chance: f64) -> Option<Duration> {
        let known: Vec<_> =
            work.iter().filter(|one| one.count > 0 && self.share_within(one.age) < 1.0).collect();
        if known.is_empty() {
            return None;
        }
        let chance_within = |time: Duration| -> f64 {
            known.iter().map(|one| self.chance_of_end(one.age, time).powf(one.count as f64)).product()
        };
        self.bisect(|time| chance_within(time) >= chance)
    }

    /// Returns the chance that work of that age ends within `time`.
    fn chance_of_end(&self, age: Duration, time: Duration) -> f64 {
        let over = self.share_within(age);
        (self.share_within(age + time) - over) / (1.0 - over)
    }

    /// Returns the shortest time for which `holds`, which holds for every longer one too.
    fn bisect(&self, holds: impl Fn(Duration) -> bool) -> Option<Duration> {
        let (mut low, mut high) = (0.0, begin_of(self.counts.len()));
        if self.total() == 0 || !holds(Duration::from_secs_f64(high)) {
            return None;
        }
        for _ in 0..BISECTION_STEPS {
            let middle = f64::midpoint(low, high);
            if holds(Duration::from_secs_f64(middle)) { high = middle } else { low = middle }
        }
        Some(Duration::from_secs_f64(high))
    }
}

/// Returns the bucket of a duration.
fn bucket(time: Duration) -> usize {
    let seconds = time.as_secs_f64();
    if seconds < FIRST {
        return 0;
    }
    // The logarithm is not negative, and the last bucket takes what is beyond.
    let number = (seconds / FIRST).log(GROWTH).floor() as usize + 1;
    number.min(BUCKETS - 1)
}

/// Returns the shortest duration of a bucket, in seconds.
fn begin_of(bucket: usize) -> f64 {
    match bucket {
        0 => 0.0,
        later => FIRST * GROWTH.powi(i32::try_from(later - 1).unwrap_or(i32::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn profile(seconds: impl IntoIterator<Item = u64>) -> DurationProfile {
        let mut profile = DurationProfile::default();
        seconds.into_iter().for_each(|seconds| profile.add(Duration::from_secs(seconds)));
        profile
    }

    /// Compares within the resolution of the buckets.
    fn is_about(duration: Option<Duration>, seconds: f64) {
        let found = duration.map(|duration| duration.as_secs_f64());
        assert!(found.is_some_and(|found| (found / seconds - 1.0).abs() < 0.25), "{found:?}, not {seconds}");
    }

    #[test]
    fn every_duration_has_a_bucket() {
        for milliseconds in [0, 1, 999, 1000, 1001, 59_999, 3_600_000, 40_000_000, u64::from(u32::MAX)] {
            let time = Duration::from_millis(milliseconds);
            let at = bucket(time);
            let seconds = time.as_secs_f64();
            assert!(begin_of(at) <= seconds, "{milliseconds}");
            assert!(seconds < begin_of(at + 1) || at == BUCKETS - 1, "{milliseconds}");
        }
    }

    #[test]
    fn shares_are_those_of_the_durations() {
        let profile = profile(1..=1000);
        is_about(profile.within(0.5), 500.0);
        is_about(profile.within(0.99), 990.0);
        assert_eq!(DurationProfile::default().within(0.5), None);
    }

    #[test]
    fn many_take_as_long_as_the_slowest() {
        let profile = profile((0..990).map(|_| 100).chain((0..10).map(|_| 1000)));
        let new = |count| [WorkAge { age: Duration::ZERO, count }];
        is_about(profile.remaining(&new(1), 0.5), 100.0);
        is_about(profile.remaining(&new(1000), 0.5), 1000.0);
        is_about(profile.remaining(&new(1), 0.999), 1000.0);
    }

    #[test]
    fn age_tells_that_the_quick_end_did_not_come() {
        let profile = profile((0..90).map(|_| 100).chain((0..10).map(|_| 1000)));
        let aged = |age| [WorkAge { age, count: 1 }];
        is_about(profile.remaining(&aged(5 * MINUTE), 0.5), 700.0);
        let beyond = WorkAge { age: 60 * MINUTE, count: 3 };
        assert_eq!(profile.remaining(&[beyond], 0.5), None);
        let both = [beyond, WorkAge { age: Duration::ZERO, count: 1 }];
        assert_eq!(profile.remaining(&both, 0.5), profile.remaining(&both[1..], 0.5));
        assert_eq!(profile.remaining(&[], 0.5), None);
    }

    #[test]
    fn newer_durations_take_over() {
        let mut learned = profile([]);
        for _ in 0..3 {
            learned = learned.with(&profile((0..40_000).map(|_| 100)));
        }
        for _ in 0..6 {
            learned = learned.with(&profile((0..40_000).map(|_| 10)));
        }
        assert!(learned.total() <= MOST_DURATIONS + 40_000, "{}", learned.total());
        is_about(learned.within(0.9), 10.0);
        let again = DurationProfile::restored(learned.counts().to_vec());
        assert_eq!(again, learned);
        assert_eq!(DurationProfile::restored(vec![1; 2 * BUCKETS]).total(), BUCKETS as u64);
    }
}
