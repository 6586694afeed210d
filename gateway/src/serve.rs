//! Connections: how many there may be, how long a client may take, and what is told to one that cannot be understood.

use std::{convert::Infallible, pin::Pin, sync::Arc, time::Duration};

use axum::{body::Body, extract::Request, response::Response};
use chassis::settings::Gateway;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt};

use crate::refusal::Refusal;

/// Most bytes of the head of a request. An address of 64 KiB leaves room for as much in headers, and then some.
const LARGEST_HEAD: usize = 256 << 10;

/// How long and how much is read, and thrown away, of what a client goes on sending after its answer: a connection
/// that is closed before takes the answer with it.
const LINGER: Duration = Duration::from_secs(2);
const MOST_LEFT_OVER: u64 = 64 << 20;

/// How long a connection may still begin to ask when somebody waits for its place.
const ROOM: Duration = Duration::from_millis(250);

/// How long to wait when the process can have no further connections.
const EXHAUSTED: Duration = Duration::from_secs(1);

/// Serves `app` until shutdown; then answers what was asked already.
pub(crate) async fn serve<A>(listener: TcpListener, app: A, settings: Gateway, shutdown: CancellationToken)
where
    A: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Unpin
        + 'static,
{
    let places = Arc::new(Semaphore::new(settings.connections as usize));
    let patience = Duration::from_secs(settings.patience_seconds.into());
    let mut connections = JoinSet::new();
    let (crowded, _) = watch::channel(());
    let mut was_full = false;
    while let Some((stream, place)) = next(&listener, &places, &crowded, &mut was_full, &shutdown).await {
        let (shutdown, crowded) = (shutdown.clone(), crowded.subscribe());
        let connection = Connection { app: app.clone(), patience, shutdown, crowded };
        connections.spawn(async move {
            connection.serve(stream).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// The next connection, once there is a place for it; `None` at shutdown. Where there is none, connections on which
/// nothing is asked make room: who only keeps them keeps nobody else out, least of all those who ask how we are.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    crowded: &watch::Sender<()>,
    was_full: &mut bool,
    shutdown: &CancellationToken,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let accepted = async {
        let stream = accept(listener).await;
        let full = places.available_permits() == 0;
        if full && !*was_full {
            tracing::warn!("there are as many connections as gateway.connections allows; further ones wait");
        }
        if full {
            crowded.send_replace(());
        }
        *was_full = full;
        let place = places.clone().acquire_owned().await.expect("nobody closes the places");
        (stream, place)
    };
    tokio::select! {
        () = shutdown.cancelled() => None,
        accepted = accepted => Some(accepted),
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(EXHAUSTED).await;
            }
        }
    }
}

struct Connection<A> {
    app: A,
    patience: Duration,
    shutdown: CancellationToken,
    /// Changes when somebody waits for a place.
    crowded: watch::Receiver<()>,
}

impl<A> Connection<A>
where
    A: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Unpin
        + 'static,
{
    async fn serve(mut self, stream: TcpStream) {
        // Without this small answers wait up to 40 ms for an acknowledgement. A connection that refuses is
        // closed already.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "connection closed before it was served");
        }
        let app = self.app;
        let answer =
            service_fn(move |request: hyper::Request<Incoming>| app.clone().oneshot(request.map(Body::new)));
        let mut stream = TimeoutStream::new(Refusal::around(stream));
        stream.set_write_timeout(Some(self.patience));
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.patience)
            .max_buf_size(LARGEST_HEAD)
            .serve_connection(TokioIo::new(Box::pin(stream)), answer);
        let leave = async {
            tokio::select! {
                () = self.shutdown.cancelled() => {}
                _ = self.crowded.changed() => tokio::time::sleep(ROOM).await,
            }
        };
        // What was sent already is read first, and answered.
        let ended = tokio::select! {
            biased;
            ended = &mut connection => Some(ended),
            () = leave => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                // It ends now, or with the answer to what was asked.
                Pin::new(&mut connection).graceful_shutdown();
                (&mut connection).await
            }
        };
        if let Err(error) = &ended {
            tracing::debug!(%error, "a connection ended badly");
        }
        let mut stream = connection.into_parts().io.into_inner();
        linger(stream.as_mut().get_pin_mut().get_mut().stream()).await;
    }
}

/// Waits until the client has closed its end, or has had its time.
async fn linger(stream: &mut TcpStream) {
    let mut left_over = stream.take(MOST_LEFT_OVER);
    let mut sink = tokio::io::sink();
    let drained = tokio::io::copy(&mut left_over, &mut sink);
    // However it ends, the connection is done.
    let _: Result<std::io::Result<u64>, _> = tokio::time::timeout(LINGER, drained).await;
}
