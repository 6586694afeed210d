//! Connections: their number, the time that their clients have, and their end.

use std::{
    collections::HashMap,
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use chassis::{
    mesh::{
        admission::hold,
        bodies::Pace,
        tls::{ClientCertificate, ServerTls},
    },
    process::{memory::leave_room, pause},
};
use http::{HeaderMap, Method, Version, header::HOST};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_rustls::server::TlsStream;
use tokio_util::{either::Either, sync::CancellationToken};
use tower::{Service, ServiceExt};

use super::{paced::PacedStream, problem::RequestProblem, refusal::RefusalStream};

/// Most bytes of the head of a request. An address of 64 KiB leaves room for as much in headers, and then some.
const LARGEST_HEAD: usize = 256 << 10;

/// Time for which bytes that a client sends after its answer are read and dropped: closing the connection earlier would
/// lose the answer.
const LINGER: Duration = Duration::from_secs(2);
/// Most bytes that are dropped.
const MOST_LEFT_OVER: u64 = 64 << 20;

/// Time in which a connection may still begin a request when another needs its place.
const ROOM: Duration = Duration::from_millis(250);

/// Pause of accepting connections after a failure.
const AFTER_A_FAILURE: Duration = Duration::from_millis(50);

/// Part of the idle connections that closes after a failure to accept one: an eighth.
const SHARE_CLOSED: usize = 8;

/// Connections beside all places: while every place is at work, these still answer probes, give firmware its script,
/// and refuse other requests with the time to retry.
const SPARE: usize = 16;

/// Most spare connections that stay open after a refusal until their client has read it. Further ones close at once, so that
/// a probe need not wait.
const LINGERING: usize = 16;

/// Time that a request on a spare connection waits for a place.
const SPARE_WAIT: Duration = Duration::from_millis(50);
/// Time for the head of a request on a spare connection.
const SPARE_HEAD: Duration = Duration::from_secs(1);

/// Bounds of connections and their clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// Most connections with a place.
    pub connections: u32,
    /// Time for the head of a request.
    pub patience: Duration,
    /// Least pace at which a client has to take an answer.
    pub pace: Pace,
}

/// Listener, and its TLS; `None`: connections are not encrypted.
pub(crate) struct ServedListener {
    pub listener: TcpListener,
    pub tls: Option<ServerTls>,
}

/// Serves `app` until shutdown; then answers the requests that have arrived. `is_vital` selects requests that need no
/// place.
pub(crate) async fn serve<A>(
    ServedListener { listener, tls }: ServedListener,
    app: A,
    is_vital: fn(&Method, &str) -> bool,
    limits: ConnectionLimits,
    shutdown: CancellationToken,
) where
    A: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Unpin
        + 'static,
{
    let places = ConnectionPlaces::new(limits.connections);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = places.next(&listener) => accepted,
        };
        let (stream, seat) = accepted;
        let connection = ClientConnection {
            app: app.clone(),
            tls: tls.clone(),
            is_vital,
            limits,
            shutdown: shutdown.clone(),
            places: places.clone(),
        };
        connections.spawn(connection.serve(stream, seat));
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// State of all connections. Clones share it.
#[derive(Clone)]
struct ConnectionPlaces {
    places: Arc<Semaphore>,
    spare: Arc<Semaphore>,
    lingering: Arc<Semaphore>,
    open: Arc<Mutex<HashMap<u64, Arc<ConnectionActivity>>>>,
    began: Instant,
}

/// Last activity of a connection.
struct ConnectionActivity {
    /// Milliseconds, and one, at which its last request was answered or the connection was accepted; 0: a request is
    /// under way.
    idle_since: AtomicU64,
    /// Whether the connection has a place that another one can take over.
    has_place: bool,
    /// Cancelled when another connection needs the place.
    leave: CancellationToken,
}

/// The right to be a connection.
enum ConnectionSeat {
    Place(OwnedSemaphorePermit),
    Spare(OwnedSemaphorePermit),
}

impl ConnectionPlaces {
    fn new(most: u32) -> Self {
        Self {
            places: Arc::new(Semaphore::new(most as usize)),
            spare: Arc::new(Semaphore::new(SPARE)),
            lingering: Arc::new(Semaphore::new(LINGERING)),
            open: Arc::default(),
            began: Instant::now(),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// Returns the next connection. If every place is taken, the idlest connection makes room; if all are at work, the
    /// new connection is spare.
    async fn next(&self, listener: &TcpListener) -> (TcpStream, ConnectionSeat) {
        let stream = self.accept(listener).await;
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return (stream, ConnectionSeat::Place(place));
        }
        if let Some(place) = self.make_room().await {
            return (stream, ConnectionSeat::Place(place));
        }
        let spare = Arc::clone(&self.spare).acquire_owned().await.expect("the spare places are never closed");
        (stream, ConnectionSeat::Spare(spare))
    }

    async fn accept(&self, listener: &TcpListener) -> TcpStream {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => return stream,
                Err(error) => {
                    // The process may have no file descriptor left.
                    let closed = self.close_idlest();
                    tracing::warn!(%error, closed, "connections cannot be accepted: idle ones are closed");
                    tokio::time::sleep(AFTER_A_FAILURE).await;
                }
            }
        }
    }

    /// Closes a share of the idle connections, those first that were idle longest. Returns their number. One at a time
    /// would let a crowd of new connections wait in line.
    fn close_idlest(&self) -> usize {
        let open = self.open.lock();
        let mut idle: Vec<_> = open.values().filter_map(idle).collect();
        idle.sort_unstable_by_key(|(since, _)| *since);
        let closed = idle.len().div_ceil(SHARE_CLOSED);
        idle.iter().take(closed).for_each(|(_, one)| one.leave.cancel());
        closed
    }

    /// Returns the place of the idlest connection; `None` if all that have one are at work.
    async fn make_room(&self) -> Option<OwnedSemaphorePermit> {
        let (since, idlest) = self.idlest()?;
        let idle = Duration::from_millis(self.now().saturating_sub(since));
        tokio::time::sleep(ROOM.saturating_sub(idle)).await;
        // A request may have begun in the meantime; the connection then closes with its answer.
        idlest.leave.cancel();
        let place = Arc::clone(&self.places).acquire_owned();
        let place = tokio::time::timeout(ROOM, place).await.ok()?;
        Some(place.expect("the places are never closed"))
    }

    fn idlest(&self) -> Option<(u64, Arc<ConnectionActivity>)> {
        let open = self.open.lock();
        let with_place = open.values().filter(|one| one.has_place).filter_map(idle);
        let (since, idlest) = with_place.min_by_key(|(since, _)| *since)?;
        Some((since, Arc::clone(idlest)))
    }

    /// Lists a connection until the returned value is dropped.
    fn enlist(&self, has_place: bool) -> EnlistedConnection {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let idle_since = AtomicU64::new(self.now());
        let activity =
            Arc::new(ConnectionActivity { idle_since, has_place, leave: CancellationToken::new() });
        self.open.lock().insert(number, Arc::clone(&activity));
        EnlistedConnection { places: self.clone(), number, activity }
    }
}

/// Returns a connection with the time since when it is idle; `None`: it is at work, or was asked to leave.
fn idle(one: &Arc<ConnectionActivity>) -> Option<(u64, &Arc<ConnectionActivity>)> {
    let since = one.idle_since.load(Ordering::Acquire);
    (since > 0 && !one.leave.is_cancelled()).then_some((since, one))
}

struct EnlistedConnection {
    places: ConnectionPlaces,
    number: u64,
    activity: Arc<ConnectionActivity>,
}

impl Drop for EnlistedConnection {
    fn drop(&mut self) {
        let mut open = self.places.open.lock();
        open.remove(&self.number);
        leave_room(&mut open);
    }
}

/// A request under way: its connection is at work until the answer was taken.
struct AtWork {
    activity: Arc<ConnectionActivity>,
    places: ConnectionPlaces,
    /// The place of a request on a spare connection.
    _place: Option<OwnedSemaphorePermit>,
}

impl AtWork {
    fn begin(activity: &Arc<ConnectionActivity>, places: &ConnectionPlaces) -> Self {
        activity.idle_since.store(0, Ordering::Release);
        Self { activity: Arc::clone(activity), places: places.clone(), _place: None }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.activity.idle_since.store(self.places.now(), Ordering::Release);
    }
}

struct ClientConnection<A> {
    app: A,
    tls: Option<ServerTls>,
    is_vital: fn(&Method, &str) -> bool,
    limits: ConnectionLimits,
    shutdown: CancellationToken,
    places: ConnectionPlaces,
}

impl<A> ClientConnection<A>
where
    A: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Unpin
        + 'static,
{
    async fn serve(self, stream: TcpStream, seat: ConnectionSeat) {
        // Without this option small answers wait up to 40 ms for an acknowledgement. A connection that refuses the
        // option is closed already.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "connection closed before it was served");
        }
        let Self { app, tls, is_vital, limits, shutdown, places } = self;
        let (place, spare) = match seat {
            ConnectionSeat::Place(place) => (Some(place), None),
            ConnectionSeat::Spare(spare) => (None, Some(spare)),
        };
        let is_spare = spare.is_some();
        let patience = if is_spare { SPARE_HEAD } else { limits.patience };
        let spare = Arc::new(Mutex::new(spare));
        let (own_spare, lingering) = (Arc::clone(&spare), Arc::clone(&places.lingering));
        let enlisted = places.enlist(place.is_some());
        let activity = Arc::clone(&enlisted.activity);
        let secured = tokio::select! {
            secured = handshake(stream, tls, patience) => secured,
            () = shutdown.cancelled() => None,
            () = activity.leave.cancelled() => None,
        };
        let Some(ClientStream { stream, certificate }) = secured else { return };
        let own = Arc::clone(&activity);
        let answer = service_fn(move |mut request: hyper::Request<Incoming>| {
            if let Some(certificate) = &certificate {
                request.extensions_mut().insert(certificate.clone());
            }
            let needs_place = is_spare && !is_vital(request.method(), request.uri().path());
            let spare = needs_place.then(|| Arc::clone(&spare));
            respond(app.clone(), request, AtWork::begin(&own, &places), spare)
        });
        let stream = PacedStream::new(RefusalStream::around(stream), limits.pace);
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(patience)
            .keep_alive(!is_spare)
            .max_buf_size(LARGEST_HEAD)
            .serve_connection(TokioIo::new(stream), answer);
        // Requests that have arrived are read first, and answered.
        let ended = tokio::select! {
            biased;
            ended = &mut connection => Some(ended),
            () = shutdown.cancelled() => None,
            () = activity.leave.cancelled() => None,
        };
        let ended = match ended {
            Some(ended) => Some(ended),
            None => {
                // The connection ends now, or with the answer to the request under way.
                Pin::new(&mut connection).graceful_shutdown();
                let idle = until_idle(&activity);
                tokio::select! {
                    biased;
                    ended = &mut connection => Some(ended),
                    () = idle, if activity.leave.is_cancelled() => None,
                }
            }
        };
        if let Some(Err(error)) = &ended {
            tracing::debug!(%error, "a connection ended badly");
        }
        // A spare connection that never got a place was refused, answered a probe, or sent nothing.
        let was_spare = own_spare.lock().take().is_some();
        let seat = if was_spare { lingering.try_acquire_owned().ok() } else { None };
        let may_linger = !was_spare || seat.is_some() && matches!(ended, Some(Ok(())));
        // A connection that had to make room was idle: its last answer has been taken.
        if may_linger && !activity.leave.is_cancelled() {
            let mut stream = connection.into_parts().io.into_inner();
            linger(stream.get_mut().stream()).await;
        }
        drop((place, seat, enlisted));
    }
}

/// Connection, with or without TLS.
struct ClientStream {
    stream: Either<TcpStream, Box<TlsStream<TcpStream>>>,
    /// Certificate of the client, which is an extension of its requests.
    certificate: Option<ClientCertificate>,
}

/// Performs the TLS handshake; `None` if it fails or takes longer than `patience`.
async fn handshake(stream: TcpStream, tls: Option<ServerTls>, patience: Duration) -> Option<ClientStream> {
    let Some(tls) = tls else {
        return Some(ClientStream { stream: Either::Left(stream), certificate: None });
    };
    let accepted = tls.accept(stream, patience).await?;
    Some(ClientStream { stream: Either::Right(Box::new(accepted.stream)), certificate: accepted.certificate })
}

/// Answers a request. On a spare connection it needs a place, which it exchanges for the right to be `spare`.
async fn respond<A>(
    app: A,
    request: hyper::Request<Incoming>,
    mut at_work: AtWork,
    spare: Option<Arc<Mutex<Option<OwnedSemaphorePermit>>>>,
) -> Result<Response, Infallible>
where
    A: Service<Request, Response = Response, Error = Infallible, Future: Send>,
{
    if let Some(reason) = host_trouble(request.version(), request.headers()) {
        return Ok(RequestProblem::bad_request(reason).into_response());
    }
    if let Some(spare) = spare {
        let place = Arc::clone(&at_work.places.places).acquire_owned();
        match tokio::time::timeout(SPARE_WAIT, place).await {
            Ok(place) => at_work._place = place.ok(),
            Err(_) => return Ok(crowded().into_response()),
        }
        spare.lock().take();
    }
    let answer = app.oneshot(request.map(Body::new)).await;
    answer.map(|answer| answer.map(|body| hold(body, at_work)))
}

/// Waits until a connection that has to make room is not at work: its client sends a head by the byte, or nothing.
async fn until_idle(activity: &ConnectionActivity) {
    while activity.idle_since.load(Ordering::Acquire) == 0 {
        tokio::time::sleep(ROOM).await;
    }
}

/// Returns the defect of the Host header of a request. HTTP/1.1 requires the header, earlier versions did not know it,
/// and no version allows two.
fn host_trouble(version: Version, headers: &HeaderMap) -> Option<&'static str> {
    match headers.get_all(HOST).iter().count() {
        0 if version == Version::HTTP_11 => Some("the request has no Host header"),
        0 | 1 => None,
        _ => Some("the request has more than one Host header"),
    }
}

fn crowded() -> RequestProblem {
    let reason = "as many connections are at work as the limits allow".to_owned();
    RequestProblem::busy(reason, pause::retry_after())
}

/// Waits until the client has closed its end, or has had its time.
async fn linger(stream: &mut (impl AsyncRead + Unpin)) {
    let mut left_over = stream.take(MOST_LEFT_OVER);
    let mut sink = tokio::io::sink();
    let drained = tokio::io::copy(&mut left_over, &mut sink);
    // The connection is done, however the copy ended.
    let _: Result<std::io::Result<u64>, _> = tokio::time::timeout(LINGER, drained).await;
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use http::HeaderValue;

    use super::*;

    #[test]
    fn idlest_connections_close_and_those_at_work_stay() {
        let places = ConnectionPlaces::new(64);
        let all: Vec<_> = (0..20).map(|_| places.enlist(true)).collect();
        // The first is at work, the second was idle for longest.
        all.iter().zip(0..).for_each(|(one, since)| one.activity.idle_since.store(since, Ordering::Release));
        for (closed, gone) in [(3, vec![1, 2, 3]), (2, vec![1, 2, 3, 4, 5])] {
            assert_eq!(places.close_idlest(), closed);
            let leaves = |index: &usize| all[*index].activity.leave.is_cancelled();
            assert_eq!((0..all.len()).filter(leaves).collect::<Vec<_>>(), gone);
        }
    }

    #[test]
    fn only_connections_with_a_place_make_room() {
        let places = ConnectionPlaces::new(64);
        let spare = places.enlist(false);
        assert!(places.idlest().is_none());
        let placed = places.enlist(true);
        spare.activity.idle_since.store(1, Ordering::Release);
        let (_, idlest) = places.idlest().unwrap();
        assert!(Arc::ptr_eq(&idlest, &placed.activity));
    }

    #[test]
    fn requests_have_one_host() {
        let mut rows = String::new();
        for version in [Version::HTTP_10, Version::HTTP_11] {
            for hosts in [&[][..], &["a"], &[""], &["a", "a"], &["a", "b", "c"]] {
                let mut headers = HeaderMap::new();
                for host in hosts {
                    headers.append(HOST, HeaderValue::from_static(host));
                }
                let trouble = host_trouble(version, &headers).unwrap_or("-");
                rows += &format!("{version:?} {hosts:?}: {trouble}\n");
            }
        }
        expect![[r#"
            HTTP/1.0 []: -
            HTTP/1.0 ["a"]: -
            HTTP/1.0 [""]: -
            HTTP/1.0 ["a", "a"]: the request has more than one Host header
            HTTP/1.0 ["a", "b", "c"]: the request has more than one Host header
            HTTP/1.1 []: the request has no Host header
            HTTP/1.1 ["a"]: -
            HTTP/1.1 [""]: -
            HTTP/1.1 ["a", "a"]: the request has more than one Host header
            HTTP/1.1 ["a", "b", "c"]: the request has more than one Host header
        "#]]
        .assert_eq(&rows);
    }
}
