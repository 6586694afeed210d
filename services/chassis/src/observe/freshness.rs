//! The time for which readings of an outside system count while the task that keeps them current pauses.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// Interval in which a task that keeps readings current shows progress while nothing is read.
pub const BEAT: Duration = Duration::from_secs(1);

/// Longest pause of that task before readings are out of date: the process slept, or the database took no writes.
pub const LAPSE: Duration = Duration::from_secs(10);

/// Freshness of the readings on record, by the monotonic clock. Clones share it.
#[derive(Debug, Clone)]
pub struct ReadingFreshness(Arc<Mutex<FreshnessTimes>>);

#[derive(Debug)]
struct FreshnessTimes {
    /// Last sign of progress of the task that keeps readings current.
    beat: Instant,
    /// Beginning of the last withdrawal that is on record.
    withdrawn: Instant,
}

impl Default for ReadingFreshness {
    fn default() -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(FreshnessTimes { beat: now, withdrawn: now })))
    }
}

impl ReadingFreshness {
    /// Notes that the task makes progress.
    pub fn beat(&self) {
        self.0.lock().beat = Instant::now();
    }

    /// Notes a withdrawal of all readings that began at `began` and is on record.
    pub fn withdrew(&self, began: Instant) {
        self.0.lock().withdrawn = began;
    }

    /// Returns whether readings are out of date: the task paused, or readings were lost `since_loss` ago and no
    /// withdrawal has begun since.
    pub fn has_lapsed(&self, since_loss: Option<Duration>) -> bool {
        let times = self.0.lock();
        times.beat.elapsed() >= LAPSE || since_loss.is_some_and(|age| age <= times.withdrawn.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn readings_are_out_of_date_after_a_pause_or_a_loss() {
        let freshness = ReadingFreshness::default();
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        tokio::time::advance(LAPSE / 2).await;
        assert!(!freshness.has_lapsed(None) && !freshness.has_lapsed(seconds(60)));
        assert!(freshness.has_lapsed(seconds(1)));
        freshness.withdrew(Instant::now());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!freshness.has_lapsed(seconds(2)), "withdrawn since");
        assert!(freshness.has_lapsed(seconds(0)), "lost again");
        tokio::time::advance(LAPSE / 2).await;
        assert!(freshness.has_lapsed(None));
        freshness.beat();
        assert!(!freshness.has_lapsed(None));
    }
}
