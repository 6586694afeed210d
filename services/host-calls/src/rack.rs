//! Operations on hosts in the rack of the simulator, each one call.

use std::{sync::Arc, time::Duration};

use chassis::{Channel, kinds::host::key, mesh::channel::LARGEST_MESSAGE, settings::TlsSettings, within};
use domain::host::record::{
    annotations::RebootMode,
    call::{DoneFacts, DriverAnswer, DriverCall, DriverTrouble},
    operation::OperationKind,
    spec::image_url,
    status::HostInventory,
};
use proto::simulation::{
    OperateRackHostRequest, RackDone, RackOperation, operate_rack_host_response::Outcome,
    rack_service_client::RackServiceClient,
};
use tokio::sync::Semaphore;
use tonic::Status;

use crate::{CallOrder, HostTarget};

/// Longest time until the rack is asked again about an operation.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Text about an operation that was no longer due when its turn came.
const WITHDRAWN: &str = "the operation was withdrawn before the rack was asked";

/// The rack at one address. Clones share the connection.
#[derive(Clone)]
pub struct RackClient {
    client: RackServiceClient<Channel>,
    url: Arc<str>,
    /// Permits for concurrent operations.
    slots: Arc<Semaphore>,
}

impl RackClient {
    /// Most time of an answer. The rack answers at once, so one that needs longer is not there.
    pub const DEADLINE: Duration = Duration::from_secs(10);

    /// Returns a client of the rack at `url`, which is asked about so many operations at the same time.
    ///
    /// # Errors
    /// When `url` is not an address.
    pub fn new(tls: &TlsSettings, url: &str, calls_in_flight: usize) -> anyhow::Result<Self> {
        let client = RackServiceClient::new(chassis::channel(tls, url)?);
        let slots = Arc::new(Semaphore::new(calls_in_flight));
        Ok(Self { client: client.max_decoding_message_size(LARGEST_MESSAGE), url: url.into(), slots })
    }

    /// Returns the connection, for calls besides operations.
    pub fn connection(&self) -> RackServiceClient<Channel> {
        self.client.clone()
    }

    /// Begins the operation of `order` on `host`, or returns how far it is.
    pub async fn carry_out(&self, host: &HostTarget, order: &CallOrder) -> DriverAnswer {
        let Some(request) = request(host, order) else {
            return DriverAnswer::Done(DoneFacts { started: true, ..DoneFacts::default() });
        };
        let _slot = self.slots.acquire().await.expect("nobody closes the slots");
        if !order.still_due.is_due() {
            return trouble(DriverTrouble::Unreachable, WITHDRAWN);
        }
        let mut client = self.client.clone();
        match within(Self::DEADLINE, client.operate_rack_host(request)).await {
            Ok(answer) => read(order.kind(), answer.into_inner().outcome),
            Err(status) => trouble(DriverTrouble::Unreachable, &self.outage(&status)),
        }
    }

    /// Returns the words for a rack that does not answer.
    pub fn outage(&self, status: &Status) -> String {
        format!("the rack at {} does not answer: {}", self.url, status.message())
    }
}

/// Returns the request for an operation; `None`: there is nothing to do.
fn request(host: &HostTarget, order: &CallOrder) -> Option<OperateRackHostRequest> {
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
        Some(Outcome::Busy(busy)) => {
            trouble(DriverTrouble::Busy, &format!("the rack is busy with {}", busy.operation))
        }
        None => trouble(DriverTrouble::Unreachable, "the rack gave an answer of another version"),
    }
}

fn facts(kind: OperationKind, done: RackDone) -> DoneFacts {
    let id = (kind == OperationKind::Register).then(|| done.id.into());
    let inventory = (kind == OperationKind::Inspect).then(|| {
        Arc::new(HostInventory { architecture: done.architecture.into(), details: done.inventory.into() })
    });
    DoneFacts { id, inventory, started: true }
}

fn trouble(kind: DriverTrouble, text: &str) -> DriverAnswer {
    DriverAnswer::Trouble { kind, text: text.into() }
}
