//! The whole service between a registry and peers of this process.

use std::{future::Future, time::Duration};

use chassis::{Context, Settings};
use domain::boot::{
    bos::options::Options,
    component::{ActualState, Component, DesiredState, Phase, Status, artifacts::BootArtifacts},
};
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
};
use tokio::net::TcpListener;

pub(crate) mod peers;
mod registry;

mod boot_scripts;
mod configuring;
mod preparing;

use peers::PlayedPeers;
use registry::PlayedRegistry;

/// Longest wait for any event, far longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Service with its surroundings.
struct CoordinatorSite {
    registry: PlayedRegistry,
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
        let (registry, own) = (listener().await, listener().await);
        settings.component_registry.url = format!("http://{}", registry.local_addr().unwrap());
        settings.power_controller.url.clone_from(&settings.component_registry.url);
        settings.config_coordinator.url = format!("http://{}", own.local_addr().unwrap());
        adjust(&mut settings);
        let context = Context::new(settings.clone());
        let registry = PlayedRegistry::serve(options, &context, registry).await;
        crate::start(context.clone(), own).await.unwrap();
        Self { registry, peers, settings, context, directory }
    }

    async fn stop(self) {
        self.context.tasks.shutdown().cancel();
        self.context.tasks.finished(PATIENCE).await.unwrap();
        self.directory.close().unwrap();
    }

    /// Returns the service's configuration state of a component.
    async fn state(&self, id: &str) -> Option<ConfigurationState> {
        let channel = chassis::channel(&self.settings.config_coordinator.url).unwrap();
        let mut client = ConfigurationServiceClient::new(channel);
        let request = ListConfigurationStatesRequest { ids: vec![id.to_owned()] };
        let mut pages = client.list_configuration_states(request).await.unwrap().into_inner();
        pages.next().await.and_then(|page| page.unwrap().configuration_states.into_iter().next())
    }

    /// Returns the state as one line.
    async fn shown(&self, id: &str) -> String {
        let Some(state) = self.state(id).await else { return "none".to_owned() };
        let reading = match state.reading() {
            ConfigurationReading::Unspecified => "unknown",
            ConfigurationReading::Known => "known",
            ConfigurationReading::Missing => "missing",
        };
        let ConfigurationState { desired_configuration, status, generation, error, .. } = state;
        let error = self.peers.plain(&error);
        format!("{reading} {desired_configuration:?} {status:?} of {generation} {error:?}")
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
        let channel = chassis::channel(&self.settings.config_coordinator.url).unwrap();
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

/// Returns a component that waits to be switched on.
fn pending(id: &str, configuration: &str) -> Component {
    registry::component(id).with(|one| {
        one.wish.desired_state = Some(DesiredState {
            boot_artifacts: Some(artifacts("s3://boot-images/i1/kernel", "quiet").into()),
            configuration: Some(configuration.into()),
            ..DesiredState::default()
        });
        one.evaluation.status =
            Some(Status { phase: Some(Phase::PoweringOn), status_override: Some("".into()) });
    })
}

/// Returns a component that runs the wanted artifacts and is to be configured.
fn booted(id: &str, configuration: &str) -> Component {
    let component = pending(id, configuration);
    let wanted = component.desired_artifacts().cloned();
    component.with(|one| {
        one.reported.actual_state =
            Some(ActualState { boot_artifacts: wanted.map(Into::into), ..ActualState::default() });
        one.evaluation.status = Some(Status {
            phase: Some(Phase::Configuring),
            status_override: Some(std::sync::Arc::default()),
        });
    })
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
