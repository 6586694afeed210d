//! Times of the take-over by another replica.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Times of a take-over between replicas that share a PostgreSQL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseSettings {
    /// Seconds after which the role of a replica that fell silent may be acquired by another.
    pub ttl_seconds: f64,
    /// Seconds between two renewals.
    pub renewal_seconds: f64,
    /// Seconds before the end of a lease from which it is not acted upon any more.
    pub margin_seconds: f64,
    /// Seconds without progress after which an engine counts as hanging, and its replica releases the role.
    pub stall_seconds: f64,
}

/// Longest turn of a loop without progress by default. The longest legitimate turn is a round of boot data in which an
/// upstream lets every call run into its deadline while a refused group is bisected: some 15 calls of 10 seconds, and a few
/// times as long where the options grant more.
const STALL: f64 = 900.0;

impl Default for LeaseSettings {
    fn default() -> Self {
        Self { ttl_seconds: 6.0, renewal_seconds: 2.0, margin_seconds: 1.5, stall_seconds: STALL }
    }
}

impl LeaseSettings {
    /// Checks that the periods are consistent.
    ///
    /// # Errors
    /// Names the keys that contradict one another.
    pub fn check(&self) -> Result<(), &'static str> {
        let all = [self.ttl_seconds, self.renewal_seconds, self.margin_seconds, self.stall_seconds];
        if all.iter().any(|seconds| !(0.01..=3600.0).contains(seconds)) {
            return Err("the seconds have to be from 0.01 to 3600");
        }
        if self.renewal_seconds * 2.0 > self.ttl_seconds - self.margin_seconds {
            return Err("ttl_seconds less margin_seconds has to leave time for two times renewal_seconds");
        }
        Ok(())
    }

    /// Returns the duration of a lease.
    pub fn ttl(&self) -> Duration {
        Duration::from_secs_f64(self.ttl_seconds)
    }

    /// Returns the time between renewals of a lease.
    pub fn renewal(&self) -> Duration {
        Duration::from_secs_f64(self.renewal_seconds)
    }

    /// Returns the longest time without progress of an engine.
    pub fn stall(&self) -> Duration {
        Duration::from_secs_f64(self.stall_seconds)
    }

    /// Returns the time before the end of a lease at which its holder stops.
    pub fn margin(&self) -> Duration {
        Duration::from_secs_f64(self.margin_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_that_cannot_be_kept_are_refused() {
        let leases = |ttl_seconds, renewal_seconds, margin_seconds| LeaseSettings {
            ttl_seconds,
            renewal_seconds,
            margin_seconds,
            stall_seconds: STALL,
        };
        assert_eq!(LeaseSettings::default().check(), Ok(()));
        for bad in
            [leases(6.0, 3.0, 1.5), leases(0.0, 2.0, 1.5), leases(6.0, f64::NAN, 1.5), leases(6.0, 2.0, 6.0)]
        {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
