//! Drivers of the power of hosts, one for each driver of the host provisioner.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{Channel, Settings, kinds::host::parse_key, settings::HostDriverName};
use domain::host::{
    address::{AddressFlaw, BmcAddress},
    record::{
        call::DriverAnswer,
        progress::{HostProgress, HostWork},
    },
};
use host_calls::{CallDriver, CallOrder, HostIdentity, HostTarget, RackClient, bmc, cannot_reach};
use proto::host::Host;
use redfish::LoginReader;
use tokio::sync::Semaphore;
use tonic::Status;

use super::{change::PowerChange, ironic::IronicPower, redfish::BmcPower};
use crate::driver::{HostFleet, MachineNode, PowerUpstream};

/// Driver of the power of hosts.
pub(super) enum HostPowerDriver {
    /// The rack of the simulator.
    Simulated(RackClient),
    /// The BMC of each host.
    Redfish(BmcPower),
    /// Ironics.
    Ironic(IronicPower),
}

/// Data that a power call needs.
pub(super) struct PowerInputs {
    target: HostTarget,
    /// Machine of the host, where its BMC is called directly.
    machine: Option<MachineNode>,
}

impl HostPowerDriver {
    /// Returns the driver of the settings; `None`: hosts have none. BMCs are shared with the nodes that hosts are.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(super) fn new(
        settings: &Settings,
        registry: Channel,
        upstream: &PowerUpstream,
    ) -> anyhow::Result<Option<Self>> {
        let operations = &settings.host_operations;
        Ok(match operations.driver {
            HostDriverName::None => None,
            HostDriverName::Simulated => {
                let calls = usize::try_from(operations.calls_in_flight.max(1))?.min(Semaphore::MAX_PERMITS);
                let rack = RackClient::new(&settings.tls, &settings.simulator.url, calls);
                Some(Self::Simulated(rack.context("simulator.url")?))
            }
            HostDriverName::Redfish => {
                let fleet = match upstream.host_fleet() {
                    Some(shared) => Arc::clone(shared),
                    None => Arc::new(HostFleet::new(&settings.power.redfish)?),
                };
                let logins = LoginReader::new(registry);
                Some(Self::Redfish(BmcPower::new(operations, fleet, logins)?))
            }
            HostDriverName::Ironic => Some(Self::Ironic(IronicPower::new(operations)?)),
        })
    }

    /// Ends the sessions of the driver at BMCs, as far as possible within `patience`.
    pub(super) async fn close(&self, patience: Duration) {
        match self {
            Self::Simulated(_) | Self::Ironic(_) => {}
            Self::Redfish(bmcs) => bmcs.close(patience).await,
        }
    }
}

impl CallDriver for HostPowerDriver {
    type Inputs = PowerInputs;

    async fn inputs(
        &self,
        identity: &HostIdentity,
        host: &Host,
        _: &HostWork,
    ) -> Result<PowerInputs, Status> {
        let machine = match self {
            Self::Simulated(_) | Self::Ironic(_) => None,
            Self::Redfish(bmcs) => Some(bmcs.machine(&identity.key, host).await?),
        };
        Ok(PowerInputs { target: HostTarget::of(identity, host, None), machine })
    }

    async fn carry_out(&self, inputs: PowerInputs, order: CallOrder) -> DriverAnswer {
        let PowerInputs { target, machine } = inputs;
        let Some(change) = PowerChange::of(&order.work.call) else {
            return bmc::failed("the power controller switches hosts and does nothing else to them");
        };
        if let Err(reason) = BmcAddress::parse(&target.address).map_err(AddressFlaw::words) {
            return cannot_reach(order.kind(), reason);
        }
        match (self, machine) {
            (Self::Simulated(rack), _) => rack.carry_out(&target, &order).await,
            (Self::Ironic(ironic), _) => ironic.switch(change, &target, &order).await,
            (Self::Redfish(bmcs), Some(machine)) => bmcs.switch(change, &target, &machine, &order).await,
            (Self::Redfish(_), None) => bmc::failed("the machine of the host is not known"),
        }
    }

    fn answered(&self, _: &DriverAnswer) {}

    fn progressed(&self, _: &HostIdentity, _: &HostProgress) {}

    fn forget(&self, key: &str) {
        let host = parse_key(key);
        match self {
            Self::Simulated(_) => {}
            Self::Redfish(bmcs) => bmcs.forget(key, &host),
            Self::Ironic(ironic) => ironic.forget(&host),
        }
    }
}
