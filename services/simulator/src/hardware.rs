//! Durations of each node's hardware.

use std::time::Duration;

use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Durations of one node. They are properties of the node, not of the event: a slow node is slow every time, so a run
/// with the same seed can be repeated whatever the order of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePace {
    /// Time from a soft power-off until the node is off.
    pub soft_off: Duration,
    /// Time from a forced power-off until the node is off.
    pub force_off: Duration,
    /// Time from a power-on until the node is on.
    pub power_on: Duration,
    /// Time from on until the operating system is up.
    pub boot: Duration,
    /// Time from the start of a configuration until its end.
    pub configuration: Duration,
}

/// Time factor out of range.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not a time factor; it must be from 0 (no delay) to {most}", most = NodeTiming::SLOWEST)]
pub struct SpeedError(f64);

impl SpeedError {
    /// An error about that factor.
    pub(crate) fn of(speed: f64) -> Self {
        Self(speed)
    }
}

/// Draws the durations of nodes.
#[derive(Clone, Debug)]
pub struct NodeTiming {
    seed: u64,
    speed: f64,
}

impl NodeTiming {
    /// Slowest factor on durations that clocks can follow.
    pub(crate) const SLOWEST: f64 = 1000.0;

    /// Creates a generator; `speed` is a factor on every duration: 1 is as slow as real hardware, 0 has no delay.
    ///
    /// # Errors
    /// The factor is negative, not a number, or beyond the range of clocks.
    pub fn new(seed: u64, speed: f64) -> Result<Self, SpeedError> {
        if (0.0..=Self::SLOWEST).contains(&speed) { Ok(Self { seed, speed }) } else { Err(SpeedError(speed)) }
    }

    /// Returns the durations of the node at position `index` of the fleet. The distributions are those of large
    /// machines: a long tail in shutdowns and boots, where services hang and firmware retries, and none in the power
    /// rails.
    pub fn pace(&self, index: usize) -> NodePace {
        // An odd constant spreads neighbouring indexes over all seeds, or the fleet of seed 2 would be the fleet of
        // seed 1 moved by one node.
        let spread = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut rng = SmallRng::seed_from_u64(self.seed ^ spread);
        NodePace {
            soft_off: self.scaled(lognormal(&mut rng, 30.0, 240.0)),
            force_off: self.scaled(rng.random_range(1.0..3.0)),
            power_on: self.scaled(rng.random_range(5.0..20.0)),
            boot: self.scaled(lognormal(&mut rng, 240.0, 600.0)),
            configuration: self.scaled(rng.random_range(60.0..600.0)),
        }
    }

    fn scaled(&self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds * self.speed)
    }
}

/// Draws from the lognormal distribution with the given median and 99th percentile.
fn lognormal(rng: &mut SmallRng, p50: f64, p99: f64) -> f64 {
    const Z99: f64 = 2.326_347_874;
    p50 * ((p99 / p50).ln() / Z99 * normal(rng)).exp()
}

/// Draws from the standard normal distribution (Box and Muller).
fn normal(rng: &mut SmallRng) -> f64 {
    // The logarithm needs a number above zero, and zero can be drawn.
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paces(seed: u64, speed: f64) -> Vec<NodePace> {
        let timing = NodeTiming::new(seed, speed).expect("the test's own factor");
        (0..10_000).map(|index| timing.pace(index)).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_hardware() {
        assert_eq!(paces(7, 1.0), paces(7, 1.0));
        assert_ne!(paces(7, 1.0), paces(8, 1.0));
        assert_ne!(paces(1, 1.0)[1..], paces(2, 1.0)[..9_999]);
    }

    #[test]
    fn durations_follow_what_real_machines_show() {
        let paces = paces(1, 1.0);
        let quantiles = |of: fn(&NodePace) -> Duration| {
            let mut seconds: Vec<_> = paces.iter().map(|pace| of(pace).as_secs_f64()).collect();
            seconds.sort_by(f64::total_cmp);
            [seconds[0], seconds[5_000], seconds[9_900], seconds[9_999]]
        };
        let near = |seen: f64, wanted: f64| (seen / wanted - 1.0).abs() < 0.1;
        let [_, p50, p99, _] = quantiles(|pace| pace.soft_off);
        assert!(near(p50, 30.0) && near(p99, 240.0), "{p50} {p99}");
        let [_, p50, p99, _] = quantiles(|pace| pace.boot);
        assert!(near(p50, 240.0) && near(p99, 600.0), "{p50} {p99}");
        let [least, .., most] = quantiles(|pace| pace.power_on);
        assert!(least >= 5.0 && most <= 20.0, "{least} {most}");
        let [least, .., most] = quantiles(|pace| pace.configuration);
        assert!(least >= 60.0 && most <= 600.0, "{least} {most}");
    }

    #[test]
    fn the_factor_scales_every_duration() {
        let real = &paces(1, 1.0)[0];
        let tenth = &paces(1, 0.1)[0];
        let none = &paces(1, 0.0)[0];
        assert!((real.boot.as_secs_f64() / tenth.boot.as_secs_f64() - 10.0).abs() < 1e-3);
        assert_eq!(
            [none.soft_off, none.force_off, none.power_on, none.boot, none.configuration],
            [Duration::ZERO; 5]
        );
    }

    #[test]
    fn refuses_factors_that_no_clock_can_follow() {
        for speed in [-1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(NodeTiming::new(1, speed).is_err(), "{speed}");
        }
    }
}
