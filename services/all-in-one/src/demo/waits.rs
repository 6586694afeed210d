//! Deadlines of the mesh for simulated hardware.

use domain::boot::bos::options::Options;
use serde_json::{Value, json};

/// Largest value of the options.
const MOST: f64 = 1_048_576.0;

/// Least deadline: fast hardware does not make the mesh faster, and a whole fleet needs some seconds, and one more
/// for every few hundred nodes, which even a debug build keeps up with.
const LEAST: usize = 3;
const NODES_PER_SECOND: usize = 250;

/// Returns the default deadlines for `nodes` nodes whose hardware takes `speed` times as long as real hardware, as a
/// patch of the options.
pub(crate) fn waits(speed: f64, nodes: usize) -> Value {
    let Options { max_power_on_wait_time, max_power_off_wait_time, max_boot_wait_time, .. } =
        Options::default();
    let least = (LEAST + nodes / NODES_PER_SECOND) as f64;
    let scaled = |seconds: u32| (f64::from(seconds) * speed).ceil().clamp(least, MOST) as u32;
    json!({
        "max_power_on_wait_time": scaled(max_power_on_wait_time),
        "max_power_off_wait_time": scaled(max_power_off_wait_time),
        "max_boot_wait_time": scaled(max_boot_wait_time),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_the_hardware_but_leave_time_for_the_fleet() {
        for (speed, nodes, on, off, boot) in [
            (1.0, 96, 120, 300, 1200),
            (0.02, 96, 3, 6, 24),
            (0.0, 96, 3, 3, 3),
            (0.0, 10_000, 43, 43, 43),
            (1000.0, 96, 120_000, 300_000, 1_048_576),
        ] {
            let expected = json!({
                "max_power_on_wait_time": on,
                "max_power_off_wait_time": off,
                "max_boot_wait_time": boot,
            });
            assert_eq!(waits(speed, nodes), expected, "{speed} {nodes}");
        }
    }
}
