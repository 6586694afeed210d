//! Moments at which many items are polled together.

use std::time::Duration;

use tokio::time::Instant;

/// Beats of a clock: the multiples of any period, counted from one start. Items that are polled with the same period are
/// polled on the same beats, and so in one request, however they were added one by one. The beats of a multiple of a
/// period are beats of that period too.
#[derive(Debug, Clone, Copy)]
pub struct PollBeats {
    start: Instant,
}

impl PollBeats {
    /// Creates beats that are counted from `start`.
    pub fn new(start: Instant) -> Self {
        Self { start }
    }

    /// Returns the first beat of `period` after `now`.
    pub fn next(&self, now: Instant, period: Duration) -> Instant {
        self.last(now, period).map_or(now + period, |beat| beat + period)
    }

    /// Returns the beat of `period` that is closest to a whole `period` after `now`.
    pub fn closest(&self, now: Instant, period: Duration) -> Instant {
        self.next(now + period / 2, period)
    }

    /// Returns the last beat of `period` that is not after `now`; `None`: the period has no length.
    fn last(&self, now: Instant, period: Duration) -> Option<Instant> {
        let past = now.saturating_duration_since(self.start);
        let beats = past.as_nanos().checked_div(period.as_nanos())?;
        let beat = u64::try_from(beats * period.as_nanos()).ok()?;
        self.start.checked_add(Duration::from_nanos(beat))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_polls_on_the_same_beats() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let beats = PollBeats::new(start);
        for (now, next) in [(0, 2000), (1, 2000), (1999, 2000), (2000, 4000), (7001, 8000)] {
            assert_eq!(beats.next(at(now), Duration::from_secs(2)), at(next), "{now}");
        }
        assert_eq!(beats.next(at(7), Duration::ZERO), at(7), "no period is no reason to wait");
    }

    #[test]
    fn closest_beat_is_half_a_period_away_at_least() {
        let start = Instant::now();
        let beats = PollBeats::new(start);
        for (now, period, beat) in [
            (0, 5, 5),
            (2_499, 5, 5),
            (2_500, 5, 10),
            (5_000, 5, 10),
            (7_499, 5, 10),
            (7_500, 5, 15),
            (7_500, 10, 20),
            (7_500, 20, 20),
            (12_000, 20, 40),
        ] {
            let now = start + Duration::from_millis(now);
            let closest = beats.closest(now, Duration::from_secs(period));
            assert_eq!(closest, start + Duration::from_secs(beat), "{now:?}, {period}");
        }
    }
}
