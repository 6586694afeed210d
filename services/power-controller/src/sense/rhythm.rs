//! The schedule of polls of nodes.

use std::time::Duration;

use domain::core::looks;
use tokio::time::Instant;

/// Beats of a clock. Nodes that were polled at about the same time are polled again on the same beat, and so in one
/// request.
#[derive(Debug, Clone, Copy)]
pub(super) struct PollRhythm {
    start: Instant,
    least: Duration,
    most: Duration,
}

impl PollRhythm {
    /// Creates beats that are between `least` and `most` apart.
    pub(super) fn new(start: Instant, least: Duration, most: Duration) -> Self {
        Self { start, least: least.max(Duration::from_millis(1)), most }
    }

    /// Returns when to poll a node again that was polled at `now`, and on which there was no action for `quiet`.
    pub(super) fn after(&self, now: Instant, quiet: Duration) -> Instant {
        self.next(now, looks::at_leisure(quiet, self.least, self.most))
    }

    /// Returns the beat that is closest to a `pause` after `now`.
    fn next(&self, now: Instant, pause: Duration) -> Instant {
        let (since, pause) = (now.saturating_duration_since(self.start).as_nanos(), pause.as_nanos());
        let beats = since.saturating_add(pause).saturating_add(pause / 2) / pause;
        let beat = u64::try_from(beats.saturating_mul(pause)).map_or(Duration::MAX, Duration::from_nanos);
        self.start.checked_add(beat).unwrap_or(now + self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_come_about_the_same_time_meet_on_a_beat() {
        let start = Instant::now();
        let rhythm = PollRhythm::new(start, Duration::from_secs(5), Duration::from_secs(30));
        for (after, quiet, beat) in [
            (0, 0, 5),
            (2_499, 0, 5),
            (2_500, 0, 10),
            (5_000, 19, 10),
            (7_499, 0, 10),
            (7_500, 0, 15),
            (7_500, 20, 20),
            (7_500, 60, 20),
            (12_000, 60, 40),
        ] {
            let (now, quiet) = (start + Duration::from_millis(after), Duration::from_secs(quiet));
            assert_eq!(rhythm.after(now, quiet), start + Duration::from_secs(beat), "{after} ms, {quiet:?}");
        }
    }
}
