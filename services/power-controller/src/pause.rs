//! How long to wait before something is tried again.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

/// Pause after the first failure: most outages are restarts, which last about as long.
const FIRST: Duration = Duration::from_millis(100);

/// Longest pause: after a long outage nodes are acted on again within seconds.
const LONGEST: Duration = Duration::from_secs(5);

/// A pause that doubles with each failure, between half of it and all of it: callers that failed together
/// do not come back together.
pub(crate) fn after(failures: u32) -> Duration {
    let whole = FIRST.saturating_mul(1 << failures.min(16)).min(LONGEST);
    whole.mul_f64(0.5 + random_fraction() / 2.0)
}

/// Between 0 and 1. Every `RandomState` has keys of its own, which is random enough to spread pauses.
fn random_fraction() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 32;
    f64::from(u32::try_from(bits).unwrap_or(u32::MAX)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ() {
        for (failures, whole) in [(0, 100), (1, 200), (3, 800), (6, 5000), (u32::MAX, 5000)] {
            let whole = Duration::from_millis(whole);
            assert!((0..100).all(|_| (whole / 2..=whole).contains(&after(failures))), "{failures}");
        }
        assert!((0..100).any(|_| after(9) != after(9)));
    }
}
