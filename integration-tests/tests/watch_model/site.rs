//! Registries that share one database, and that can be ended and started again.

use std::{net::SocketAddr, process::Stdio, time::Duration};

use chassis::{Context, Settings};
use integration_tests::{PATIENCE, ports::free_ports, processes::binaries};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    time::{sleep, timeout},
};

/// Way in which a registry ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistryEnd {
    /// Stopped in order, finishing open calls.
    Orderly,
    /// Killed, as a process of its own.
    Killed,
}

/// Seconds by which unread watches can delay the end of a registry.
const GRACE: u32 = 2;

/// The registries.
pub struct RegistrySite {
    end: RegistryEnd,
    database: String,
    directory: TempDir,
    ports: Vec<u16>,
    running: Vec<Option<RunningRegistry>>,
}

enum RunningRegistry {
    Here(Context),
    Process(Child),
}

impl RegistrySite {
    /// Starts `registries` on `database`.
    pub async fn start(database: &str, registries: usize, end: RegistryEnd) -> Self {
        let mut site = Self {
            end,
            database: database.to_owned(),
            directory: tempfile::tempdir().unwrap(),
            ports: free_ports(registries + 1),
            running: (0..registries).map(|_| None).collect(),
        };
        for index in 0..registries {
            site.start_one(index).await;
        }
        site
    }

    /// Returns the addresses of the running registries.
    pub fn urls(&self) -> Vec<String> {
        let ports = self.ports.iter().take(self.running.len());
        ports.map(|port| format!("http://127.0.0.1:{port}")).collect()
    }

    /// Returns the number of running registries.
    pub fn registries(&self) -> usize {
        self.running.len()
    }

    /// Ends one of them.
    pub async fn end_one(&mut self, index: usize) {
        match self.running[index].take().expect("a registry that runs") {
            RunningRegistry::Here(context) => stop(context).await,
            RunningRegistry::Process(mut child) => child.kill().await.unwrap(),
        }
    }

    /// Starts one of them again.
    pub async fn start_one(&mut self, index: usize) {
        let address = SocketAddr::from(([127, 0, 0, 1], self.ports[index]));
        self.running[index] = Some(match self.end {
            RegistryEnd::Orderly => RunningRegistry::Here(self.here(address).await),
            RegistryEnd::Killed => RunningRegistry::Process(self.process(address).await),
        });
    }

    async fn here(&self, address: SocketAddr) -> Context {
        let mut settings = Settings { data_dir: self.directory.path().to_owned(), ..Settings::default() };
        settings.shutdown_grace_seconds = GRACE;
        settings.component_registry.listen = address;
        settings.component_registry.url = format!("http://{address}");
        settings.component_registry.database_url.clone_from(&self.database);
        settings.simulator.url = self.nowhere();
        let context = Context::new(settings);
        let listener = TcpListener::bind(address).await.expect("the port of the one before");
        component_registry::start(context.clone(), listener.into()).await.unwrap();
        context
    }

    async fn process(&self, address: SocketAddr) -> Child {
        let settings = format!(
            "data_dir = \"{}\"\n[log]\nfilter = \"warn\"\n[simulator]\nurl = \"{}\"\n[component_registry]\n\
             listen = \"{address}\"\nurl = \"http://{address}\"\ndatabase_url = \"{}\"\n",
            self.directory.path().display(),
            self.nowhere(),
            self.database,
        );
        let file = self.directory.path().join(format!("{}.toml", address.port()));
        std::fs::write(&file, settings).unwrap();
        let log = self.directory.path().join(format!("{}.log", address.port()));
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let child = Command::new(binaries().join("reveille-component-registry"))
            .arg("--config")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let listens = async {
            while TcpStream::connect(address).await.is_err() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, listens).await.expect("a registry that listens");
        child
    }

    /// An inventory that never answers, so that only the test writes.
    fn nowhere(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports[self.running.len()])
    }

    /// Ends all of them in order.
    pub async fn stop(mut self) {
        for running in std::mem::take(&mut self.running).into_iter().flatten() {
            match running {
                RunningRegistry::Here(context) => stop(context).await,
                RunningRegistry::Process(mut child) => child.kill().await.unwrap(),
            }
        }
    }
}

async fn stop(context: Context) {
    context.tasks.shutdown().cancel();
    context.tasks.finished(Duration::from_secs(60)).await.expect("an orderly end");
}
