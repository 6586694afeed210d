//! A network in memory. Hosts have names; each start of a host has a name of its own, such as `session-manager-2`, so
//! that messages of an earlier start reach no host.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, split},
    sync::{Notify, mpsc},
};
use tokio_util::sync::CancellationToken;
use tonic::{codegen::http::Uri, transport::Endpoint};
use tower::Service;

use super::buffer_size;

/// Bytes that may be under way in one direction of a connection.
const UNDER_WAY: usize = 256 << 10;

/// Most bytes that are delivered at once.
const SEGMENT: usize = 16 << 10;

/// Time between keep-alive pings of a connection, and the time to answer one.
const PING: Duration = Duration::from_secs(15);
const PONG: Duration = Duration::from_secs(5);

thread_local! {
    static CURRENT: RefCell<Option<SimulatedNetwork>> = const { RefCell::new(None) };
}

/// Network. Clones share it.
#[derive(Clone)]
pub struct SimulatedNetwork {
    shared: Arc<NetworkInner>,
}

struct NetworkInner {
    state: Mutex<NetworkState>,
    /// Notifies tasks of a change of the ways between hosts.
    changed: Notify,
}

struct NetworkState {
    chance: SmallRng,
    /// Listening sockets, by the name of the host.
    listening: BTreeMap<Arc<str>, SimulatedSocket>,
    /// Starts that are over.
    dead: BTreeSet<Arc<str>>,
    /// Starts that are paused.
    paused: BTreeSet<Arc<str>>,
    /// Ways by sending and receiving host; every other way is fair.
    ways: BTreeMap<(Arc<str>, Arc<str>), NetworkPath>,
    connections: Vec<SimulatedConnection>,
}

struct SimulatedSocket {
    /// Start that listens.
    start: Arc<str>,
    /// Service of the host. A caller of a service gets any of its hosts.
    service: Arc<str>,
    connections: mpsc::UnboundedSender<DuplexStream>,
}

struct SimulatedConnection {
    client: Arc<str>,
    server: Arc<str>,
    cut: CancellationToken,
}

/// Latency and state of the way from one host to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkPath {
    /// Least latency.
    pub least: Duration,
    /// Most latency.
    pub most: Duration,
    /// Whether the way is blocked; messages are kept meanwhile and delivered afterwards.
    pub blocked: bool,
}

impl Default for NetworkPath {
    fn default() -> Self {
        Self { least: Duration::from_micros(200), most: Duration::from_millis(3), blocked: false }
    }
}

/// Incoming connections of a host.
pub struct SimulatedListener {
    incoming: mpsc::UnboundedReceiver<DuplexStream>,
}

impl SimulatedListener {
    /// Returns the next connection; never after the host has died.
    pub(crate) fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<DuplexStream> {
        match ready!(self.incoming.poll_recv(context)) {
            Some(pipe) => Poll::Ready(pipe),
            None => Poll::Pending,
        }
    }
}

impl SimulatedNetwork {
    /// Creates a network without faults.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = NetworkState {
            chance: SmallRng::seed_from_u64(seed),
            listening: BTreeMap::new(),
            dead: BTreeSet::new(),
            paused: BTreeSet::new(),
            ways: BTreeMap::new(),
            connections: Vec::new(),
        };
        Self { shared: Arc::new(NetworkInner { state: Mutex::new(state), changed: Notify::new() }) }
    }

    /// Makes it the network of this thread: [`crate::channel`] to an address of [`Self::url`] uses it.
    pub fn enter(&self) {
        CURRENT.set(Some(self.clone()));
    }

    /// Returns the address by which `start`, a start of some host, calls `service`.
    #[must_use]
    pub fn url(start: &str, service: &str) -> String {
        format!("http://{service}.{start}")
    }

    /// Lets `start` take the connections to `host`, one of the hosts of `service`.
    #[must_use]
    pub fn listen(&self, service: &str, host: &str, start: &str) -> SimulatedListener {
        let (connections, incoming) = mpsc::unbounded_channel();
        let socket = SimulatedSocket { start: start.into(), service: service.into(), connections };
        self.shared.state.lock().listening.insert(host.into(), socket);
        SimulatedListener { incoming }
    }

    /// Ends `start`: its connections break at once, and it makes and takes no further ones.
    pub fn kill(&self, start: &str) {
        let mut state = self.shared.state.lock();
        state.dead.insert(start.into());
        state.paused.remove(start);
        state.listening.retain(|_, socket| *socket.start != *start);
        state.cut(|connection| *connection.client == *start || *connection.server == *start);
    }

    /// Pauses `start`: from now on it sends nothing, and messages to it are kept, until [`Self::go_on`]. Its earlier
    /// messages are on their way.
    pub fn pause(&self, start: &str) {
        self.shared.state.lock().paused.insert(start.into());
    }

    /// Ends [`Self::pause`].
    pub fn go_on(&self, start: &str) {
        self.shared.state.lock().paused.remove(start);
        self.shared.changed.notify_waiters();
    }

    /// Breaks every connection between two hosts, whichever made it. Bytes under way are lost.
    pub fn cut(&self, one: &str, other: &str) {
        let between = |connection: &SimulatedConnection| {
            let ends = (host_of(&connection.client), host_of(&connection.server));
            ends == (one, other) || ends == (other, one)
        };
        self.shared.state.lock().cut(between);
    }

    /// Sets the way from `sender` to `receiver`, both names of hosts.
    pub fn set_way(&self, sender: &str, receiver: &str, way: NetworkPath) {
        self.shared.state.lock().ways.insert((sender.into(), receiver.into()), way);
        self.shared.changed.notify_waiters();
    }

    /// Makes every way fair again.
    pub fn heal(&self) {
        self.shared.state.lock().ways.clear();
        self.shared.changed.notify_waiters();
    }

    /// Waits for the latency from one host to another, and until the way is not blocked.
    async fn pass(&self, sender: &str, receiver: &str) {
        tokio::time::sleep(self.latency(sender, receiver)).await;
        loop {
            let changed = self.shared.changed.notified();
            if !self.way(sender, receiver).blocked {
                return;
            }
            changed.await;
        }
    }

    /// Waits until `start` is not paused.
    async fn runs(&self, start: &str) {
        loop {
            let changed = self.shared.changed.notified();
            if !self.shared.state.lock().paused.contains(start) {
                return;
            }
            changed.await;
        }
    }

    fn way(&self, sender: &str, receiver: &str) -> NetworkPath {
        let ends = (host_of(sender).into(), host_of(receiver).into());
        self.shared.state.lock().ways.get(&ends).copied().unwrap_or_default()
    }

    fn latency(&self, sender: &str, receiver: &str) -> Duration {
        let way = self.way(sender, receiver);
        self.shared.state.lock().chance.random_range(way.least..=way.most)
    }

    async fn connect(self, start: Arc<str>, service: Arc<str>) -> io::Result<TokioIo<DuplexStream>> {
        self.runs(&start).await;
        let host = self.shared.state.lock().any_host(&service).unwrap_or(service);
        self.pass(&start, &host).await;
        self.pass(&host, &start).await;
        let (client, near) = tokio::io::duplex(buffer_size(UNDER_WAY));
        let (far, server) = tokio::io::duplex(buffer_size(UNDER_WAY));
        let cut = CancellationToken::new();
        let listener = {
            let mut state = self.shared.state.lock();
            let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
            let socket = state.listening.get(&host).ok_or_else(refused)?;
            let listener = Arc::clone(&socket.start);
            if state.dead.contains(&start) || socket.connections.send(server).is_err() {
                return Err(refused());
            }
            state.connections.retain(|connection| !connection.cut.is_cancelled());
            let connection =
                SimulatedConnection { client: start.clone(), server: listener.clone(), cut: cut.clone() };
            state.connections.push(connection);
            listener
        };
        tokio::spawn(self.carry((start, near), (listener, far), cut));
        Ok(TokioIo::new(client))
    }

    /// Carries the bytes of both ends until both have finished or the connection is cut.
    async fn carry(
        self,
        one: (Arc<str>, DuplexStream),
        other: (Arc<str>, DuplexStream),
        cut: CancellationToken,
    ) {
        let (near_reads, near_writes) = split(one.1);
        let (far_reads, far_writes) = split(other.1);
        let there = self.pump(&one.0, &other.0, near_reads, far_writes);
        let back = self.pump(&other.0, &one.0, far_reads, near_writes);
        tokio::select! {
            biased;
            () = cut.cancelled() => {}
            // An end that is gone sends no more, and the other notices.
            _ = async { tokio::join!(there, back) } => cut.cancel(),
        }
    }

    async fn pump(
        &self,
        sender: &str,
        receiver: &str,
        mut from: ReadHalf<DuplexStream>,
        mut to: WriteHalf<DuplexStream>,
    ) -> io::Result<()> {
        let mut segment = vec![0; SEGMENT];
        loop {
            let read = from.read(&mut segment).await?;
            self.runs(sender).await;
            self.pass(sender, receiver).await;
            self.runs(receiver).await;
            if read == 0 {
                return to.shutdown().await;
            }
            to.write_all(&segment[..read]).await?;
        }
    }
}

impl NetworkState {
    /// Returns one of the hosts of `service`.
    fn any_host(&mut self, service: &str) -> Option<Arc<str>> {
        let hosts = self.listening.iter().filter(|(_, socket)| *socket.service == *service);
        let hosts: Vec<_> = hosts.map(|(host, _)| Arc::clone(host)).collect();
        hosts.choose(&mut self.chance).cloned()
    }

    fn cut(&mut self, whom: impl Fn(&SimulatedConnection) -> bool) {
        self.connections.retain(|connection| {
            let cut = whom(connection);
            if cut {
                connection.cut.cancel();
            }
            !cut
        });
    }
}

/// Returns the host of one of its starts.
fn host_of(start: &str) -> &str {
    match start.rsplit_once('-') {
        Some((host, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => start,
    }
}

/// Returns the connector to `uri` through the network of this thread, if it has one.
pub(crate) fn way(uri: &Uri) -> Option<SimulatedConnector> {
    let network = CURRENT.with_borrow(Clone::clone)?;
    let (service, start) = uri.host()?.split_once('.')?;
    Some(SimulatedConnector { network, start: start.into(), service: service.into() })
}

/// Connector of one channel.
#[derive(Clone)]
pub(crate) struct SimulatedConnector {
    network: SimulatedNetwork,
    start: Arc<str>,
    service: Arc<str>,
}

impl Service<Uri> for SimulatedConnector {
    type Response = TokioIo<DuplexStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { network, start, service } = self.clone();
        Box::pin(network.connect(start, service))
    }
}

/// Sets slow pings: in virtual time waiting for a vanished peer costs nothing, and each ping is work.
pub(crate) fn unhurried(endpoint: Endpoint) -> Endpoint {
    endpoint.http2_keep_alive_interval(PING).keep_alive_timeout(PONG)
}
