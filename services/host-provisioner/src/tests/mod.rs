//! The whole service between the real registry and a rack.
//!
//! - `life`, `ironic_life`: hosts whose calls the status evaluator decides, beside the power controller; in all others the
//!   test decides them
//! - `begun_once`: operations across restarts; `looks`: listings; `trouble`, `redfish`, `bmc_firmware`: BMCs that take their time
//! - `conformance`: the contract of drivers, without the service; `bmc`: a played BMC

mod begun_once;
mod bmc;
mod bmc_firmware;
mod conformance;
mod firmware;
mod ironic_life;
mod life;
mod looks;
mod losses;
mod redfish;
mod trouble;

use std::{fmt::Debug, future::Future, time::Duration};

use chassis::{
    Context, Server, Settings,
    kinds::host::{call, evidence},
    mesh::time,
    process::clock,
};
use domain::{
    core::time::Timestamp,
    host::{
        evidence::DriverSight,
        record::{
            call::{
                DriverAnswer, DriverCall, InspectCall, PreparationParts, ProvisionCall, RegisterCall,
                Registration,
            },
            progress::{CallCarrier, HostWork},
            spec::{BootMode, HostImage, InspectionMode},
            state::HostState,
            status::{OperationalStatus, WantedSystem},
        },
    },
};
use futures_util::TryStreamExt;
use host_calls::{CallOrder, StillDue};
use proto::{
    host::{self as wire, ListHostSightsRequest, host_sight_service_client::HostSightServiceClient},
    simulation::rack_service_server::RackServiceServer,
};
use simulator::RackRpc;
use tempfile::TempDir;
use test_registry::TestRegistry;
use tokio::net::TcpListener;

use crate::driver::{DeployDocuments, FirmwareOrder, WorkOrder};

/// Mesh of a registry, a rack and, while it runs, the host provisioner.
struct ProvisionerMesh {
    registry: TestRegistry,
    rack: RackRpc,
    around: Context,
    settings: Settings,
    running: Option<(Context, String)>,
    directory: TempDir,
}

impl ProvisionerMesh {
    /// Creates a mesh without a running provisioner, whose rack has that speed.
    async fn new(speed: f64) -> Self {
        Self::with_login(speed, "password").await
    }

    async fn with_login(speed: f64, password: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = Settings { data_dir: directory.path().to_owned(), ..Settings::default() };
        settings.simulator.speed = speed;
        settings.host_operations.listing_seconds = 0.5;
        settings.simulator.rack.faults = "dead-bmc=nobody".to_owned();
        let around = Context::new(settings.clone());
        let registry = TestRegistry::start().await;
        registry.create_secret("login", &[("username", "admin\n"), ("password", password)]).await;
        settings.component_registry.url = registry.url();
        let rack = simulator::rack(&settings.simulator).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        settings.simulator.url = format!("http://{}", listener.local_addr().unwrap());
        let mut server = Server::default();
        server.add(RackServiceServer::new(rack.clone()));
        chassis::serve(&around, "rack", listener, server).await.unwrap().now();
        Self { registry, rack, around, settings, running: None, directory }
    }

    async fn started(speed: f64) -> Self {
        let mut mesh = Self::new(speed).await;
        mesh.start().await;
        mesh
    }

    async fn start(&mut self) {
        let context = Context::new(self.settings.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        crate::start(context.clone(), listener.into()).await.unwrap();
        self.running = Some((context, url));
    }

    async fn stop(&mut self) {
        if let Some((context, _)) = self.running.take() {
            finish(&context).await;
        }
    }

    async fn end(mut self) {
        self.stop().await;
        finish(&self.around).await;
        self.registry.stop().await;
        self.directory.close().unwrap();
    }

    async fn sights(&self) -> Vec<wire::HostSight> {
        let url = &self.running.as_ref().unwrap().1;
        let mut client = HostSightServiceClient::new(chassis::plain_channel(url).unwrap());
        let listed = client.list_host_sights(ListHostSightsRequest {}).await.unwrap();
        let pages: Vec<_> = listed.into_inner().try_collect().await.unwrap();
        pages.into_iter().flat_map(|page| page.host_sights).collect()
    }

    async fn sight(&self, name: &str) -> Option<wire::HostSight> {
        self.sights().await.into_iter().find(|sight| sight.name == name)
    }

    /// Makes a call due, as the status evaluator does.
    async fn ask(&self, name: &str, number: u64, call: &DriverCall) {
        self.ask_since(name, number, call, clock::now()).await;
    }

    async fn ask_since(&self, name: &str, number: u64, call: &DriverCall, since: Timestamp) {
        self.ask_about(host(name), number, call, since).await;
    }

    async fn ask_about(&self, host: wire::Host, number: u64, call: &DriverCall, since: Timestamp) {
        let name = host.meta.as_ref().unwrap().name.clone();
        if self.registry.host(&name).await.is_none() {
            self.registry.create_host(host).await;
        }
        let progress = wire::HostProgress {
            calls: number,
            work: Some(wire::HostWork {
                number,
                call: Some(call::to_wire(call)),
                since: Some(time::to_wire(since)),
                ..wire::HostWork::default()
            }),
            ..wire::HostProgress::default()
        };
        let status = self.registry.host(&name).await.unwrap().status;
        self.registry.decide_host(&name, status, Some(progress)).await;
    }

    /// Waits for the answer to a call.
    async fn answer(&self, name: &str, number: u64) -> DriverAnswer {
        let what = format!("an answer to call {number} of {name}");
        let answer = || async {
            let report = evidence::report(self.sight(name).await?.report.as_ref()?).unwrap();
            (report.number == number).then_some(report.answer)
        };
        until(&what, answer).await
    }

    /// Asks for an operation, and asks again until it is over, as the status evaluator does.
    async fn carry_out(&self, name: &str, number: u64, call: &DriverCall) -> DriverAnswer {
        let (since, mut number) = (clock::now(), number);
        loop {
            self.ask_since(name, number, call, since).await;
            match self.answer(name, number).await {
                DriverAnswer::InProgress { again_in, .. } => {
                    tokio::time::sleep(again_in.min(Duration::from_millis(100))).await;
                    number += 1;
                }
                answer => return answer,
            }
        }
    }

    async fn until_seen(&self, name: &str, is_wanted: impl Fn(&DriverSight) -> bool) -> DriverSight {
        let seen = || async {
            let sight = evidence::sight(self.sight(name).await?.sight.as_ref());
            is_wanted(&sight).then_some(sight)
        };
        until(&format!("a look at {name}"), seen).await
    }
}

async fn finish(context: &Context) {
    context.tasks.shutdown().cancel();
    context.tasks.finished(Duration::from_secs(10)).await.unwrap();
}

/// Waits until `look` returns something.
async fn until<T: Debug, F: Future<Output = Option<T>>>(what: &str, look: impl Fn() -> F) -> T {
    let waiting = async {
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // An Ironic and its BMC need half of it for a deployment where other tests take the processors.
    let patience = Duration::from_secs(120);
    tokio::time::timeout(patience, waiting).await.unwrap_or_else(|_| panic!("{what}: not in time"))
}

fn host(name: &str) -> wire::Host {
    let bmc = wire::BmcDetails {
        address: format!("redfish-virtualmedia://{name}.bmc/redfish/v1/Systems/1"),
        credentials_name: "login".to_owned(),
        ..wire::BmcDetails::default()
    };
    wire::Host {
        meta: Some(wire::ObjectMeta {
            namespace: "m".to_owned(),
            name: name.to_owned(),
            ..wire::ObjectMeta::default()
        }),
        spec: Some(wire::HostSpec {
            bmc: Some(bmc),
            boot_mac_address: "00:5c:52:31:00:01".to_owned(),
            ..wire::HostSpec::default()
        }),
        ..wire::Host::default()
    }
}

fn register() -> DriverCall {
    DriverCall::Register(Box::new(RegisterCall {
        registration: Registration::default(),
        state: HostState::Registering,
        operational: OperationalStatus::Ok,
        architecture: "x86_64".into(),
        credentials_changed: false,
        restart: false,
    }))
}

fn inspect() -> DriverCall {
    DriverCall::Inspect(InspectCall {
        boot_mode: BootMode::Uefi,
        mode: InspectionMode::Agent,
        architecture: "x86_64".into(),
        restart: false,
        refresh: false,
        force_reboot: false,
    })
}

fn provision() -> DriverCall {
    let image = HostImage { url: "http://img/os".into(), ..HostImage::default() };
    DriverCall::Provision(Box::new(ProvisionCall {
        system: WantedSystem { image: Some(image), procedure: None },
        boot_mode: BootMode::Uefi,
        hints: None,
        force_reboot: false,
    }))
}

/// Returns the first order of an operation.
fn order(call: DriverCall) -> WorkOrder {
    let work = HostWork {
        number: 1,
        call,
        since: clock::now(),
        carrier: CallCarrier::HostProvisioner,
        parts: PreparationParts::default(),
        changed_by: 0,
        is_accepted: false,
    };
    let call = CallOrder { work, asked_before: None, still_due: StillDue::when(|| true) };
    WorkOrder { call, documents: DeployDocuments::default(), firmware: FirmwareOrder::default() }
}

/// Describes an answer in a word or two.
fn show(answer: &DriverAnswer) -> String {
    match answer {
        DriverAnswer::Done(facts) => {
            let with = |word: &str, has: bool| if has { format!(", {word}") } else { String::new() };
            format!("done{}{}", with("id", facts.id.is_some()), with("inventory", facts.inventory.is_some()))
        }
        DriverAnswer::InProgress { .. } => "in progress".to_owned(),
        DriverAnswer::Failed { text } => format!("failed: {text}"),
        DriverAnswer::Trouble { kind, .. } => format!("trouble: {kind:?}"),
        DriverAnswer::NotRegistered => "not registered".to_owned(),
        DriverAnswer::NeedsSlot | DriverAnswer::NeedsRamdisk => "needs something".to_owned(),
    }
}
