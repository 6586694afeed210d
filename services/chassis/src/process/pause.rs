//! Pauses between attempts.

use std::{future::Future, time::Duration};

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

/// Repeats an attempt until it succeeds, after pauses that grow. `note` gets each failure and the number of failures in a
/// row.
pub async fn until_done<T, E, F: Future<Output = Result<T, E>>>(
    attempt: impl Fn() -> F,
    note: impl Fn(E, u32),
) -> T {
    let mut failures = 0;
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(failure) => {
                failures += 1;
                note(failure, failures);
                sleep(after(failures)).await;
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
    use super::*;

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
