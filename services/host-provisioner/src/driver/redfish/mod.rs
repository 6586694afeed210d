//! The BMC of each host, called directly by Redfish (host reference 3.4).
//!
//! A BMC keeps no operations, so what is under way shows in its documents alone: the power, and the inserted media. A
//! system image is inserted only while the host is off; a host that is on with the image inserted has so booted it. A
//! change is requested once for a step: the request is remembered, and after a restart of this part the intent on record
//! stands for the first reset. Only the insertion of the image and the power-on at the end of provisioning may be
//! requested again after a restart, which has no effect where the image is inserted, or the host is on.
//!
//! Sessions at BMCs end when no host uses them any more, and with the process.

mod clients;
mod inventory;
mod media;
mod operations;
mod requests;
mod view;

use std::{sync::Arc, time::Duration};

use chassis::{
    process::clock,
    settings::{HostOperationSettings, seconds},
};
use domain::host::{
    address::BmcAddress,
    record::call::{DriverAnswer, DriverTrouble},
};
use futures_util::future::join_all;
use redfish::BmcTurn;
use upstream::{Failure, FailureKind};

use super::{BackendListing, HostTarget, WorkOrder, cannot_reach};

use self::{clients::BmcClients, operations::HostOperation, requests::ChangeRequests, view::view};

/// Time until a BMC is asked again about an effect that shows soon.
const SOON: Duration = Duration::from_secs(3);

/// Most time until a BMC that serves another caller is free.
const PATIENCE: Duration = Duration::from_secs(30);

/// Most time for the end of a session.
const LOG_OUT: Duration = Duration::from_secs(5);

/// Driver of hosts by Redfish. Clones share it.
#[derive(Clone)]
pub(crate) struct RedfishHostDriver {
    inner: Arc<RedfishState>,
}

struct RedfishState {
    clients: BmcClients,
    requests: ChangeRequests,
    /// Time for the effect of a reset.
    effect: Duration,
    /// Time for the effect of a soft power-off.
    soft_off: Duration,
}

impl RedfishHostDriver {
    /// Returns the driver of the settings. No BMC is called yet.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(settings: &HostOperationSettings) -> anyhow::Result<Self> {
        let effect = seconds("host_operations.effect_seconds", settings.effect_seconds)?;
        let soft_off = seconds("host_operations.soft_off_seconds", settings.soft_off_seconds)?;
        let clients = BmcClients::new(&settings.redfish)?;
        let requests = ChangeRequests::default();
        Ok(Self { inner: Arc::new(RedfishState { clients, requests, effect, soft_off }) })
    }

    /// Reads every host of `hosts` whose login is known. A BMC in trouble gives its hosts an unknown power; it stops no
    /// other, and no host counts as lost.
    pub(crate) async fn list(&self, hosts: &[Arc<HostTarget>]) -> BackendListing {
        let asked_at = clock::now();
        let known = hosts.iter().filter(|host| !host.driver_id.is_empty());
        let looks = known.map(|host| async {
            let document = self.document(host).await;
            (host.key.clone(), view(document.as_ref(), asked_at))
        });
        let hosts_seen = join_all(looks).await.into_iter().collect();
        self.inner.clients.keep_only(hosts, LOG_OUT).await;
        self.inner.requests.keep_only(hosts);
        BackendListing { asked_at, hosts: hosts_seen, ..BackendListing::default() }
    }

    async fn document(&self, host: &HostTarget) -> Option<serde_json::Value> {
        let address = BmcAddress::parse(&host.address).ok()?;
        let client = self.inner.clients.client(host, &address).ok()?;
        let mut turn = client.turn_within(PATIENCE).await?;
        let (_, document) = turn.system_document(&address.path).await.ok()?;
        Some(document)
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
            let text = format!("{} serves other callers", client.name()).into();
            return DriverAnswer::Trouble { kind: DriverTrouble::Busy, text };
        };
        let answer = HostOperation { state: &self.inner, host, address, order }.carry_out(&mut turn).await;
        if !matches!(answer, DriverAnswer::InProgress { .. } | DriverAnswer::Trouble { .. }) {
            self.inner.requests.forget(&host.key);
        }
        answer
    }

    /// Ends all sessions, as far as possible within `patience`. To be called last.
    pub(crate) async fn close(&self, patience: Duration) {
        self.inner.clients.close(patience).await;
    }
}

/// Returns the answer about an operation after a failed read, which has no effect.
fn after_read(failure: Failure) -> DriverAnswer {
    let text = failure.text.into();
    match failure.kind {
        FailureKind::Unreachable | FailureKind::Ambiguous => {
            DriverAnswer::Trouble { kind: DriverTrouble::Unreachable, text }
        }
        FailureKind::Refused | FailureKind::Denied => DriverAnswer::Failed { text },
    }
}

/// Returns the answer about an operation after a failed change: one that may have had its effect is in progress.
fn after_change(failure: Failure) -> DriverAnswer {
    match failure.kind {
        FailureKind::Ambiguous => DriverAnswer::InProgress { again_in: SOON, started: true },
        FailureKind::Unreachable | FailureKind::Refused | FailureKind::Denied => after_read(failure),
    }
}

/// A BMC, while no other caller calls it.
type Turn<'a> = BmcTurn<'a>;
