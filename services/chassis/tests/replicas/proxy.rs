//! A proxy to the database that can cut connections.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use test_databases::EmptyDatabase;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{AbortHandle, JoinSet},
};

/// Place of a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The next commit does not arrive.
    BeforeCommit,
    /// The answer to the next commit does not arrive.
    AfterCommit,
}

/// Proxy that forwards connections to a database.
pub struct Proxy {
    /// Address of the database through the proxy.
    pub database: EmptyDatabase,
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Mutex<Option<AbortHandle>>,
}

struct Shared {
    server: String,
    cut: Mutex<Option<Cut>>,
    accepted: AtomicUsize,
    /// Number of times that all existing connections were silenced.
    silences: watch::Sender<u64>,
}

impl Proxy {
    /// Starts a proxy of `database`, whose address has a host, a port and no password.
    pub async fn start(database: &EmptyDatabase) -> Self {
        let (scheme, rest) = database.url.split_once("://").unwrap();
        let (authority, name) = rest.split_once('/').unwrap();
        let (user, server) = authority.rsplit_once('@').unwrap_or(("", authority));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let at = if user.is_empty() { String::new() } else { format!("{user}@") };
        let database = EmptyDatabase::at(format!("{scheme}://{at}{address}/{name}"));
        let shared = Shared {
            server: server.to_owned(),
            cut: Mutex::default(),
            accepted: AtomicUsize::new(0),
            silences: watch::Sender::new(0),
        };
        let proxy = Self { database, address, shared: Arc::new(shared), accepting: Mutex::default() };
        proxy.accept(listener);
        proxy
    }

    /// Cuts the connection with the next commit.
    pub fn cut(&self, cut: Cut) {
        *self.shared.cut.lock() = Some(cut);
    }

    /// Returns whether the cut has been made.
    pub fn was_cut(&self) -> bool {
        self.shared.cut.lock().is_none()
    }

    /// Forwards no more bytes on the existing connections, and ends none of them, as after the loss of a host. New
    /// connections work, as if another host answered.
    pub fn fall_silent(&self) {
        self.shared.silences.send_modify(|count| *count += 1);
    }

    /// Cuts every connection and refuses new ones.
    pub fn go_down(&self) {
        if let Some(accepting) = self.accepting.lock().take() {
            accepting.abort();
        }
    }

    /// Accepts connections again.
    pub async fn come_up(&self) {
        self.shared.accepted.store(0, Ordering::SeqCst);
        // The old listener is closed when its task is dropped.
        let listener = loop {
            match TcpListener::bind(self.address).await {
                Ok(listener) => break listener,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        self.accept(listener);
    }

    /// Returns the number of connections since the proxy came up.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    fn accept(&self, listener: TcpListener) {
        let shared = Arc::clone(&self.shared);
        let task = tokio::spawn(async move {
            // The set is dropped with the task, and every connection with it.
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                shared.accepted.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&shared);
                connections.spawn(async move { shared.pass_on(client).await });
            }
        });
        *self.accepting.lock() = Some(task.abort_handle());
    }
}

impl Shared {
    /// Forwards bytes until either side ends or the cut is made.
    async fn pass_on(&self, mut client: TcpStream) -> std::io::Result<()> {
        let mut silences = self.silences.subscribe();
        let mut server = TcpStream::connect(&self.server).await?;
        let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            tokio::select! {
                _ = silences.changed() => std::future::pending().await,
                read = client.read(&mut asked) => match read? {
                    0 => return Ok(()),
                    n => {
                        let cut = self.takes(&asked[..n]);
                        if cut == Some(Cut::BeforeCommit) {
                            return Ok(());
                        }
                        server.write_all(&asked[..n]).await?;
                        if cut == Some(Cut::AfterCommit) {
                            // The answer confirms the commit, and is dropped.
                            let _unheard = server.read(&mut answered).await?;
                            return Ok(());
                        }
                    }
                },
                read = server.read(&mut answered) => match read? {
                    0 => return Ok(()),
                    n => client.write_all(&answered[..n]).await?,
                },
            }
        }
    }

    fn takes(&self, asked: &[u8]) -> Option<Cut> {
        const COMMIT: &[u8] = b"COMMIT\0";
        let is_commit = asked.windows(COMMIT.len()).any(|window| window == COMMIT);
        is_commit.then(|| self.cut.lock().take()).flatten()
    }
}
