//! The rack of the simulator as a backend.

use std::{sync::Arc, time::Duration};

use chassis::{
    Channel,
    kinds::host::{key, parse_key},
    mesh::channel::LARGEST_MESSAGE,
    process::clock,
    settings::TlsSettings,
    within,
};
use domain::{
    core::time::Timestamp,
    host::{
        evidence::{DriverView, HardwareHealth},
        record::{
            annotations::RebootMode,
            call::{DoneFacts, DriverAnswer, DriverCall, DriverTrouble},
            operation::OperationKind,
            spec::image_url,
            status::HostInventory,
        },
    },
};
use futures_util::TryStreamExt;
use proto::simulation::{
    ListRackHostsRequest, OperateRackHostRequest, RackDone, RackHealth, RackHost, RackOperation,
    operate_rack_host_response::Outcome, rack_service_client::RackServiceClient,
};
use tokio::sync::Semaphore;
use tonic::Status;

use super::{BackendListing, BackendOutage, HostTarget, WorkOrder};

/// Most time of an answer. The rack answers at once, so one that needs longer is not there.
const DEADLINE: Duration = Duration::from_secs(10);

/// Longest time until the rack is asked again about an operation.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The rack at one address. Clones share the connection.
#[derive(Clone)]
pub(crate) struct SimulatedRackDriver {
    client: RackServiceClient<Channel>,
    url: Arc<str>,
    /// Permits for concurrent calls.
    slots: Arc<Semaphore>,
}

impl SimulatedRackDriver {
    /// Returns a driver of the rack at `url`, which is asked about so many operations at the same time.
    ///
    /// # Errors
    /// When `url` is not an address.
    pub(crate) fn new(tls: &TlsSettings, url: &str, calls_in_flight: usize) -> anyhow::Result<Self> {
        let client = RackServiceClient::new(chassis::channel(tls, url)?);
        let slots = Arc::new(Semaphore::new(calls_in_flight));
        Ok(Self { client: client.max_decoding_message_size(LARGEST_MESSAGE), url: url.into(), slots })
    }

    pub(crate) async fn list(&self) -> Result<BackendListing, BackendOutage> {
        let asked_at = clock::now();
        let mut client = self.client.clone();
        let listed = within(DEADLINE, client.list_rack_hosts(ListRackHostsRequest {})).await;
        let pages = match listed {
            Ok(pages) => tokio::time::timeout(DEADLINE, pages.into_inner().try_collect::<Vec<_>>()).await,
            Err(status) => return Err(self.outage(&status)),
        };
        let pages = match pages {
            Ok(pages) => pages.map_err(|status| self.outage(&status))?,
            Err(_) => return Err(BackendOutage(format!("the rack at {} stopped its listing", self.url))),
        };
        let hosts = pages.into_iter().flat_map(|page| page.hosts);
        let hosts = hosts.map(|host| (parse_key(&host.name), view(&host, asked_at))).collect();
        Ok(BackendListing { asked_at, hosts, ..BackendListing::default() })
    }

    pub(crate) async fn carry_out(&self, host: &HostTarget, order: &WorkOrder) -> DriverAnswer {
        let Some(request) = request(host, order) else {
            return DriverAnswer::Done(DoneFacts { started: true, ..DoneFacts::default() });
        };
        let _slot = self.slots.acquire().await.expect("nobody closes the slots");
        let mut client = self.client.clone();
        match within(DEADLINE, client.operate_rack_host(request)).await {
            Ok(answer) => read(order.kind(), answer.into_inner().outcome),
            Err(status) => unreachable_rack(&self.outage(&status)),
        }
    }

    fn outage(&self, status: &Status) -> BackendOutage {
        BackendOutage(format!("the rack at {} does not answer: {}", self.url, status.message()))
    }
}

/// Returns the request for an operation; `None`: there is nothing to do.
fn request(host: &HostTarget, order: &WorkOrder) -> Option<OperateRackHostRequest> {
    let mut request = OperateRackHostRequest {
        name: key(&host.key.namespace, &host.key.name),
        operation: operation(host, &order.work.call)?.into(),
        operation_id: format!("{}-{}-{}", host.uid, order.kind().word(), order.work.since.0),
        ..OperateRackHostRequest::default()
    };
    match &order.work.call {
        DriverCall::Register(call) => {
            request.address = host.address.to_string();
            request.boot_mac = host.boot_mac.as_deref().unwrap_or_default().to_owned();
            request.runs_a_system = call.state.runs_a_system();
            if let Some(login) = &host.login {
                request.username.clone_from(&login.username);
                request.password = login.password.reveal().to_owned();
            }
        }
        DriverCall::Provision(call) => {
            request.image = image_url(call.system.image.as_ref()).to_owned();
        }
        DriverCall::Detach { force } => request.force = *force,
        DriverCall::AttachDataImage { url } => request.image = url.to_string(),
        DriverCall::Inspect(_)
        | DriverCall::Prepare(_)
        | DriverCall::Service(_)
        | DriverCall::Adopt { .. }
        | DriverCall::Deprovision { .. }
        | DriverCall::PowerOn { .. }
        | DriverCall::PowerOff { .. }
        | DriverCall::Delete
        | DriverCall::DetachDataImage => {}
    }
    Some(request)
}

fn operation(host: &HostTarget, call: &DriverCall) -> Option<RackOperation> {
    Some(match call {
        DriverCall::Register(_) => RackOperation::Register,
        DriverCall::Inspect(_) => RackOperation::Inspect,
        DriverCall::Prepare(call) if call.parts.is_empty() => return None,
        DriverCall::Service(call) if call.parts.is_empty() => return None,
        DriverCall::Prepare(_) | DriverCall::Service(_) => RackOperation::Prepare,
        DriverCall::Provision(_) => RackOperation::Provision,
        DriverCall::Adopt { .. } => RackOperation::Adopt,
        DriverCall::Deprovision { .. } => RackOperation::Deprovision,
        DriverCall::PowerOn { .. } => RackOperation::PowerOn,
        DriverCall::PowerOff { .. } if host.disable_power_off => RackOperation::Reboot,
        DriverCall::PowerOff { mode: RebootMode::Soft, .. } => RackOperation::SoftPowerOff,
        DriverCall::PowerOff { mode: RebootMode::Hard, .. } => RackOperation::HardPowerOff,
        DriverCall::Detach { .. } => RackOperation::Detach,
        DriverCall::Delete => RackOperation::Delete,
        DriverCall::AttachDataImage { .. } => RackOperation::InsertMedia,
        DriverCall::DetachDataImage => RackOperation::EjectMedia,
    })
}

fn read(kind: OperationKind, outcome: Option<Outcome>) -> DriverAnswer {
    match outcome {
        Some(Outcome::Done(done)) => DriverAnswer::Done(facts(kind, done)),
        Some(Outcome::Running(running)) => {
            let again_in = Duration::from_millis(running.remaining_millis).min(LONGEST_PAUSE);
            DriverAnswer::InProgress { again_in, started: true }
        }
        Some(Outcome::Failure(text)) => DriverAnswer::Failed { text: text.into() },
        Some(Outcome::Unknown(_)) => DriverAnswer::NotRegistered,
        Some(Outcome::Busy(busy)) => DriverAnswer::Trouble {
            kind: DriverTrouble::Busy,
            text: format!("the rack is busy with {}", busy.operation).into(),
        },
        None => unreachable_rack(&BackendOutage("the rack gave an answer of another version".to_owned())),
    }
}

fn facts(kind: OperationKind, done: RackDone) -> DoneFacts {
    let id = (kind == OperationKind::Register).then(|| done.id.into());
    let inventory = (kind == OperationKind::Inspect).then(|| {
        Arc::new(HostInventory { architecture: done.architecture.into(), details: done.inventory.into() })
    });
    DoneFacts { id, inventory, started: true }
}

fn unreachable_rack(outage: &BackendOutage) -> DriverAnswer {
    DriverAnswer::Trouble { kind: DriverTrouble::Unreachable, text: outage.0.as_str().into() }
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
