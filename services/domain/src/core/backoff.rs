//! Exponential back-off with jitter. The random part is an argument, as the time is elsewhere.

use std::time::Duration;

/// Random fraction that spreads retries, drawn by the caller: `0` is the smallest one, `u32::MAX` stands for one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Jitter(pub u32);

/// Delays that double with every failure in a row, up to a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Longest delay of no failure; every failure doubles it.
    pub unit: Duration,
    /// Failures after which the delay grows no more.
    pub most_failures: u32,
}

impl Backoff {
    /// Returns the delay after `failures` in a row: more than half of the longest delay for them, up to all of it.
    #[must_use]
    pub fn delay(self, failures: u32, jitter: Jitter) -> Duration {
        let doublings = failures.min(self.most_failures).min(31);
        let half = self.unit.saturating_mul(1 << doublings) / 2;
        let parts = u128::from(jitter.0) + 1;
        let random = half.as_millis() * parts / (u128::from(u32::MAX) + 1);
        half + Duration::from_millis(u64::try_from(random).unwrap_or(u64::MAX)).max(Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_within_their_bands() {
        let backoff = Backoff { unit: Duration::from_secs(60), most_failures: 9 };
        for failures in 0..12 {
            let longest = Duration::from_secs(60) * (1 << failures.min(9));
            for jitter in [0, 1, u32::MAX / 2, u32::MAX] {
                let delay = backoff.delay(failures, Jitter(jitter));
                assert!(delay > longest / 2 && delay <= longest, "{failures} {jitter}: {delay:?}");
            }
            assert_eq!(backoff.delay(failures, Jitter(u32::MAX)), longest);
        }
    }

    #[test]
    fn any_number_of_failures_has_a_delay() {
        let backoff = Backoff { unit: Duration::MAX, most_failures: u32::MAX };
        assert!(backoff.delay(u32::MAX, Jitter(u32::MAX)) > Duration::from_secs(1));
    }
}
