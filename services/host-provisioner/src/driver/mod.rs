//! Drivers of hosts, behind one interface over the types of the rules.
//!
//! Contract of every driver:
//! - [`HostDriver::carry_out`] is a poll. Asked again about the same operation (same kind, same `since`), it looks at
//!   the backend first and begins nothing twice, whether or not its last answer arrived anywhere.
//! - An operation under way is [`DriverAnswer::InProgress`]; a failure is reported once, and the operation is begun again
//!   only by another operation.
//! - A backend that could not be asked, so that nothing was begun, is [`DriverAnswer::Trouble`]. A call with an unknown
//!   effect is in progress: the next poll shows its result.
//! - [`HostDriver::read_firmware`] changes nothing, and names the parts that the hardware does not offer.
//! - [`HostDriver::list`] is one listing of everything that a backend knows about hosts.
//!
//! The future of either may be dropped anywhere.

mod ironic;
mod redfish;
mod simulated;
mod target;

use std::{collections::HashMap, sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{Settings, settings::HostDriverName};
use domain::{
    core::time::Timestamp,
    host::{
        address::{AddressFlaw, BmcAddress},
        evidence::DriverView,
        firmware::reading::FirmwareReading,
        record::{HostKey, call::DriverAnswer},
    },
};
use tokio::sync::Semaphore;

pub(crate) use host_calls::{BmcLogin, HostTarget, cannot_reach};
pub(crate) use ironic::IronicHostDriver;
pub(crate) use redfish::RedfishHostDriver;
pub(crate) use simulated::SimulatedRackDriver;
pub(crate) use target::{DeployDocuments, FirmwareOrder, WorkOrder};

/// Driver of the hosts of one backend. Clones share it.
#[derive(Clone)]
pub(crate) enum HostDriver {
    /// The rack of the simulator.
    Simulated(SimulatedRackDriver),
    /// The BMC of each host.
    Redfish(RedfishHostDriver),
    /// Ironics.
    Ironic(IronicHostDriver),
}

/// Listing of a backend.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct BackendListing {
    /// Time at which the listing was asked for.
    pub(crate) asked_at: Timestamp,
    /// Hosts that the backend knows.
    pub(crate) hosts: HashMap<HostKey, DriverView>,
    /// Hosts of a part of the backend that gave no listing, with the number of times in a row.
    pub(crate) outages: HashMap<HostKey, u32>,
}

/// Reason for which a backend gave no listing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BackendOutage(pub(crate) String);

impl HostDriver {
    /// Returns the driver of the settings; `None`: hosts have none.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(settings: &Settings) -> anyhow::Result<Option<Self>> {
        let operations = &settings.host_operations;
        let calls = operations.calls_in_flight.max(1);
        let calls = usize::try_from(calls)?.min(Semaphore::MAX_PERMITS);
        match operations.driver {
            HostDriverName::None => Ok(None),
            HostDriverName::Simulated => {
                let driver = SimulatedRackDriver::new(&settings.tls, &settings.simulator.url, calls)
                    .context("simulator.url")?;
                Ok(Some(Self::Simulated(driver)))
            }
            HostDriverName::Redfish => Ok(Some(Self::Redfish(RedfishHostDriver::new(operations)?))),
            HostDriverName::Ironic => Ok(Some(Self::Ironic(IronicHostDriver::new(operations)?))),
        }
    }

    /// Returns whether a listing needs the logins of the hosts.
    pub(crate) fn lists_by_login(&self) -> bool {
        match self {
            Self::Simulated(_) | Self::Ironic(_) => false,
            Self::Redfish(_) => true,
        }
    }

    /// Lists the hosts that the backend knows, among them `hosts`, which are all that the driver is to care for.
    pub(crate) async fn list(&self, hosts: &[Arc<HostTarget>]) -> Result<BackendListing, BackendOutage> {
        let mut listing = match self {
            Self::Simulated(driver) => driver.list().await?,
            Self::Redfish(driver) => driver.list(hosts).await,
            Self::Ironic(driver) => driver.list(hosts).await?,
        };
        for host in hosts {
            let boots_from_image =
                BmcAddress::parse(&host.address).is_ok_and(|address| address.family.boots_from_image());
            if let Some(view) = listing.hosts.get_mut(&host.key) {
                view.boots_without_slot = boots_from_image;
            }
        }
        Ok(listing)
    }

    /// Reads the firmware of a host; `with_rules`: also the rules for its settings, which are large.
    ///
    /// # Errors
    /// The backend could not be asked, for people.
    pub(crate) async fn read_firmware(
        &self,
        host: &HostTarget,
        with_rules: bool,
    ) -> Result<FirmwareReading, BackendOutage> {
        let address = BmcAddress::parse(&host.address).map_err(|flaw| BackendOutage(flaw.words().into()))?;
        match self {
            // The hosts of the rack have no firmware.
            Self::Simulated(_) => Ok(FirmwareReading::default()),
            Self::Redfish(driver) => driver.read_firmware(host, &address, with_rules).await,
            Self::Ironic(driver) => driver.read_firmware(host).await,
        }
    }

    /// Ends the sessions of the driver at its backend, as far as possible within `patience`. To be called last.
    pub(crate) async fn close(&self, patience: Duration) {
        match self {
            Self::Simulated(_) | Self::Ironic(_) => {}
            Self::Redfish(driver) => driver.close(patience).await,
        }
    }

    /// Begins the operation of `order` on `host`, or returns how far it is.
    pub(crate) async fn carry_out(&self, host: &HostTarget, order: &WorkOrder) -> DriverAnswer {
        let address = match BmcAddress::parse(&host.address).map_err(AddressFlaw::words) {
            Ok(address) => address,
            Err(reason) => return cannot_reach(order.kind(), reason),
        };
        match self {
            Self::Simulated(driver) => driver.carry_out(host, order).await,
            Self::Redfish(driver) => driver.carry_out(host, &address, order).await,
            Self::Ironic(driver) => driver.carry_out(host, &address, order).await,
        }
    }
}
