//! Settings of bare-metal hosts and of the part that carries out operations on them.

use std::collections::BTreeMap;

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
    /// The Ironics that drive hosts.
    pub ironic: IronicSettings,
}

/// The Ironics that drive hosts. Each host belongs to one of them: to the one that knows it, else to one that its name
/// chooses among all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IronicSettings {
    /// Ironics by a name of the site's choice, which must not change while an Ironic knows hosts.
    pub backends: BTreeMap<String, IronicBackendSettings>,
    /// Hardware type of every node, such as `fake-hardware` for a rehearsal; empty: the one for the protocol of the BMC.
    pub hardware: String,
    /// Address of the kernel of the agent, for hosts that boot over the network; empty: Ironic's own setting.
    pub deploy_kernel: String,
    /// Address of the ramdisk of the agent, for hosts that boot over the network; empty: Ironic's own setting.
    pub deploy_ramdisk: String,
    /// Address of the agent's image, for hosts that boot from images; empty: Ironic's own setting.
    pub deploy_iso: String,
    /// Call settings of every Ironic; its `url` and `credentials` are not used, and its `batch_size` is the number of
    /// nodes on a page of a listing.
    pub calls: Peer,
}

/// Ironic at one address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IronicBackendSettings {
    /// Address without the version, such as `https://ironic.example:6385`.
    pub url: String,
    /// Location of the credentials, as of any other system; empty: the Ironic asks for none.
    #[serde(default)]
    pub credentials: String,
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
    /// Ironic, or several of them.
    Ironic,
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
            ironic: IronicSettings {
                backends: BTreeMap::new(),
                hardware: String::new(),
                deploy_kernel: String::new(),
                deploy_ramdisk: String::new(),
                deploy_iso: String::new(),
                // Ironic gives no larger pages.
                calls: Peer { calls_in_flight: 64, ..Peer::of(1000) },
            },
        }
    }
}
