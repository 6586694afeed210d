//! Connections to a part: how many there are, and when one is given up.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_io_timeout::TimeoutStream;
use tokio_stream::{Stream, StreamExt};

use crate::{
    mesh::listener::{Accepted, Listener},
    settings::LimitSettings,
};

/// Connections that were closed at once because there were too many.
const REFUSED: &str = "reveille_connections_refused_total";

/// Pause of accepting connections after a failure.
const AFTER_A_FAILURE: Duration = Duration::from_millis(50);

/// The connections that `listener` accepts, at most `most` at a time. Connections beyond the limit are closed at once,
/// so that their clients retry later instead of waiting in vain.
pub(super) fn accepted(
    mut listener: Listener,
    limits: &LimitSettings,
    most: u32,
) -> impl Stream<Item = io::Result<ServedConnection>> + use<> {
    metrics::describe_counter!(REFUSED, "Connections that were closed at once because there were too many");
    let places = Arc::new(Semaphore::new(most as usize));
    let silence = Duration::from_secs(limits.silence_seconds.into());
    let streams = futures_util::stream::poll_fn(move |context| listener.poll_accept(context).map(Some));
    streams.then(unhurried).filter_map(move |stream| match stream {
        Ok(stream) => match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => Some(Ok(ServedConnection::new(stream, place, silence))),
            Err(_) => {
                metrics::counter!(REFUSED).increment(1);
                None
            }
        },
        Err(error) => Some(Err(error)),
    })
}

/// Passes connections on, and pauses after a failure: a process without file descriptors would otherwise spin from one
/// failure to the next.
async fn unhurried(stream: io::Result<Accepted>) -> io::Result<Accepted> {
    if let Err(error) = &stream {
        tracing::warn!(%error, "cannot accept a connection");
        tokio::time::sleep(AFTER_A_FAILURE).await;
    }
    stream
}

/// A connection that ends when its client is silent, without even answers to pings.
pub(super) struct ServedConnection {
    stream: Pin<Box<TimeoutStream<Accepted>>>,
    _place: OwnedSemaphorePermit,
}

impl ServedConnection {
    fn new(stream: Accepted, place: OwnedSemaphorePermit, silence: Duration) -> Self {
        let mut stream = TimeoutStream::new(stream);
        stream.set_read_timeout(Some(silence));
        Self { stream: Box::pin(stream), _place: place }
    }
}

impl AsyncRead for ServedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_read(context, buffer)
    }
}

impl AsyncWrite for ServedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
