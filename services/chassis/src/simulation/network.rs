//! A network in memory. Hosts have names; each start of a host is a name of its own, such as `session-manager-2`, so
//! that what an earlier start left behind reaches nobody.

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

/// Bytes that may be under way in one direction of a connection.
const UNDER_WAY: usize = 256 << 10;

/// Bytes that are delivered at once at most.
const SEGMENT: usize = 16 << 10;

/// How often the ends of a connection look whether the other is there, and how long it may take to say so.
const PING: Duration = Duration::from_secs(15);
const PONG: Duration = Duration::from_secs(5);

thread_local! {
    static CURRENT: RefCell<Option<Network>> = const { RefCell::new(None) };
}

/// The network. Clones share it.
#[derive(Clone)]
pub struct Network {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Something about the ways between hosts has changed.
    changed: Notify,
}

struct State {
    chance: SmallRng,
    /// Who listens, by the name of the host.
    listening: BTreeMap<Arc<str>, Socket>,
    /// Starts that are over.
    dead: BTreeSet<Arc<str>>,
    /// Starts that are stopped.
    paused: BTreeSet<Arc<str>>,
    /// By host that sends and host that receives; any other way is fair.
    ways: BTreeMap<(Arc<str>, Arc<str>), Way>,
    connections: Vec<Connection>,
}

struct Socket {
    /// The start that listens.
    start: Arc<str>,
    /// What it does. Whoever calls a service gets any of the hosts that do it.
    service: Arc<str>,
    connections: mpsc::UnboundedSender<DuplexStream>,
}

struct Connection {
    client: Arc<str>,
    server: Arc<str>,
    cut: CancellationToken,
}

/// How what one host sends gets to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// How long it takes at least.
    pub least: Duration,
    /// How long it takes at most.
    pub most: Duration,
    /// Nothing gets through until this is over; what was sent is kept and delivered then.
    pub blocked: bool,
}

impl Default for Way {
    fn default() -> Self {
        Self { least: Duration::from_micros(200), most: Duration::from_millis(3), blocked: false }
    }
}

/// Where connections to a host arrive.
pub struct Listening {
    incoming: mpsc::UnboundedReceiver<DuplexStream>,
}

impl Listening {
    /// The next connection. After the host has died there is none any more.
    pub(crate) fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<DuplexStream> {
        match ready!(self.incoming.poll_recv(context)) {
            Some(pipe) => Poll::Ready(pipe),
            None => Poll::Pending,
        }
    }
}

impl Network {
    /// A network in which nothing is wrong.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = State {
            chance: SmallRng::seed_from_u64(seed),
            listening: BTreeMap::new(),
            dead: BTreeSet::new(),
            paused: BTreeSet::new(),
            ways: BTreeMap::new(),
            connections: Vec::new(),
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() }) }
    }

    /// Makes it the network of this thread: [`crate::channel`] to an address of [`Self::url`] goes through it.
    pub fn enter(&self) {
        CURRENT.set(Some(self.clone()));
    }

    /// The address by which `start`, a start of some host, calls `service`.
    #[must_use]
    pub fn url(start: &str, service: &str) -> String {
        format!("http://{service}.{start}")
    }

    /// Lets `start` take the connections to `host`, one of those that do what `service` is.
    #[must_use]
    pub fn listen(&self, service: &str, host: &str, start: &str) -> Listening {
        let (connections, incoming) = mpsc::unbounded_channel();
        let socket = Socket { start: start.into(), service: service.into(), connections };
        self.shared.state.lock().listening.insert(host.into(), socket);
        Listening { incoming }
    }

    /// Ends `start`: its connections break at once, and it makes and takes no further ones.
    pub fn kill(&self, start: &str) {
        let mut state = self.shared.state.lock();
        state.dead.insert(start.into());
        state.paused.remove(start);
        state.listening.retain(|_, socket| *socket.start != *start);
        state.cut(|connection| *connection.client == *start || *connection.server == *start);
    }

    /// Stops `start`: from now on it sends nothing, and what others send it is kept, until [`Self::go_on`]. What was
    /// sent before is on its way.
    pub fn pause(&self, start: &str) {
        self.shared.state.lock().paused.insert(start.into());
    }

    /// Ends [`Self::pause`].
    pub fn go_on(&self, start: &str) {
        self.shared.state.lock().paused.remove(start);
        self.shared.changed.notify_waiters();
    }

    /// Breaks every connection between two hosts, whoever made it. What was under way is lost.
    pub fn cut(&self, one: &str, other: &str) {
        let between = |connection: &Connection| {
            let ends = (host_of(&connection.client), host_of(&connection.server));
            ends == (one, other) || ends == (other, one)
        };
        self.shared.state.lock().cut(between);
    }

    /// Sets how what `sender` sends gets to `receiver`, both names of hosts.
    pub fn set_way(&self, sender: &str, receiver: &str, way: Way) {
        self.shared.state.lock().ways.insert((sender.into(), receiver.into()), way);
        self.shared.changed.notify_waiters();
    }

    /// Makes every way fair again.
    pub fn heal(&self) {
        self.shared.state.lock().ways.clear();
        self.shared.changed.notify_waiters();
    }

    /// Waits as long as something takes from one host to another, however long that is.
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

    /// Waits until `start` is not stopped.
    async fn runs(&self, start: &str) {
        loop {
            let changed = self.shared.changed.notified();
            if !self.shared.state.lock().paused.contains(start) {
                return;
            }
            changed.await;
        }
    }

    fn way(&self, sender: &str, receiver: &str) -> Way {
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
        let (client, near) = tokio::io::duplex(UNDER_WAY);
        let (far, server) = tokio::io::duplex(UNDER_WAY);
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
            let connection = Connection { client: start.clone(), server: listener.clone(), cut: cut.clone() };
            state.connections.push(connection);
            listener
        };
        tokio::spawn(self.carry((start, near), (listener, far), cut));
        Ok(TokioIo::new(client))
    }

    /// Carries what both ends say until they have said all or the connection is cut.
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
            // An end that is gone has nothing more to say, and the other notices.
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

impl State {
    /// One of the hosts that do what `service` is.
    fn any_host(&mut self, service: &str) -> Option<Arc<str>> {
        let hosts = self.listening.iter().filter(|(_, socket)| *socket.service == *service);
        let hosts: Vec<_> = hosts.map(|(host, _)| Arc::clone(host)).collect();
        hosts.choose(&mut self.chance).cloned()
    }

    fn cut(&mut self, whom: impl Fn(&Connection) -> bool) {
        self.connections.retain(|connection| {
            let cut = whom(connection);
            if cut {
                connection.cut.cancel();
            }
            !cut
        });
    }
}

/// The host of one of its starts.
fn host_of(start: &str) -> &str {
    match start.rsplit_once('-') {
        Some((host, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => start,
    }
}

/// The way to `uri` through the network of this thread, if it has one.
pub(crate) fn way(uri: &Uri) -> Option<Connector> {
    let network = CURRENT.with_borrow(Clone::clone)?;
    let (service, start) = uri.host()?.split_once('.')?;
    Some(Connector { network, start: start.into(), service: service.into() })
}

/// Makes the connections of one channel.
#[derive(Clone)]
pub(crate) struct Connector {
    network: Network,
    start: Arc<str>,
    service: Arc<str>,
}

impl Service<Uri> for Connector {
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

/// In virtual time nobody waits for a peer that vanished, and each ping is work.
pub(crate) fn unhurried(endpoint: Endpoint) -> Endpoint {
    endpoint.http2_keep_alive_interval(PING).keep_alive_timeout(PONG)
}
