//! How long to wait before something is tried again.

use std::time::Duration;

/// Pause after the first failure: most outages are restarts, which last about as long.
const FIRST: Duration = Duration::from_millis(100);

/// Longest pause: even after a long outage work goes on within seconds of its end.
const LONGEST: Duration = Duration::from_secs(5);

/// The pause after `failures` failures in a row. It doubles up to a limit, and half of it is left to chance,
/// so that those who failed together do not come back together.
pub fn after(failures: u32) -> Duration {
    let whole = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST);
    whole.mul_f64(rand::random_range(0.5..=1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ() {
        for (failures, whole) in [(0, 100), (1, 100), (2, 200), (4, 800), (7, 5000), (u32::MAX, 5000)] {
            let whole = Duration::from_millis(whole);
            assert!((0..100).all(|_| (whole / 2..=whole).contains(&after(failures))), "{failures}");
        }
        assert!((0..100).any(|_| after(9) != after(9)));
    }
}
