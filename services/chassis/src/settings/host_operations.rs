//! Settings of bare-metal hosts and of the part that carries out operations on them.

use serde::{Deserialize, Serialize};

use super::upstreams::{Peer, word};

/// Operations on bare-metal hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostOperationSettings {
    /// Driver of hosts. A host whose BMC address the driver cannot use is refused at its registration.
    #[serde(deserialize_with = "word")]
    pub driver: HostDriverName,
    /// Seconds between listings of a backend at rest. An ended call is followed by a listing at once.
    pub listing_seconds: f64,
    /// Most calls of the rack of the simulator at the same time. `redfish.calls_in_flight` is that of all BMCs.
    pub calls_in_flight: u32,
    /// Seconds in which a BMC that is driven directly has to show the effect of a reset.
    pub effect_seconds: f64,
    /// Seconds in which a soft power-off has to show; it ends with the last service of the host.
    pub soft_off_seconds: f64,
    /// Call settings of every BMC that is driven directly; its `url`, `credentials` and `plain_http` are not used.
    pub redfish: Peer,
}

/// Drivers of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostDriverName {
    /// No driver: hosts are not worked on.
    None,
    /// The rack of the simulator.
    Simulated,
    /// The BMC of each host, by Redfish.
    Redfish,
}

impl Default for HostOperationSettings {
    fn default() -> Self {
        Self {
            driver: HostDriverName::Simulated,
            listing_seconds: 10.0,
            calls_in_flight: 64,
            effect_seconds: 120.0,
            soft_off_seconds: 180.0,
            redfish: Peer { calls_in_flight: 64, largest_answer: 4 << 20, ..Peer::of(1) },
        }
    }
}
