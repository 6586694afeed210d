//! Power of hosts at their Ironics.
//!
//! No listing tells here which Ironic knows a host. Where there are several, each is asked once.

use std::{collections::HashMap, time::Duration};

use chassis::settings::{HostOperationSettings, seconds};
use domain::host::record::{HostKey, call::DriverAnswer};
use futures_util::future::join_all;
use host_calls::{CallOrder, HostTarget};
use ironic::{
    IronicBackend, NodePowerCall, PowerRequests,
    answers::{Step, unreachable},
    node_of,
};
use parking_lot::Mutex;

use super::change::PowerChange;

/// All Ironics, with the requests that were made of them.
pub(super) struct IronicPower {
    backends: Vec<IronicBackend>,
    requests: PowerRequests,
    /// Place of the Ironic that knows a host.
    homes: Mutex<HashMap<HostKey, usize>>,
    /// Time for the effect of a soft power-off.
    soft_off: Duration,
}

impl IronicPower {
    /// Drives the Ironics of the settings. None is called yet.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(super) fn new(settings: &HostOperationSettings) -> anyhow::Result<Self> {
        Ok(Self {
            backends: ironic::backends(settings)?,
            requests: PowerRequests::default(),
            homes: Mutex::default(),
            soft_off: seconds("host_operations.soft_off_seconds", settings.soft_off_seconds)?,
        })
    }

    /// Switches a host, or returns how far it is.
    pub(super) async fn switch(
        &self,
        change: PowerChange,
        host: &HostTarget,
        order: &CallOrder,
    ) -> DriverAnswer {
        let answer = self.step(change, host, order).await.unwrap_or_else(|answer| answer);
        self.requests.forget_ended(&host.key, &answer);
        if answer == DriverAnswer::NotRegistered {
            self.homes.lock().remove(&host.key);
        }
        answer
    }

    async fn step(&self, change: PowerChange, host: &HostTarget, order: &CallOrder) -> Step<DriverAnswer> {
        let backend = self.home(host).await?;
        let _slot = backend.slots.acquire().await.expect("nobody closes the slots");
        let Self { requests, soft_off, .. } = self;
        let call = NodePowerCall { requests, backend, host, order, soft_off: *soft_off };
        match change {
            PowerChange::On => call.power_on().await,
            PowerChange::Off(mode) => call.power_off(mode).await,
        }
    }

    /// Returns the Ironic of a host. One that does not answer may be the one that knows the host.
    async fn home(&self, host: &HostTarget) -> Step<&IronicBackend> {
        if let [only] = &*self.backends {
            return Ok(only);
        }
        let known = self.homes.lock().get(&host.key).copied();
        if let Some(home) = known.and_then(|place| self.backends.get(place)) {
            return Ok(home);
        }
        let looks = join_all(self.backends.iter().map(|backend| node_of(backend, host))).await;
        let found = looks.iter().position(|look| matches!(look, Ok(Some(_))));
        if let Some(place) = found {
            self.homes.lock().insert(host.key.clone(), place);
            return Ok(&self.backends[place]);
        }
        match looks.into_iter().find_map(Result::err) {
            Some(failure) => Err(unreachable(&failure.text)),
            None => Err(DriverAnswer::NotRegistered),
        }
    }

    /// Forgets a host that is gone.
    pub(super) fn forget(&self, host: &HostKey) {
        self.homes.lock().remove(host);
        self.requests.forget(host);
    }
}
