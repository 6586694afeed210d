//! The environment that a part starts in.

use std::{fs, net::SocketAddr, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpSocket};

use crate::{
    Channel, Settings, Tasks, channel,
    mesh::{health::PartHealth, streams::StreamBudget},
    process::{audit::AuditLog, capacity::ProcessCapacity, shared_values::SharedValues},
};

/// Name of the file in the data directory that is there while a backup is put in the place of the databases. No part starts
/// with a part of them.
pub const RESTORE_MARK: &str = "restore-in-progress";

/// Rights of a file that are not those of its owner.
const OTHERS: u32 = 0o077;

/// The settings in force and the tasks to join.
#[derive(Clone)]
pub struct Context {
    /// The settings in force.
    pub settings: Arc<Settings>,
    /// Registry of the part's tasks.
    pub tasks: Tasks,
    /// Values that the parts of a process share, such as its mirrors and its connections to other replicas.
    pub shared: SharedValues,
    /// Whether the part can do its work.
    pub health: PartHealth,
    /// Memory and file descriptors of the process.
    pub capacity: ProcessCapacity,
    /// The bytes that streams may hold, which the parts of a process share.
    pub streams: StreamBudget,
}

impl Context {
    /// A context with these settings and no tasks yet.
    pub fn new(settings: Settings) -> Self {
        let capacity = ProcessCapacity::of_process(&settings);
        let most = capacity.share(settings.limits.stream_bytes);
        let patience = Duration::from_secs(settings.limits.stalled_seconds.into());
        Self {
            settings: Arc::new(settings),
            capacity,
            streams: StreamBudget::new(most, patience),
            tasks: Tasks::default(),
            shared: SharedValues::default(),
            health: PartHealth::default(),
        }
    }

    /// The context of a further part of the same process.
    #[must_use]
    pub fn of_another_part(&self) -> Self {
        Self { health: PartHealth::default(), ..self.clone() }
    }

    /// A lazy connection to the part at `url`, with the certificates of the settings.
    ///
    /// # Errors
    /// As [`channel`].
    pub fn channel(&self, url: &str) -> anyhow::Result<Channel> {
        channel(&self.settings.tls, url)
    }

    /// Opens the audit log of the part of that name, and keeps it until shutdown; `None`: the settings want none.
    ///
    /// # Errors
    /// As [`AuditLog::open`].
    pub fn audit_log(&self, part: &str) -> anyhow::Result<Option<AuditLog>> {
        let log = AuditLog::open(&self.settings.audit, part)?;
        if let Some(log) = log.clone() {
            self.tasks.spawn_until_shutdown("audit log", log.keep());
        }
        Ok(log)
    }

    /// Runs `serving`, which ends by itself at shutdown once every client is done. A client that stopped reading is
    /// never done, so clients get half of the grace period; the other half is for the work that they leave behind.
    ///
    /// # Errors
    /// The error of `serving`.
    pub async fn finish_calls<E>(&self, serving: impl Future<Output = Result<(), E>>) -> Result<(), E> {
        let grace = Duration::from_secs(self.settings.shutdown_grace_seconds.into());
        let out_of_patience = async {
            self.tasks.shutdown().cancelled().await;
            tokio::time::sleep(grace / 2).await;
        };
        tokio::select! {
            served = serving => served,
            () = out_of_patience => {
                tracing::warn!("calls under way were cut off");
                Ok(())
            }
        }
    }

    /// Address of the database of `part`: the configured one, or an SQLite file in the data directory, which is
    /// created.
    ///
    /// # Errors
    /// When `set` is no address of a database, or the directory cannot be created or written.
    pub fn database_url(&self, part: &str, set: &str) -> anyhow::Result<String> {
        let mark = self.settings.data_dir.join(RESTORE_MARK);
        anyhow::ensure!(
            !mark.exists(),
            "data_dir: a restore was interrupted, and not everything is from one backup: repeat `reveille restore` ({})",
            mark.display()
        );
        if !set.is_empty() {
            // The error omits `set`, which may hold a password.
            let known =
                ["postgres://", "postgresql://", "sqlite:"].iter().any(|scheme| set.starts_with(scheme));
            anyhow::ensure!(
                known,
                "{}.database_url: has to begin with postgres:// or sqlite://",
                part.replace('-', "_")
            );
            return Ok(set.to_owned());
        }
        let directory = &self.settings.data_dir;
        std::fs::create_dir_all(directory)
            .and_then(|()| check_writable(directory))
            .with_context(|| format!("data_dir: cannot write to {}", directory.display()))?;
        let file = directory.join(format!("{part}.sqlite"));
        make_private(&file);
        Ok(format!("sqlite://{}?mode=rwc", file.display()))
    }
}

/// Takes the rights to a database and its log from everybody but their owner. Earlier versions made them for everybody to
/// read. The files of another user stay as they are.
fn make_private(file: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let mut path = file.as_os_str().to_owned();
        path.push(ending);
        let Ok(found) = fs::metadata(&path) else { continue };
        let mode = found.permissions().mode();
        if mode & OTHERS == 0 {
            continue;
        }
        if let Err(error) = fs::set_permissions(&path, fs::Permissions::from_mode(mode & !OTHERS)) {
            let file = path.to_string_lossy();
            tracing::warn!(%file, %error, "others can read this file");
        }
    }
}

/// Creates and removes a file, because permissions alone do not show whether a directory is writable.
///
/// # Errors
/// The reason why the directory cannot be written.
pub fn check_writable(directory: &Path) -> std::io::Result<()> {
    let probe = directory.join(format!(".probe-{}", std::process::id()));
    std::fs::write(&probe, b"")?;
    std::fs::remove_file(probe)
}

/// Bytes that the system keeps for one connection until its client takes them. Otherwise it would let them grow to some
/// megabytes, which count as memory of the process.
const SEND_BUFFER: u32 = 256 << 10;

/// Connections that may wait until they are accepted.
const BACKLOG: u32 = 1024;

/// Listens on `address` of the setting `key`.
///
/// # Errors
/// Names the address and the setting, for example when the port is in use.
pub async fn bind(key: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    listen(address).with_context(|| format!("{key}.listen: cannot listen on {address}"))
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    // Connections that are accepted inherit it.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
