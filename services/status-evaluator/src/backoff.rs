//! How long to wait before another try.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

/// A registry that restarts is back within a second, so the first tries come quickly.
const FIRST: Duration = Duration::from_millis(100);
/// Even after a long outage decisions are written within seconds of its end.
const LONGEST: Duration = Duration::from_secs(5);

/// The pause after `failures` failures in a row: it doubles up to a limit, and half of it is left to
/// chance, so that those who failed together do not come back together.
pub(crate) fn pause(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let full = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    full / 2 + (full / 2).mul_f64(chance())
}

/// A number from 0 to 1. Every hasher state of the standard library has random keys.
fn chance() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    f64::from((random >> 32) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        for (failures, full) in [(0, 100), (1, 100), (2, 200), (5, 1600), (7, 5000), (u32::MAX, 5000)] {
            let pause = pause(failures).as_millis();
            assert!((full / 2..=full).contains(&pause), "{failures} failures gave {pause} ms");
        }
    }
}
