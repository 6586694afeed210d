//! Power of hosts at their BMCs.

use std::{sync::Arc, time::Duration};

use chassis::settings::HostOperationSettings;
use domain::host::record::{HostKey, call::DriverAnswer};
use host_calls::{
    CallOrder, HostTarget,
    bmc::{ChangeRequests, HostResets, PATIENCE, ResetPatience, busy},
    cannot_reach,
};
use proto::host::Host;
use redfish::LoginReader;
use tonic::Status;

use super::change::PowerChange;
use crate::driver::{HostFleet, MachineNode};

/// The BMCs of hosts, with the requests that were made of them.
pub(super) struct BmcPower {
    fleet: Arc<HostFleet>,
    logins: LoginReader,
    requests: ChangeRequests,
    patience: ResetPatience,
}

impl BmcPower {
    /// Drives the BMCs of `fleet`. None is called yet.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(super) fn new(
        settings: &HostOperationSettings,
        fleet: Arc<HostFleet>,
        logins: LoginReader,
    ) -> anyhow::Result<Self> {
        let patience = ResetPatience::new(settings)?;
        Ok(Self { fleet, logins, requests: ChangeRequests::default(), patience })
    }

    /// Returns the machine of a host.
    ///
    /// # Errors
    /// The registry does not tell the login.
    pub(super) async fn machine(&self, key: &str, host: &Host) -> Result<MachineNode, Status> {
        self.fleet.machine(&self.logins, key, host).await
    }

    /// Switches a host, or returns how far it is.
    pub(super) async fn switch(
        &self,
        change: PowerChange,
        host: &HostTarget,
        machine: &MachineNode,
        order: &CallOrder,
    ) -> DriverAnswer {
        let client = match &machine.bmc {
            Ok(client) => client,
            Err(reason) => return cannot_reach(order.kind(), reason),
        };
        let Some(mut turn) = client.turn_within(PATIENCE).await else { return busy(client.name()) };
        let Self { requests, patience, .. } = self;
        let resets = HostResets { requests, host, path: &machine.system, order, patience: *patience };
        let answered = match change {
            PowerChange::On => resets.power_on(&mut turn).await,
            PowerChange::Off(mode) => resets.power_off(&mut turn, mode).await,
        };
        let answer = answered.unwrap_or_else(|answer| answer);
        requests.forget_ended(&host.key, &answer);
        answer
    }

    /// Forgets a host that is gone.
    pub(super) fn forget(&self, key: &str, host: &HostKey) {
        self.logins.forget(key);
        self.requests.forget(host);
        self.fleet.forget(host);
    }

    /// Ends the sessions, as far as possible within `patience`.
    pub(super) async fn close(&self, patience: Duration) {
        self.fleet.close(patience).await;
    }
}
