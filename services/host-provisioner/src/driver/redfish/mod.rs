//! The BMC of each host, called directly by Redfish (host reference 3.4).
//!
//! A BMC keeps no operations, so what is under way shows in its documents alone: the power, and the inserted media. A
//! system image is inserted only while the host is off; a host that is on with the image inserted has so booted it. A
//! change is requested once for a step: the request is remembered, and after a restart of this part the intent on record
//! stands for the first reset. Only the insertion of the image and the power-on at the end of provisioning may be
//! requested again after a restart, which has no effect where the image is inserted, or the host is on.
//!
//! Settings of the BIOS show both what is and what is to be. An update of firmware runs as a task of the BMC, which is
//! remembered; after a restart the versions, or a task that still runs, show what came of it.
//!
//! Sessions at BMCs end when no host uses them any more, and with the process.

mod bios;
mod clients;
mod components;
mod firmware;
mod inventory;
mod looks;
mod media;
mod operations;
mod updates;
mod view;

use std::{sync::Arc, time::Duration};

use chassis::{
    process::clock,
    settings::{HostOperationSettings, seconds},
};
use domain::{
    core::time::Timestamp,
    host::{address::BmcAddress, record::call::DriverAnswer},
};
use host_calls::bmc::{ChangeRequests, HostResets, PATIENCE, ResetPatience, busy};
use redfish::BmcTurn;

use super::{BackendListing, HostTarget, WorkOrder, cannot_reach};

use self::{clients::BmcClients, looks::BmcLooks, operations::HostOperation, updates::UpdateRuns};

/// Most time for the end of a session.
const LOG_OUT: Duration = Duration::from_secs(5);

/// Driver of hosts by Redfish. Clones share it.
#[derive(Clone)]
pub(crate) struct RedfishHostDriver {
    inner: Arc<RedfishState>,
}

struct RedfishState {
    clients: BmcClients,
    looks: BmcLooks,
    requests: ChangeRequests,
    updates: UpdateRuns,
    patience: ResetPatience,
}

impl RedfishHostDriver {
    /// Returns the driver of the settings. No BMC is called yet.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(settings: &HostOperationSettings) -> anyhow::Result<Self> {
        let patience = ResetPatience::new(settings)?;
        let listing = seconds("host_operations.listing_seconds", settings.listing_seconds)? / 2;
        let looks = BmcLooks::new(listing, settings.redfish.calls_in_flight as usize);
        let clients = BmcClients::new(&settings.redfish)?;
        let requests = ChangeRequests::default();
        let updates = UpdateRuns::default();
        Ok(Self { inner: Arc::new(RedfishState { clients, looks, requests, updates, patience }) })
    }

    /// Reads the hosts of `hosts` that are registered, as far as their BMCs answer in time. A BMC in trouble gives its
    /// hosts an unknown power; it stops no other, and no host counts as lost.
    pub(crate) async fn list(&self, hosts: &[Arc<HostTarget>]) -> BackendListing {
        let known: Vec<_> = hosts.iter().filter(|host| !host.driver_id.is_empty()).cloned().collect();
        let listing = self.inner.looks.list(self, &known, clock::now()).await;
        self.inner.clients.keep_only(hosts, LOG_OUT).await;
        self.inner.requests.keep_only(hosts);
        self.inner.updates.keep_only(hosts);
        listing
    }

    /// Reads the system of a host; `None`: its BMC does not answer as it should. Also returns the time at which the BMC
    /// was asked.
    async fn document(&self, host: &HostTarget) -> (Timestamp, Option<serde_json::Value>) {
        let address = BmcAddress::parse(&host.address).ok();
        let client = address.as_ref().and_then(|address| self.inner.clients.client(host, address).ok());
        let Some((address, client)) = address.zip(client) else { return (clock::now(), None) };
        let turn = client.turn_within(PATIENCE).await;
        let asked_at = clock::now();
        let Some(mut turn) = turn else { return (asked_at, None) };
        let read = turn.system_document(&address.path).await;
        (asked_at, read.ok().map(|(_, document)| document))
    }

    pub(crate) async fn carry_out(
        &self,
        host: &HostTarget,
        address: &BmcAddress,
        order: &WorkOrder,
    ) -> DriverAnswer {
        if !address.family.is_redfish() {
            return cannot_reach(
                order.kind(),
                "hosts are driven by Redfish, and the BMC address is of another protocol",
            );
        }
        let client = match self.inner.clients.client(host, address) {
            Ok(client) => client,
            Err(reason) => return cannot_reach(order.kind(), &reason),
        };
        let Some(mut turn) = client.turn_within(PATIENCE).await else {
            return busy(client.name());
        };
        let state = &*self.inner;
        let resets = HostResets {
            requests: &state.requests,
            host,
            path: &address.path,
            order: &order.call,
            patience: state.patience,
        };
        let answer = HostOperation { state, host, address, order, resets }.carry_out(&mut turn).await;
        state.requests.forget_ended(&host.key, &answer);
        if !answer.may_go_on() {
            state.updates.forget(&host.key);
        }
        answer
    }

    /// Ends all sessions, as far as possible within `patience`. To be called last.
    pub(crate) async fn close(&self, patience: Duration) {
        self.inner.looks.end().await;
        self.inner.clients.close(patience).await;
    }
}

/// A BMC, while no other caller calls it.
type Turn<'a> = BmcTurn<'a>;
