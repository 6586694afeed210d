//! Settings of the records of edge devices and of the decisions about them.

use std::time::Duration;

use domain::device::evaluation::DISCONNECT_TIMEOUT;
use serde::{Deserialize, Serialize};

/// Records of edge devices and decisions about them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSettings {
    /// Seconds without a sign of its agent after which a device counts as disconnected. The same for all parts.
    pub disconnect_seconds: u32,
}

impl Default for DeviceSettings {
    fn default() -> Self {
        // Five minutes, which fit.
        Self { disconnect_seconds: u32::try_from(DISCONNECT_TIMEOUT.as_secs()).unwrap_or(u32::MAX) }
    }
}

impl DeviceSettings {
    /// Time without a sign of its agent after which a device counts as disconnected.
    pub fn disconnect_timeout(&self) -> Duration {
        Duration::from_secs(self.disconnect_seconds.into())
    }
}
