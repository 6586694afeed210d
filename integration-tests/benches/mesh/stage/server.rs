//! The whole mesh in one process of its own, as `reveille serve` runs it.

use std::{
    fs::{self, File},
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use chassis::Settings;
use integration_tests::{bos::Bos, hosts::RackHosts, mesh, ports::free_ports};
use proto::component::component_service_client::ComponentServiceClient;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{Database, Stage};

/// Pause between two checks for readiness: short against the measured times.
const LOOK: Duration = Duration::from_millis(5);

/// Longest that anything is waited for.
const PATIENCE: Duration = Duration::from_secs(300);

/// Client of the registry.
pub type Registry = ComponentServiceClient<chassis::Channel>;

/// A running mesh. It is killed when it is dropped.
pub struct Server {
    /// Settings of the mesh, with the addresses of every part.
    pub settings: Settings,
    /// Client of the mesh's gateway.
    pub bos: Bos,
    directory: TempDir,
    arguments: Vec<String>,
    child: Child,
}

impl Server {
    /// Starts a mesh with empty databases and test settings after `adjust` has edited them, and waits until it is
    /// ready.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start(stage: &Stage, adjust: impl AsyncFnOnce(&mut Settings)) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut settings = mesh::settings(&directory);
        give_ports(&mut settings);
        if let Database::Postgresql(server) = &stage.database {
            for owner in owners(&mut settings) {
                *owner = server.new_database().await;
            }
            // Replicas cannot make a key that all of them know.
            settings.hosts.secret_keys = vec!["5e".repeat(32)].into();
        }
        adjust(&mut settings).await;
        Self::launch(stage.program.display().to_string(), directory, settings).await
    }

    /// Starts one more process that shares the databases and so the work, and waits until it is ready.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn replica(&self) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut settings = self.settings.clone();
        settings.data_dir = directory.path().to_owned();
        give_ports(&mut settings);
        Self::launch(self.arguments[0].clone(), directory, settings).await
    }

    async fn launch(program: String, directory: TempDir, settings: Settings) -> Self {
        let file = directory.path().join("reveille.toml");
        fs::write(&file, toml::to_string(&settings).expect("settings as text"))
            .expect("a writable directory");
        let arguments = vec![program, "serve".into(), "--config".into(), file.display().to_string()];
        let bos = Bos::new(&settings.gateway.url);
        let child = spawn(&arguments, directory.path());
        let mut server = Self { settings, bos, directory, arguments, child };
        server.ready().await;
        server
    }

    /// Starts a mesh without nodes.
    ///
    /// # Panics
    /// As [`Self::start`].
    pub async fn empty(stage: &Stage) -> Self {
        Self::start(stage, async |settings| settings.simulator.nodes = 0).await
    }

    async fn ready(&mut self) {
        let until = Instant::now() + PATIENCE;
        let url = format!("{}/readyz", self.settings.gateway.url);
        let client = reqwest::Client::new();
        while Instant::now() < until {
            if client.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
                return;
            }
            if let Some(ended) = self.child.try_wait().expect("a status") {
                panic!("reveille ended with {ended}:\n{}", self.log());
            }
            tokio::time::sleep(LOOK).await;
        }
        panic!("reveille does not become ready:\n{}", self.log());
    }

    /// Ends the process in order, starts it again, and returns the time from that start until it was ready.
    ///
    /// # Panics
    /// When it does not end or does not start.
    pub async fn start_again(&mut self) -> Duration {
        self.end().await;
        let began = Instant::now();
        self.child = spawn(&self.arguments, self.directory.path());
        self.ready().await;
        began.elapsed()
    }

    /// Ends the process in order.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn stop(mut self) {
        self.end().await;
    }

    /// Ends the process without warning, as a crash does.
    ///
    /// # Panics
    /// When it had ended before.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("a running process");
    }

    /// Returns the number of parts whose role the process holds.
    ///
    /// # Panics
    /// When the metrics cannot be read.
    pub async fn roles(&self) -> u32 {
        let asked = reqwest::get(format!("{}/metrics", self.settings.gateway.url)).await.expect("an answer");
        let text = asked.text().await.expect("a whole answer");
        let held = text.lines().filter(|line| line.starts_with("reveille_role_held{"));
        held.filter_map(|line| line.rsplit(' ').next()?.parse::<u32>().ok()).sum()
    }

    async fn end(&mut self) {
        let id = self.child.id().expect("a running process").to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().await.expect("kill");
        assert!(asked.success(), "reveille had ended before:\n{}", self.log());
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("an end in time").expect("a status");
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Memory that the process has, in bytes.
    pub fn memory(&self) -> f64 {
        self.bytes("VmRSS:")
    }

    /// Most memory that the process had at any time since [`Self::forget_peak`], in bytes.
    pub fn peak(&self) -> f64 {
        self.bytes("VmHWM:")
    }

    /// Resets the peak of memory.
    ///
    /// # Panics
    /// When the system refuses it.
    pub fn forget_peak(&self) {
        let id = self.child.id().expect("a running process");
        // The kernel's number for: reset the peak resident set size.
        fs::write(format!("/proc/{id}/clear_refs"), "5").expect("a new peak");
    }

    fn bytes(&self, name: &str) -> f64 {
        let status = self.process_file("status");
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.trim().split(' ').next());
        line.and_then(|text| text.parse::<f64>().ok()).expect("a number of kibibytes") * 1024.0
    }

    /// Time that the process has used of all cores.
    pub fn cpu(&self) -> Duration {
        let stat = self.process_file("stat");
        // The name, which may have spaces, ends at the last parenthesis; the times are fields 14 and 15.
        let fields = stat.rsplit(')').next().expect("some text").split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).map(|field| field.parse::<u64>().expect("a number")).sum();
        Duration::from_millis(ticks * 10)
    }

    fn process_file(&self, name: &str) -> String {
        let id = self.child.id().expect("a running process");
        fs::read_to_string(format!("/proc/{id}/{name}")).expect("a running process")
    }

    /// A client of the registry, with a connection of its own.
    ///
    /// # Panics
    /// When there is no address.
    pub fn registry(&self) -> Registry {
        let channel = chassis::plain_channel(&self.settings.component_registry.url).expect("an address");
        ComponentServiceClient::new(channel).max_decoding_message_size(usize::MAX)
    }

    /// The hosts and their rack.
    pub fn hosts(&self) -> RackHosts {
        RackHosts::at(&self.settings.component_registry.url, &self.settings.simulator.url)
    }

    /// Address of all hosts for clients of Kubernetes.
    pub fn kubernetes_hosts_url(&self) -> String {
        format!("{}/kubernetes/apis/metal3.io/v1alpha1/baremetalhosts", self.settings.gateway.url)
    }

    /// Address of all components over REST.
    pub fn components_url(&self) -> String {
        format!("{}/apis/bos/v2/components", self.settings.gateway.url)
    }
}

fn spawn(arguments: &[String], directory: &Path) -> Child {
    let log = File::options().create(true).append(true).open(directory.join("log")).expect("a log file");
    // However this program ends, the process does not stay.
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .expect("a process")
}

/// Ports that stay the same when it is started again.
fn give_ports(settings: &mut Settings) {
    let places = [
        (&mut settings.component_registry.listen, &mut settings.component_registry.url),
        (&mut settings.session_manager.listen, &mut settings.session_manager.url),
        (&mut settings.status_evaluator.listen, &mut settings.status_evaluator.url),
        (&mut settings.power_controller.listen, &mut settings.power_controller.url),
        (&mut settings.config_coordinator.listen, &mut settings.config_coordinator.url),
        (&mut settings.host_provisioner.listen, &mut settings.host_provisioner.url),
        (&mut settings.fleet_manager.listen, &mut settings.fleet_manager.url),
        (&mut settings.insight.listen, &mut settings.insight.url),
        (&mut settings.gateway.listen, &mut settings.gateway.url),
        (&mut settings.simulator.listen, &mut settings.simulator.url),
    ];
    let ports = free_ports(places.len());
    for ((listen, url), port) in places.into_iter().zip(ports) {
        listen.set_port(port);
        *url = format!("http://{listen}");
    }
}

fn owners(settings: &mut Settings) -> [&mut String; 6] {
    [
        &mut settings.component_registry.database_url,
        &mut settings.session_manager.database_url,
        &mut settings.power_controller.database_url,
        &mut settings.config_coordinator.database_url,
        &mut settings.host_provisioner.database_url,
        &mut settings.fleet_manager.database_url,
    ]
}
