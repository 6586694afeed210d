//! Lives of hosts with the real registry and a driver that does everything at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chassis::{
    Channel, Context, Server, Settings,
    kinds::host::{HostPowerRecord, HostRecord, SightRecord, evidence, progress},
    lease::Role,
    observe::mirror::Mirror,
    process::clock,
    store::{
        database,
        ledger::{Column, Ledger, Migrations, Responses, StoredRow, Table},
    },
};
use domain::{
    core::time::Timestamp,
    host::{
        evidence::{DriverSight, DriverView},
        record::{
            call::{DoneFacts, DriverAnswer, DriverCall, DriverReport},
            progress::{CallCarrier, HostWork},
            status::HostInventory,
        },
    },
};
use futures_util::TryStreamExt as _;
use proto::{
    Encoded,
    host::{
        BmcDetails, DeleteHostSecretRequest, Host, HostImage, HostSight, HostSpec, ListHostDocumentsRequest,
        ListHostSightsRequest, ListHostSightsResponse, ObjectMeta, ReplaceHostRequest, SecretName,
        WatchHostSightsRequest, WatchHostSightsResponse,
        host_document_service_client::HostDocumentServiceClient,
        host_secret_service_client::HostSecretServiceClient,
        host_service_client::HostServiceClient,
        host_sight_service_server::{HostSightService, HostSightServiceServer},
    },
    power::{
        HostPower, ListHostPowersRequest, ListHostPowersResponse, WatchHostPowersRequest,
        WatchHostPowersResponse,
        host_power_service_server::{HostPowerService, HostPowerServiceServer},
    },
};
use sea_orm_migration::{MigrationTrait, MigratorTrait};
use tempfile::TempDir;
use test_registry::TestRegistry;
use tokio::net::TcpListener;
use tonic::{Request, Response, Status, async_trait};

/// Deadline for expected events.
const PATIENCE: Duration = Duration::from_secs(60);

/// Table of news of drivers.
struct SightTable;

impl Table for SightTable {
    type Kind = SightRecord;
    type Pool = ();
    const NAME: &'static str = "host_sights";
    const COLUMNS: &'static [Column<SightRecord>] = &[Column::record()];

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<SightRecord> {
        row.record(pool)
    }
}

/// Table of the power calls of hosts.
struct PowerTable;

impl Table for PowerTable {
    type Kind = HostPowerRecord;
    type Pool = ();
    const NAME: &'static str = "host_powers";
    const COLUMNS: &'static [Column<HostPowerRecord>] = &[Column::record()];

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<HostPowerRecord> {
        row.record(pool)
    }
}

struct SightMigrator;

impl MigratorTrait for SightMigrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        Migrations::default().kind::<SightTable>().kind::<PowerTable>().into_vec()
    }
}

struct SightRpc(Ledger<SightTable>);

#[async_trait]
impl HostSightService for SightRpc {
    type ListHostSightsStream = Responses<ListHostSightsResponse>;

    async fn list_host_sights(
        &self,
        _request: Request<ListHostSightsRequest>,
    ) -> Result<Response<Self::ListHostSightsStream>, Status> {
        self.0.list(Default::default(), 100).await
    }

    type WatchHostSightsStream = Responses<Encoded<WatchHostSightsResponse>>;

    async fn watch_host_sights(
        &self,
        request: Request<WatchHostSightsRequest>,
    ) -> Result<Response<Self::WatchHostSightsStream>, Status> {
        self.0.serve_watch(request).await
    }
}

struct PowerRpc(Ledger<PowerTable>);

#[async_trait]
impl HostPowerService for PowerRpc {
    type ListHostPowersStream = Responses<ListHostPowersResponse>;

    async fn list_host_powers(
        &self,
        _request: Request<ListHostPowersRequest>,
    ) -> Result<Response<Self::ListHostPowersStream>, Status> {
        self.0.list(Default::default(), 100).await
    }

    type WatchHostPowersStream = Responses<Encoded<WatchHostPowersResponse>>;

    async fn watch_host_powers(
        &self,
        request: Request<WatchHostPowersRequest>,
    ) -> Result<Response<Self::WatchHostPowersStream>, Status> {
        self.0.serve_watch(request).await
    }
}

/// A registry, the parts that carry calls out, played by one, and the evaluator of hosts.
struct Rack {
    contexts: Vec<Context>,
    registry: TestRegistry,
    /// Whether the driver answers.
    works: Arc<AtomicBool>,
    /// Whether power calls are answered.
    switches: Arc<AtomicBool>,
    directory: TempDir,
}

impl Rack {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = Settings { data_dir: directory.path().to_owned(), ..Settings::default() };
        let registry = TestRegistry::start().await;
        let (sight_listener, sight_url) = listener().await;
        settings.component_registry.url = registry.url();
        settings.power_controller.url.clone_from(&sight_url);
        settings.host_provisioner.url = sight_url;
        let driver = Context::new(settings.clone());
        let url = driver.database_url("host-provisioner", "").unwrap();
        let database = database::connect::<SightMigrator>(&url).await.unwrap();
        let sights = Ledger::<SightTable>::open(&driver, database.clone()).await.unwrap();
        let powers = Ledger::<PowerTable>::open(&driver, database).await.unwrap();
        let mut server = Server::default();
        server.add(HostSightServiceServer::new(SightRpc(sights.clone())));
        server.add(HostPowerServiceServer::new(PowerRpc(powers.clone())));
        chassis::serve(&driver, "host-provisioner", sight_listener, server).await.unwrap().now();
        let works = Arc::new(AtomicBool::new(true));
        let hosts = Mirror::<HostRecord>::start(&driver, registry.channel(), |_| {});
        let switches = Arc::new(AtomicBool::new(true));
        let journals = HostJournals { sights, powers };
        tokio::spawn(drive(hosts, journals, Arc::clone(&works), Arc::clone(&switches)));
        let evaluator = Context::new(settings);
        super::start(&evaluator, Role::forever()).unwrap();
        Self { contexts: vec![evaluator, driver], registry, works, switches, directory }
    }

    async fn stop(self) {
        for context in &self.contexts {
            context.tasks.shutdown().cancel();
        }
        for context in &self.contexts {
            context.tasks.finished(Duration::from_secs(20)).await.unwrap();
        }
        self.registry.stop().await;
        drop(self.directory);
    }

    fn hosts(&self) -> HostServiceClient<Channel> {
        HostServiceClient::new(self.registry.channel())
    }

    async fn host(&self) -> Option<Host> {
        self.registry.host("h1").await
    }

    async fn state(&self) -> String {
        let status = self.host().await.and_then(|host| host.status?.provisioning);
        status.map_or_else(String::new, |provisioning| provisioning.state)
    }

    async fn wait(&self) -> String {
        let progress = self.host().await.and_then(|host| host.progress?.wait);
        progress.map_or_else(String::new, |wait| wait.reason)
    }

    async fn make_secret(&self) {
        self.registry.create_secret("login", &[("username", "root"), ("password", "s3cret")]).await;
    }

    async fn make_host(&self) {
        let bmc = BmcDetails {
            address: "redfish://bmc/redfish/v1/Systems/1".to_owned(),
            credentials_name: "login".to_owned(),
            ..BmcDetails::default()
        };
        let spec = HostSpec { bmc: Some(bmc), online: true, ..HostSpec::default() };
        let host = Host { meta: Some(meta("h1")), spec: Some(spec), ..Host::default() };
        self.registry.create_host(host).await;
    }

    /// Changes the host, again if a decision came in between.
    async fn change(&self, edit: impl Fn(&mut HostSpec)) {
        let mut host = self.host().await.unwrap();
        edit(host.spec.as_mut().unwrap());
        let request = ReplaceHostRequest { host: Some(host), ..ReplaceHostRequest::default() };
        self.hosts().replace_host(request).await.unwrap();
    }

    async fn documents(&self) -> usize {
        let mut client = HostDocumentServiceClient::new(self.registry.channel());
        let listed = client.list_host_documents(ListHostDocumentsRequest::default()).await.unwrap();
        let parts: Vec<_> = listed.into_inner().try_collect().await.unwrap();
        parts.into_iter().map(|part| part.host_documents.len()).sum()
    }

    async fn delete(&self) {
        self.registry.delete_host("h1").await;
    }

    /// Deletes the secret; returns whether it is gone.
    async fn delete_secret(&self) -> bool {
        let name = Some(SecretName { namespace: "m".to_owned(), name: "login".to_owned() });
        let request = DeleteHostSecretRequest { name, ..DeleteHostSecretRequest::default() };
        let mut secrets = HostSecretServiceClient::new(self.registry.channel());
        secrets.delete_host_secret(request).await.unwrap().into_inner().gone
    }
}

async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

fn meta(name: &str) -> ObjectMeta {
    ObjectMeta { namespace: "m".to_owned(), name: name.to_owned(), ..ObjectMeta::default() }
}

/// Records of the parts that carry calls out.
struct HostJournals {
    sights: Ledger<SightTable>,
    powers: Ledger<PowerTable>,
}

/// Answers every call of every host at once.
async fn drive(
    hosts: Mirror<HostRecord>,
    journals: HostJournals,
    works: Arc<AtomicBool>,
    switches: Arc<AtomicBool>,
) {
    loop {
        tokio::time::sleep(Duration::from_millis(5)).await;
        if !works.load(Ordering::Relaxed) {
            continue;
        }
        for record in hosts.all() {
            let message = record.message();
            let Some(progress) = message.progress.as_ref() else { continue };
            let Some(work) = progress::from_wire(progress).unwrap().work else { continue };
            let is_left = work.carrier == CallCarrier::PowerController && !switches.load(Ordering::Relaxed);
            if !is_left && journals.last(&message, work.carrier) < work.number {
                journals.answer(&message, &work).await;
            }
        }
    }
}

impl HostJournals {
    /// Number of the last call that a part has answered.
    fn last(&self, host: &Host, carrier: CallCarrier) -> u64 {
        let key = key_of(host);
        let report = match carrier {
            CallCarrier::HostProvisioner => self.sights.view().get(&key).and_then(|one| one.message().report),
            CallCarrier::PowerController => self.powers.view().get(&key).and_then(|one| one.message().report),
        };
        report.map_or(0, |report| report.number)
    }

    async fn answer(&self, host: &Host, work: &HostWork) {
        let known = self.sights.view().get(&key_of(host));
        let mut news = answered(host, known.as_deref(), work, clock::now()).message();
        if work.carrier == CallCarrier::PowerController {
            let (namespace, name, uid) = (news.namespace.clone(), news.name.clone(), news.uid.clone());
            let report = std::mem::replace(&mut news.report, known.and_then(|known| known.message().report));
            let power = HostPower { namespace, name, uid, report, ..HostPower::default() };
            let write = self.powers.write(move |draft| {
                draft.put(HostPowerRecord::of(power));
                Ok(())
            });
            write.await.unwrap();
        }
        let write = self.sights.write(move |draft| {
            draft.put(SightRecord::of(news));
            Ok(())
        });
        write.await.unwrap();
    }
}

fn key_of(host: &Host) -> String {
    let meta = host.meta.clone().unwrap_or_default();
    chassis::kinds::host::key(&meta.namespace, &meta.name)
}

fn answered(host: &Host, known: Option<&SightRecord>, work: &HostWork, now: Timestamp) -> SightRecord {
    let before = known.map(|known| evidence::sight(known.message().sight.as_ref()));
    let was_on = before.and_then(|sight| sight.view().and_then(|view| view.powered_on));
    let mut facts = DoneFacts::default();
    let powered_on = match &work.call {
        DriverCall::Register(_) => {
            facts.id = Some("id-1".into());
            was_on
        }
        DriverCall::Inspect(_) => {
            let details = r#"{"cpu":{"arch":"x86_64"}}"#.into();
            facts.inventory = Some(Arc::new(HostInventory { architecture: "x86_64".into(), details }));
            was_on
        }
        DriverCall::PowerOn { .. } => Some(true),
        DriverCall::PowerOff { .. } => Some(false),
        _ => was_on,
    };
    let report = DriverReport { number: work.number, at: now, answer: DriverAnswer::Done(facts) };
    let asked_at = now.plus(Duration::from_millis(1));
    let powered_on = Some(powered_on.unwrap_or_default());
    let sight = DriverSight::Known(DriverView { asked_at, powered_on, ..DriverView::default() });
    let meta = host.meta.clone().unwrap_or_default();
    SightRecord::of(HostSight {
        namespace: meta.namespace,
        name: meta.name,
        sight: Some(evidence::sight_to_wire(&sight)),
        report: Some(evidence::report_to_wire(&report)),
        uid: meta.uid,
        intent: None,
        revision: 0,
    })
}

/// Waits until a condition holds.
async fn eventually(expected: &str, mut value: impl AsyncFnMut() -> String) {
    let mut last = String::new();
    let wait = async {
        while last != expected {
            tokio::time::sleep(Duration::from_millis(10)).await;
            last = value().await;
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, wait).await.is_ok();
    assert!(in_time, "expected '{expected}' but the last was '{last}'");
}

#[tokio::test(flavor = "multi_thread")]
async fn host_lives_from_its_address_to_its_deletion() {
    let rack = Rack::start().await;
    rack.make_host().await;
    eventually("CredentialsMissing", async || rack.wait().await).await;
    rack.make_secret().await;
    eventually("available", async || rack.state().await).await;
    eventually("true", async || rack.host().await.unwrap().status.unwrap().powered_on.to_string()).await;
    let known = rack.host().await.unwrap();
    assert_eq!(known.spec.unwrap().architecture, "x86_64");
    assert_eq!(known.status.unwrap().provisioning.unwrap().id, "id-1");
    assert!(!rack.delete_secret().await, "the host has claimed it");

    rack.change(|spec| {
        let (url, checksum) = ("http://images/a.qcow2".to_owned(), "abc".to_owned());
        spec.image = Some(HostImage { url, checksum, ..HostImage::default() });
    })
    .await;
    eventually("provisioned", async || rack.state().await).await;
    eventually("Settled", async || rack.wait().await).await;

    rack.delete().await;
    eventually("true", async || rack.host().await.is_none().to_string()).await;
    assert_eq!(rack.documents().await, 0);
    let secret = SecretName { namespace: "m".to_owned(), name: "login".to_owned() };
    let request = proto::host::GetHostSecretRequest { name: Some(secret) };
    let mut secrets = HostSecretServiceClient::new(rack.registry.channel());
    assert!(secrets.get_host_secret(request).await.is_err(), "its last claim is gone");
    rack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_wait_for_a_driver_that_is_away() {
    let rack = Rack::start().await;
    rack.works.store(false, Ordering::Relaxed);
    rack.make_secret().await;
    rack.make_host().await;
    eventually("AwaitingAnswer", async || rack.wait().await).await;
    assert_eq!(rack.state().await, "registering");
    rack.works.store(true, Ordering::Relaxed);
    eventually("available", async || rack.state().await).await;
    rack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_wait_for_a_power_controller_that_is_away() {
    let rack = Rack::start().await;
    rack.switches.store(false, Ordering::Relaxed);
    rack.make_secret().await;
    rack.make_host().await;
    eventually("available", async || rack.state().await).await;
    eventually("AwaitingPowerController", async || rack.wait().await).await;
    rack.switches.store(true, Ordering::Relaxed);
    eventually("true", async || rack.host().await.unwrap().status.unwrap().powered_on.to_string()).await;
    rack.stop().await;
}
