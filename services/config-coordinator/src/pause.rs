//! How long to wait before something is tried again.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

/// Pause after the first failure: most outages are restarts, which last about as long.
const FIRST: Duration = Duration::from_millis(100);

/// Longest pause. After the end of an outage of any length every node must be on its way within a minute,
/// and an upstream that is down is not harmed by a few calls in that time.
const LONGEST: Duration = Duration::from_secs(15);

/// The pause after so many failures in a row. It doubles up to a limit; `chance`, from 0 to 1, decides about
/// half of it, so that those who failed together elsewhere do not come back together.
pub(crate) fn after(failures: u32, chance: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let whole = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    whole.mul_f64(0.5 + chance / 2.0)
}

/// Between 0 and 1. Every `RandomState` has keys of its own, which is random enough to spread pauses.
pub(crate) fn chance() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 32;
    f64::from(u32::try_from(bits).unwrap_or(u32::MAX)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        for (failures, shortest, longest) in
            [(1, 50, 100), (2, 100, 200), (5, 800, 1600), (u32::MAX, 7500, 15_000)]
        {
            let pauses = [0.0, 1.0].map(|chance| after(failures, chance).as_millis());
            assert_eq!(pauses, [shortest, longest], "{failures} failures");
        }
        assert!((0..100).all(|_| (0.0..=1.0).contains(&chance())));
        assert!((0..100).any(|_| chance() != chance()));
    }
}
