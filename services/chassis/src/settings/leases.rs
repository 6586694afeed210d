//! How replicas share the work on a database.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How replicas that share a PostgreSQL share the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leases {
    /// Seconds after which the work of a silent replica passes to another.
    pub ttl_seconds: f64,
    /// Seconds between two renewals.
    pub renewal_seconds: f64,
    /// Seconds before the end of a lease from which it is not acted upon any more.
    pub margin_seconds: f64,
}

impl Default for Leases {
    fn default() -> Self {
        Self { ttl_seconds: 6.0, renewal_seconds: 2.0, margin_seconds: 1.5 }
    }
}

impl Leases {
    /// Checks that the periods are consistent.
    ///
    /// # Errors
    /// Names the keys that contradict one another.
    pub fn check(&self) -> Result<(), &'static str> {
        let all = [self.ttl_seconds, self.renewal_seconds, self.margin_seconds];
        if all.iter().any(|seconds| !(0.01..=3600.0).contains(seconds)) {
            return Err("ttl_seconds, renewal_seconds and margin_seconds have to be from 0.01 to 3600");
        }
        if self.renewal_seconds * 2.0 > self.ttl_seconds - self.margin_seconds {
            return Err("ttl_seconds less margin_seconds has to leave time for two times renewal_seconds");
        }
        Ok(())
    }

    /// How long a lease lasts.
    pub fn ttl(&self) -> Duration {
        Duration::from_secs_f64(self.ttl_seconds)
    }

    /// How often leases are renewed.
    pub fn renewal(&self) -> Duration {
        Duration::from_secs_f64(self.renewal_seconds)
    }

    /// How long before the end of a lease its holder stops.
    pub fn margin(&self) -> Duration {
        Duration::from_secs_f64(self.margin_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_that_cannot_be_kept_are_refused() {
        let leases = |ttl_seconds, renewal_seconds, margin_seconds| Leases {
            ttl_seconds,
            renewal_seconds,
            margin_seconds,
        };
        assert_eq!(Leases::default().check(), Ok(()));
        for bad in
            [leases(6.0, 3.0, 1.5), leases(0.0, 2.0, 1.5), leases(6.0, f64::NAN, 1.5), leases(6.0, 2.0, 6.0)]
        {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
