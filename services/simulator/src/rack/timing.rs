//! Durations of operations on a rack.

use std::time::Duration;

use proto::simulation::RackOperation;

use crate::hardware::{NodeTiming, SpeedError};

/// Durations of operations: those of real racks, times a factor.
#[derive(Debug, Clone, Copy)]
pub struct RackTiming {
    speed: f64,
}

impl RackTiming {
    /// Creates the durations; `speed` is a factor: 1 is as slow as a real rack, 0 has no delay.
    ///
    /// # Errors
    /// The factor is negative, not a number, or beyond the range of clocks.
    pub fn new(speed: f64) -> Result<Self, SpeedError> {
        if (0.0..=NodeTiming::SLOWEST).contains(&speed) {
            Ok(Self { speed })
        } else {
            Err(SpeedError::of(speed))
        }
    }

    /// Returns the duration of an operation on the host with that seed. Hosts differ by up to a half.
    pub fn duration(self, operation: RackOperation, seed: u64) -> Duration {
        let slower = 1.0 + f64::from((seed % 1000) as u32) / 2000.0;
        Duration::from_secs_f64(seconds(operation) * slower * self.speed)
    }
}

/// Seconds of an operation on a fast host.
fn seconds(operation: RackOperation) -> f64 {
    match operation {
        RackOperation::Unspecified | RackOperation::Adopt | RackOperation::Delete | RackOperation::Detach => {
            1.0
        }
        RackOperation::Register => 3.0,
        RackOperation::Inspect => 240.0,
        RackOperation::Prepare => 5.0,
        RackOperation::Provision => 300.0,
        RackOperation::Deprovision => 120.0,
        RackOperation::PowerOn => 8.0,
        RackOperation::SoftPowerOff => 30.0,
        RackOperation::HardPowerOff => 3.0,
        RackOperation::Reboot => 40.0,
        RackOperation::InsertMedia | RackOperation::EjectMedia => 2.0,
    }
}
