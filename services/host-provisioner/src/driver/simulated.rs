//! The rack of the simulator as a backend.

use chassis::{kinds::host::parse_key, process::clock, settings::TlsSettings, within};
use domain::{
    core::time::Timestamp,
    host::{
        evidence::{DriverView, HardwareHealth},
        record::call::DriverAnswer,
    },
};
use futures_util::TryStreamExt;
use host_calls::RackClient;
use proto::simulation::{ListRackHostsRequest, RackHealth, RackHost};
use tonic::Status;

use super::{BackendListing, BackendOutage, HostTarget, WorkOrder};

/// The rack at one address. Clones share the connection.
#[derive(Clone)]
pub(crate) struct SimulatedRackDriver {
    rack: RackClient,
}

impl SimulatedRackDriver {
    /// Returns a driver of the rack at `url`, which is asked about so many operations at the same time.
    ///
    /// # Errors
    /// When `url` is not an address.
    pub(crate) fn new(tls: &TlsSettings, url: &str, calls_in_flight: usize) -> anyhow::Result<Self> {
        Ok(Self { rack: RackClient::new(tls, url, calls_in_flight)? })
    }

    pub(crate) async fn list(&self) -> Result<BackendListing, BackendOutage> {
        let asked_at = clock::now();
        let mut client = self.rack.connection();
        let listed = within(RackClient::DEADLINE, client.list_rack_hosts(ListRackHostsRequest {})).await;
        let pages = match listed {
            Ok(pages) => {
                tokio::time::timeout(RackClient::DEADLINE, pages.into_inner().try_collect::<Vec<_>>()).await
            }
            Err(status) => return Err(self.outage(&status)),
        };
        let pages = match pages {
            Ok(pages) => pages.map_err(|status| self.outage(&status))?,
            Err(_) => return Err(BackendOutage("the rack stopped its listing".to_owned())),
        };
        let hosts = pages.into_iter().flat_map(|page| page.hosts);
        let hosts = hosts.map(|host| (parse_key(&host.name), view(&host, asked_at))).collect();
        Ok(BackendListing { asked_at, hosts, ..BackendListing::default() })
    }

    pub(crate) async fn carry_out(&self, host: &HostTarget, order: &WorkOrder) -> DriverAnswer {
        self.rack.carry_out(host, &order.call).await
    }

    fn outage(&self, status: &Status) -> BackendOutage {
        BackendOutage(self.rack.outage(status))
    }
}

fn view(host: &RackHost, asked_at: Timestamp) -> DriverView {
    let health = match host.health() {
        RackHealth::Unspecified => None,
        RackHealth::Ok => Some(HardwareHealth::Healthy),
        RackHealth::Warning => Some(HardwareHealth::Warning),
        RackHealth::Critical => Some(HardwareHealth::Critical),
    };
    DriverView {
        asked_at,
        powered_on: host.powered_on,
        has_power_failure: host.has_power_failure,
        health,
        needs_adoption: host.needs_adoption,
        is_busy: host.is_busy,
        boots_without_slot: false,
        wants_ramdisk: false,
    }
}
