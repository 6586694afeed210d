//! A session manager with its peers and clients.

use std::{future::Future, time::Duration};

use chassis::{Channel, Context, Fault, Settings, settings::InventoryDriver};
use futures_util::StreamExt;
use proto::{
    component::{Phase, StatusReport},
    session::{session_service_client::SessionServiceClient, *},
    template::{session_template_service_client::SessionTemplateServiceClient, *},
    tenant::tenant_service_client::TenantServiceClient,
};
use test_registry::TestRegistry;
use tokio::net::TcpListener;
use tonic::{Response, Status};

use crate::{fleet::PlayedFleet, power::PlayedPower};

/// Longest wait in these tests.
const LONGEST: Duration = Duration::from_secs(150);

/// A session manager that runs.
pub struct World {
    pub registry: TestRegistry,
    pub fleet: PlayedFleet,
    pub power: PlayedPower,
    pub sessions: SessionServiceClient<Channel>,
    pub templates: SessionTemplateServiceClient<Channel>,
    pub tenants: TenantServiceClient<Channel>,
    pub channel: Channel,
    context: Context,
    _directory: tempfile::TempDir,
}

impl World {
    /// Starts on an SQLite file, or on a new database of the environment's PostgreSQL server.
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// Starts a world as [`Self::start`] does, with other settings.
    pub async fn start_with(change: impl FnOnce(&mut Settings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (fleet, url) = PlayedFleet::start().await;
        let registry = TestRegistry::start_with(|settings| {
            settings.inventory.driver = InventoryDriver::Simulated;
            settings.simulator.url.clone_from(&url);
        })
        .await;
        registry.discovered(10).await;
        // The registry discovers nodes much later again.
        fleet.add("stranger");
        let mut settings = Settings { data_dir: directory.path().to_owned(), ..Settings::default() };
        settings.component_registry.url = registry.url();
        settings.simulator.url = url;
        let (power, url) = PlayedPower::start().await;
        settings.power_controller.url = url;
        settings.session_manager.database_url = test_databases::on_postgres().await.unwrap_or_default();
        change(&mut settings);
        let context = Context::new(settings);
        let Clients { sessions, templates, tenants, channel } = serve(&context).await;
        Self { registry, fleet, power, sessions, templates, tenants, channel, context, _directory: directory }
    }

    /// Stops the session manager, runs `meanwhile`, and starts it on the same database.
    pub async fn restart(self, meanwhile: impl AsyncFnOnce(&Self)) -> Self {
        self.context.tasks.shutdown().cancel();
        self.context.tasks.finished(LONGEST).await.unwrap();
        meanwhile(&self).await;
        let context = Context::new(Settings::clone(&self.context.settings));
        let Clients { sessions, templates, tenants, channel } = serve(&context).await;
        Self { sessions, templates, tenants, channel, context, ..self }
    }

    /// Reports as the status evaluator does that a component is acted on and shows an error.
    pub async fn report(&self, id: &str, phase: Phase, error: &str) {
        let error = Some(error.to_owned());
        let report = StatusReport { phase: phase.into(), error, ..StatusReport::default() };
        self.registry.report_statuses([id], report).await;
    }

    /// Stores a template with one boot set that takes `nodes`.
    pub async fn template(&self, name: &str, nodes: &[&str]) {
        self.put_template(template("", name, nodes)).await.unwrap();
    }

    pub async fn put_template(&self, template: SessionTemplate) -> Result<SessionTemplate, Fault> {
        let request = PutSessionTemplateRequest { session_template: Some(template), ..Default::default() };
        let answer = asked(self.templates.clone().put_session_template(request)).await?;
        Ok(answer.session_template.unwrap())
    }

    /// Creates a boot session of that name from the template of that name.
    pub async fn boot(&self, name: &str, template_name: &str) -> Result<Session, Fault> {
        self.create(wish(Operation::Boot, name, template_name)).await
    }

    pub async fn create(&self, wish: CreateSessionRequest) -> Result<Session, Fault> {
        Ok(asked(self.sessions.clone().create_session(wish)).await?.session.unwrap())
    }

    /// The session of that name once it is as `wanted`.
    pub async fn session_when(&self, name: &str, wanted: impl Fn(&Session) -> bool) -> Session {
        let watched = self.sessions.clone().watch_sessions(WatchSessionsRequest::default()).await.unwrap();
        let mut last = None;
        let mut batches = watched.into_inner();
        let watching = async {
            loop {
                let sessions = batches.next().await.unwrap().unwrap().sessions.into_iter();
                for session in sessions.filter(|session| session.name == name) {
                    if wanted(&session) {
                        return session;
                    }
                    last = Some(session);
                }
            }
        };
        let found = tokio::time::timeout(LONGEST, watching).await;
        found.unwrap_or_else(|_| panic!("session {name} never got there: {last:?}"))
    }

    pub async fn running(&self, name: &str) -> Session {
        self.session_when(name, |session| session.progress() == Progress::Running).await
    }

    pub async fn complete(&self, name: &str) -> Session {
        self.session_when(name, |session| session.progress() == Progress::Complete).await
    }

    pub async fn waiting(&self, name: &str) -> Session {
        self.session_when(name, |session| !session.waiting_for.is_empty()).await
    }

    pub async fn status(&self, name: &str) -> SessionStatus {
        self.status_of("", name).await.unwrap()
    }

    pub async fn status_of(&self, tenant: &str, name: &str) -> Result<SessionStatus, Fault> {
        let request = GetSessionStatusRequest { name: name.to_owned(), tenant: tenant.to_owned() };
        Ok(asked(self.sessions.clone().get_session_status(request)).await?.status.unwrap())
    }

    /// Tenant and name of the sessions that match, in the order of the list.
    pub async fn list(&self, filter: SessionFilter) -> Vec<String> {
        let request = ListSessionsRequest { filter: Some(filter) };
        let pages = self.sessions.clone().list_sessions(request).await.unwrap().into_inner();
        let sessions = pages.flat_map(|page| futures_util::stream::iter(page.unwrap().sessions));
        sessions.map(|session| format!("{}/{}", session.tenant, session.name)).collect().await
    }

    pub async fn update(&self, change: UpdateSessionRequest) -> Result<Session, Fault> {
        Ok(asked(self.sessions.clone().update_session(change)).await?.session.unwrap())
    }
}

/// Repeats `ask` until its result is as `wanted`.
pub async fn once<T>(mut ask: impl AsyncFnMut() -> T, wanted: impl Fn(&T) -> bool) -> T {
    let asking = async {
        loop {
            let answer = ask().await;
            if wanted(&answer) {
                return answer;
            }
        }
    };
    tokio::time::timeout(LONGEST, asking).await.expect("the answer is never as wanted")
}

pub fn template(tenant: &str, name: &str, nodes: &[&str]) -> SessionTemplate {
    let boot_set = BootSet {
        path: "s3://images/compute/manifest.json".to_owned(),
        r#type: "s3".to_owned(),
        node_list: Some(StringList { values: nodes.iter().map(|&node| node.to_owned()).collect() }),
        ..BootSet::default()
    };
    SessionTemplate {
        name: name.to_owned(),
        tenant: tenant.to_owned(),
        boot_sets: [("compute".to_owned(), boot_set)].into(),
        ..SessionTemplate::default()
    }
}

pub fn wish(operation: Operation, name: &str, template_name: &str) -> CreateSessionRequest {
    CreateSessionRequest {
        operation: operation.into(),
        name: name.to_owned(),
        template_name: template_name.to_owned(),
        ..CreateSessionRequest::default()
    }
}

/// The answer to a call, or its fault.
pub async fn asked<T>(call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, Fault> {
    Ok(call.await?.into_inner())
}

/// Clients of a session manager.
struct Clients {
    sessions: SessionServiceClient<Channel>,
    templates: SessionTemplateServiceClient<Channel>,
    tenants: TenantServiceClient<Channel>,
    channel: Channel,
}

/// Serves, and waits until the peers are connected.
async fn serve(context: &Context) -> Clients {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    session_manager::start(context.clone(), listener.into()).await.unwrap();
    let channel = chassis::plain_channel(&url).unwrap();
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    let request = tonic_health::pb::HealthCheckRequest { service: String::new() };
    let mut states = health.watch(request).await.unwrap().into_inner();
    let serving = tonic_health::pb::health_check_response::ServingStatus::Serving;
    let ready = async { while states.message().await.unwrap().unwrap().status() != serving {} };
    tokio::time::timeout(LONGEST, ready).await.expect("the session manager is never ready");
    Clients {
        sessions: SessionServiceClient::new(channel.clone()),
        templates: SessionTemplateServiceClient::new(channel.clone()),
        tenants: TenantServiceClient::new(channel.clone()),
        channel,
    }
}
