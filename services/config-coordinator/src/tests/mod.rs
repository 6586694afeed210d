//! The whole service between the real registry, played upstreams and a played power controller.
//!
//! - `preparing`: power-ons with BSS, CFS and IMS; `boot_scripts`: with boot scripts of this service
//! - `configuring`: configuration states with CFS, or without any
//! - `peers`: BSS, CFS and IMS; `power`: the power controller

use std::{future::Future, time::Duration};

use chassis::{Context, Settings};
use domain::boot::component::{Component, Phase, artifacts::BootArtifacts};
use futures_util::StreamExt;
use proto::{
    boot::{
        GetBootScriptRequest, boot_script_service_client::BootScriptServiceClient,
        get_boot_script_request::Node,
    },
    configuration::{
        ConfigurationReading, ConfigurationState, ListConfigurationStatesRequest,
        configuration_service_client::ConfigurationServiceClient,
    },
    option::Options,
};
use test_registry::{SessionWish, TestRegistry};
use tokio::net::TcpListener;

pub(crate) mod peers;
mod power;

mod boot_scripts;
mod configuring;
mod preparing;

use peers::PlayedPeers;
use power::PlayedPower;

/// Longest wait for any event, far longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(150);

/// Service with its surroundings.
struct CoordinatorSite {
    registry: TestRegistry,
    power: PlayedPower,
    peers: PlayedPeers,
    settings: Settings,
    context: Context,
    directory: tempfile::TempDir,
}

impl CoordinatorSite {
    /// Starts the service with settings changed by `adjust`.
    async fn start(options: Options, adjust: impl FnOnce(&mut Settings)) -> Self {
        let peers = PlayedPeers::play().await;
        let mut settings = peers.settings();
        let directory = tempfile::tempdir().unwrap();
        settings.data_dir = directory.path().to_owned();
        settings.configuration.poll_seconds = 0.1;
        let registry = TestRegistry::start().await;
        registry.set_options(options).await;
        let (power, own) = (listener().await, listener().await);
        settings.component_registry.url = registry.url();
        settings.power_controller.url = format!("http://{}", power.local_addr().unwrap());
        settings.config_coordinator.url = format!("http://{}", own.local_addr().unwrap());
        adjust(&mut settings);
        let context = Context::new(settings.clone());
        let power = PlayedPower::serve(&context, registry.channel(), power).await;
        crate::start(context.clone(), own.into()).await.unwrap();
        Self { registry, power, peers, settings, context, directory }
    }

    async fn stop(self) {
        self.context.tasks.shutdown().cancel();
        self.context.tasks.finished(PATIENCE).await.unwrap();
        self.directory.close().unwrap();
        self.registry.stop().await;
    }

    /// Has a session assign nodes that are then in `phase`.
    async fn assign(&self, ids: impl IntoIterator<Item: AsRef<str>>, wish: &SessionWish, phase: Phase) {
        let ids: Vec<String> = ids.into_iter().map(|id| id.as_ref().to_owned()).collect();
        self.registry.assign(&ids, wish).await;
        self.registry.report_phase(&ids, phase).await;
    }

    /// Has a session assign nodes that then wait to be switched on.
    async fn pending(&self, ids: impl IntoIterator<Item: AsRef<str>>, configuration: &str) {
        self.assign(ids, &wish(configuration), Phase::PoweringOn).await;
    }

    /// Has a session assign nodes that run the wanted artifacts already and are to be configured.
    async fn booted(&self, ids: impl IntoIterator<Item: AsRef<str>>, configuration: &str) {
        let ids: Vec<String> = ids.into_iter().map(|id| id.as_ref().to_owned()).collect();
        self.registry.assign(&ids, &wish(configuration)).await;
        self.registry.report_boots(&ids).await;
        self.registry.report_phase(&ids, Phase::Configuring).await;
    }

    /// Returns the preparation of a component in the registry, as one line.
    async fn preparation(&self, id: &str) -> String {
        self.peers.plain(&preparation(&self.registry.get(id).await))
    }

    /// Returns the token that a component has been prepared with.
    async fn token(&self, id: &str) -> Option<String> {
        let desired = self.registry.get(id).await.wish.desired_state.clone();
        desired.and_then(|desired| desired.bss_token).map(|token| token.to_string())
    }

    /// Returns the service's configuration state of a component.
    async fn state(&self, id: &str) -> Option<ConfigurationState> {
        let channel = chassis::plain_channel(&self.settings.config_coordinator.url).unwrap();
        let mut client = ConfigurationServiceClient::new(channel);
        let request = ListConfigurationStatesRequest { ids: vec![id.to_owned()] };
        let mut pages = client.list_configuration_states(request).await.unwrap().into_inner();
        pages.next().await.and_then(|page| page.unwrap().configuration_states.into_iter().next())
    }

    /// Returns the state as one line. A state of the component's newest generation is one of now.
    async fn shown(&self, id: &str) -> String {
        let Some(state) = self.state(id).await else { return "none".to_owned() };
        let reading = match state.reading() {
            ConfigurationReading::Unspecified => "unknown",
            ConfigurationReading::Known => "known",
            ConfigurationReading::Missing => "missing",
        };
        let ConfigurationState { desired_configuration, status, generation, error, .. } = state;
        let error = self.peers.plain(&error);
        let is_newest = generation == self.registry.get(id).await.generation;
        let of = if is_newest { "now".to_owned() } else { generation.to_string() };
        format!("{reading} {desired_configuration:?} {status:?} of {of} {error:?}")
    }

    /// Waits until the state of a component is as `expected`.
    async fn shows(&self, id: &str, expected: &str) {
        eventually(expected, async || {
            let shown = self.shown(id).await;
            if shown == expected { Ok(()) } else { Err(shown) }
        })
        .await;
    }

    async fn script(&self, node: Node) -> Result<String, tonic::Status> {
        let channel = chassis::plain_channel(&self.settings.config_coordinator.url).unwrap();
        let request = GetBootScriptRequest { node: Some(node) };
        Ok(BootScriptServiceClient::new(channel).get_boot_script(request).await?.into_inner().script)
    }
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// Waits until `look` succeeds; its error has the present state.
async fn eventually<T, F: Future<Output = Result<T, String>>>(what: &str, look: impl Fn() -> F) -> T {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) if tokio::time::Instant::now() > deadline => panic!("waited for {what}, saw {seen}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

fn artifacts(kernel: &str, parameters: &str) -> BootArtifacts {
    BootArtifacts {
        kernel: Some(kernel.into()),
        kernel_parameters: Some(parameters.into()),
        initrd: Some("s3://boot-images/i1/initrd".into()),
        timestamp: None,
    }
}

fn wish(configuration: &str) -> SessionWish {
    SessionWish {
        session: "s1".to_owned(),
        boot_artifacts: artifacts("s3://boot-images/i1/kernel", "quiet"),
        configuration: configuration.to_owned(),
    }
}

fn ids(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|index| format!("x{index:03}"))
}

/// Returns the preparation of a component in the registry, as one line.
fn preparation(component: &Component) -> String {
    let attempts = component.power.event_stats.as_ref().and_then(|stats| stats.power_on_attempts);
    let token = component.wish.desired_state.as_ref().and_then(|desired| desired.bss_token.as_deref());
    let Some(preparation) = &component.preparation.outcome else {
        return format!("none, {attempts:?} spent");
    };
    format!("{} {:?} token {token:?}, {attempts:?} spent", preparation.attempt, preparation.error())
}
