//! A whole mesh in this process.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use chassis::{Context, Settings};
use reveille::{
    mesh::{self, MeshListeners},
    surroundings,
};
use tempfile::TempDir;
use tokio::net::TcpListener;
use upstreams::{MachinePlan, Upstreams};

use crate::bos::Bos;

/// A mesh that runs until it is dropped or stopped.
pub struct Mesh {
    /// Client of the mesh's gateway.
    pub bos: Bos,
    /// The settings in force, with the addresses of every part.
    pub settings: Arc<Settings>,
    context: Context,
    _directory: TempDir,
}

/// Settings for a test: free ports, an own directory and hardware without delay.
#[must_use]
pub fn settings(directory: &TempDir) -> Settings {
    let mut settings = Settings { data_dir: directory.path().to_owned(), ..Settings::default() };
    let free = SocketAddr::from(([127, 0, 0, 1], 0));
    for listen in [
        &mut settings.component_registry.listen,
        &mut settings.session_manager.listen,
        &mut settings.status_evaluator.listen,
        &mut settings.power_controller.listen,
        &mut settings.config_coordinator.listen,
        &mut settings.host_provisioner.listen,
        &mut settings.fleet_manager.listen,
        &mut settings.insight.listen,
        &mut settings.gateway.listen,
        &mut settings.simulator.listen,
    ] {
        *listen = free;
    }
    settings.simulator.nodes = 8;
    settings.simulator.speed = 0.0;
    settings
}

impl Mesh {
    /// Starts a mesh with the settings of a test after `adjust` has edited them, and waits until the mesh is ready and
    /// has discovered its fleet.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start(adjust: impl AsyncFnOnce(&mut Settings)) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut settings = settings(&directory);
        adjust(&mut settings).await;
        let nodes = settings.simulator.nodes as usize;
        let listeners = MeshListeners::bind(&mut settings).await.expect("free ports");
        Self::launch(directory, settings, listeners, nodes).await
    }

    /// Starts a mesh among the systems of `plan`, each played over its own API, with the settings after `adjust` has
    /// edited them, and waits until the mesh is ready and has discovered its nodes.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn among(plan: MachinePlan, adjust: impl AsyncFnOnce(&mut Settings)) -> (Self, Upstreams) {
        let directory = tempfile::tempdir().expect("a directory");
        let mut settings = settings(&directory);
        surroundings::csm(&mut settings);
        let listeners = MeshListeners::bind(&mut settings).await.expect("free ports");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let plan = MachinePlan { gateway_url: settings.gateway.url.clone(), ..plan };
        let upstreams = Upstreams::start(plan, listener).expect("upstreams");
        surroundings::play(&mut settings, &upstreams);
        // Shorter than in production, where polls load real systems.
        settings.power.follow_seconds = 0.1;
        settings.power.poll_seconds = 0.2;
        settings.configuration.poll_seconds = 0.2;
        settings.inventory.lock_poll_seconds = 0.2;
        adjust(&mut settings).await;
        let nodes = upstreams.ids().len();
        (Self::launch(directory, settings, listeners, nodes).await, upstreams)
    }

    async fn launch(directory: TempDir, settings: Settings, listeners: MeshListeners, nodes: usize) -> Self {
        let context = Context::new(settings);
        mesh::start(&context, listeners).await.expect("a mesh");
        let settings = Arc::clone(&context.settings);
        let bos = Bos::new(&settings.gateway.url);
        bos.ready().await;
        bos.discovered(nodes).await;
        Self { bos, settings, context, _directory: directory }
    }

    /// Stops it in order.
    ///
    /// # Panics
    /// When a part does not end or ended with an error.
    pub async fn stop(self) {
        self.context.tasks.shutdown().cancel();
        self.context.tasks.finished(Duration::from_secs(20)).await.expect("an orderly end");
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        self.context.tasks.shutdown().cancel();
    }
}
