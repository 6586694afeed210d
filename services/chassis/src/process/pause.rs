//! Pauses between attempts.

use std::{future::Future, mem, time::Duration};

use domain::core::backoff::Jitter;
use tokio::time::sleep;

/// Pause after the first failure: most outages are restarts, which last about as long.
const FIRST: Duration = Duration::from_millis(100);

/// Longest pause: even after a long outage work resumes within seconds of its end.
const LONGEST: Duration = Duration::from_secs(5);

/// Range in seconds of the random delay of a refused caller: callers refused together do not retry together.
const RETRY_AFTER: std::ops::RangeInclusive<u64> = 1..=5;

/// The pause after `failures` failures in a row. Its bound doubles up to a limit, and all of it is random, so that
/// callers that failed together retry evenly spread.
pub fn after(failures: u32) -> Duration {
    let whole = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST);
    // The opposite range would include zero, which is no pause.
    whole.mul_f64(1.0 - rand::random_range(0.0..1.0))
}

/// Failures in a row of one kind of attempt.
#[derive(Debug, Default)]
pub struct FailureStreak {
    failures: u32,
}

impl FailureStreak {
    /// Counts a failure. Returns whether it is the first in a row: the first one is logged, and the others are like it.
    pub fn add(&mut self) -> bool {
        self.failures = self.failures.saturating_add(1);
        self.failures == 1
    }

    /// Ends the streak after a success. Returns the number of its failures; `None`: there was none.
    pub fn end(&mut self) -> Option<u32> {
        Some(mem::take(&mut self.failures)).filter(|failures| *failures > 0)
    }

    /// Returns whether the last attempt failed.
    pub fn lasts(&self) -> bool {
        self.failures > 0
    }

    /// The pause before the next attempt, which grows with the streak.
    pub fn pause(&self) -> Duration {
        after(self.failures)
    }
}

/// Repeats an attempt until it succeeds, after pauses that grow. `note` gets each failure and the number of failures in a
/// row.
pub async fn until_done<T, E, F: Future<Output = Result<T, E>>>(
    attempt: impl Fn() -> F,
    note: impl Fn(E, u32),
) -> T {
    let mut streak = FailureStreak::default();
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(failure) => {
                streak.add();
                note(failure, streak.failures);
                sleep(streak.pause()).await;
            }
        }
    }
}

/// Time after which a refused caller should try again.
pub fn retry_after() -> Duration {
    Duration::from_secs(rand::random_range(RETRY_AFTER))
}

/// Random fraction for the back-off of a rule.
pub fn jitter() -> Jitter {
    Jitter(rand::random())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn first_failure_and_end_of_a_streak_are_told() {
        let mut streak = FailureStreak::default();
        assert_eq!((streak.lasts(), streak.end()), (false, None));
        assert_eq!([(); 3].map(|()| streak.add()), [true, false, false]);
        assert_eq!((streak.lasts(), streak.end()), (true, Some(3)));
        assert!(streak.add(), "the next streak has a first failure of its own");
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_go_on_until_one_succeeds() {
        let (attempts, noted) = (Cell::new(0), Cell::new(0));
        let attempt = || async {
            attempts.set(attempts.get() + 1);
            if attempts.get() < 4 { Err("no") } else { Ok(attempts.get()) }
        };
        assert_eq!(until_done(attempt, |_, failures| noted.set(failures)).await, 4);
        assert_eq!(noted.get(), 3);
    }

    #[test]
    fn pauses_grow_to_a_limit_and_differ() {
        for (failures, whole) in [(0, 100), (1, 100), (2, 200), (4, 800), (7, 5000), (u32::MAX, 5000)] {
            let whole = Duration::from_millis(whole);
            let pauses = (0..200).map(|_| after(failures)).collect::<Vec<_>>();
            assert!(
                pauses.iter().all(|pause| (Duration::from_nanos(1)..=whole).contains(pause)),
                "{failures}"
            );
            assert!(pauses.iter().any(|pause| *pause < whole / 4), "{failures}: not spread to the beginning");
            assert!(pauses.iter().any(|pause| *pause > whole * 3 / 4), "{failures}: not spread to the end");
        }
    }
}
