//! When nodes are asked for again.

use std::time::Duration;

use tokio::time::Instant;

/// Beats of a clock. Nodes that are asked for at about the same time come back on the same beat, and so in one
/// question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rhythm {
    start: Instant,
    pause: Duration,
}

impl Rhythm {
    pub(super) fn new(start: Instant, pause: Duration) -> Self {
        Self { start, pause: pause.max(Duration::from_millis(1)) }
    }

    /// The beat that comes closest to a pause after `now`.
    pub(super) fn next(&self, now: Instant) -> Instant {
        let (since, pause) = (now.saturating_duration_since(self.start).as_nanos(), self.pause.as_nanos());
        let beats = since.saturating_add(pause).saturating_add(pause / 2) / pause;
        let beat = u64::try_from(beats.saturating_mul(pause)).map_or(Duration::MAX, Duration::from_nanos);
        self.start.checked_add(beat).unwrap_or(now + self.pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_come_about_the_same_time_meet_on_a_beat() {
        let start = Instant::now();
        let rhythm = Rhythm::new(start, Duration::from_secs(5));
        for (after, beat) in [(0, 5), (2_499, 5), (2_500, 10), (5_000, 10), (7_499, 10), (7_500, 15)] {
            let now = start + Duration::from_millis(after);
            assert_eq!(rhythm.next(now), start + Duration::from_secs(beat), "{after} ms");
        }
    }
}
