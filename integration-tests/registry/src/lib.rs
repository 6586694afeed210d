//! The component registry for tests of other services: the real one, in this process, on a database of its own.
//!
//! A proxy stands in front of it. Faults that a service meets at the registry are played there, or happen to the registry
//! itself: it restarts, and it loses commits.

mod components;
mod hosts;
mod proxy;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::atomic::AtomicU64,
    time::Duration,
};

use chassis::{Channel, Context, Settings, settings::InventoryDriver};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::net::TcpListener;

pub use components::SessionWish;
pub use proxy::{CallFault, RegistryProxy};

/// Longest wait for any event, far longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(150);

/// Registry in this process.
pub struct TestRegistry {
    /// Faults between the registry and its clients.
    pub proxy: RegistryProxy,
    settings: Settings,
    running: Mutex<Option<RunningRegistry>>,
    /// Nodes that the inventory lists, and whether they are locked.
    nodes: Mutex<BTreeMap<String, bool>>,
    /// Number of the latest session.
    sessions: AtomicU64,
    directory: TempDir,
}

/// Registry between a start and a stop.
struct RunningRegistry {
    context: Context,
    /// Connection past the proxy.
    channel: Channel,
}

/// Copy of the database of a registry.
pub struct DatabaseCopy(TempDir);

impl TestRegistry {
    /// Starts a registry whose inventory lists the nodes that the test gives it.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// Starts a registry with settings changed by `adjust`.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start_with(adjust: impl FnOnce(&mut Settings)) -> Self {
        let directory = directory();
        let mut settings = Settings { data_dir: directory.path().to_owned(), ..Settings::default() };
        settings.inventory.driver = InventoryDriver::File;
        settings.machine_file = directory.path().join("machine.toml");
        fs::write(&settings.machine_file, "").expect("a machine file");
        adjust(&mut settings);
        let proxy = RegistryProxy::start().await;
        let registry = Self {
            proxy,
            settings,
            running: Mutex::default(),
            nodes: Mutex::default(),
            sessions: AtomicU64::new(0),
            directory,
        };
        registry.resume().await;
        registry
    }

    /// Address of the registry for the service under test.
    #[must_use]
    pub fn url(&self) -> String {
        self.proxy.url.clone()
    }

    /// Connection past the proxy, for calls of the test itself.
    ///
    /// # Panics
    /// When the registry is stopped.
    #[must_use]
    pub fn channel(&self) -> Channel {
        self.running.lock().as_ref().expect("a running registry").channel.clone()
    }

    /// Stops the registry. Its address then answers that it is unavailable.
    ///
    /// # Panics
    /// When it does not end in order.
    pub async fn stop(&self) {
        let running = self.running.lock().take();
        let Some(RunningRegistry { context, .. }) = running else { return };
        self.proxy.forward_to(None);
        context.tasks.shutdown().cancel();
        context.tasks.finished(PATIENCE).await.expect("an orderly end");
        drop(context);
        self.until_closed().await;
    }

    /// Waits until no connection to the database is left. Connections close in the background, and the last one moves the
    /// log of writes into the file of the database, also into one that was replaced meanwhile.
    async fn until_closed(&self) {
        let mut log = self.database().into_os_string();
        log.push("-wal");
        let closed = async {
            while Path::new(&log).exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, closed).await.expect("a closed database");
    }

    /// Starts the registry again on its database.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn resume(&self) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let context = Context::new(self.settings.clone());
        component_registry::start(context.clone(), listener.into()).await.expect("a registry");
        let channel = chassis::plain_channel(&url).expect("an address");
        self.proxy.forward_to(Some(&url));
        *self.running.lock() = Some(RunningRegistry { context, channel });
    }

    /// Copies the database while the registry is stopped for a moment.
    ///
    /// # Panics
    /// When the registry does not stop or start, or a file cannot be copied.
    pub async fn copy(&self) -> DatabaseCopy {
        self.stop().await;
        let copy = directory();
        copy_file(&self.database(), &copy.path().join("copy"));
        self.resume().await;
        DatabaseCopy(copy)
    }

    /// Restarts the registry on a copy of its database: all commits since then are lost.
    ///
    /// # Panics
    /// As [`Self::copy`].
    pub async fn restore(&self, copy: &DatabaseCopy) {
        self.stop().await;
        copy_file(&copy.0.path().join("copy"), &self.database());
        self.resume().await;
    }

    fn database(&self) -> PathBuf {
        self.directory.path().join("component-registry.sqlite")
    }
}

impl Drop for TestRegistry {
    fn drop(&mut self) {
        if let Some(running) = self.running.lock().take() {
            running.context.tasks.shutdown().cancel();
        }
    }
}

/// Returns a new directory, in memory where the system has such a place: each commit waits for the disk.
fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    directory.expect("a directory")
}

fn copy_file(from: &Path, to: &Path) {
    fs::copy(from, to).expect("a copy of the database");
}
