//! A connection whose client has to read available data at a least pace.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use chassis::mesh::bodies::Pace;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

/// Time between two checks of the pace, while data waits for the client.
const CHECK: Duration = Duration::from_millis(500);

/// A stream on which writing fails once the client takes less than it has to, see [`Pace::takes_enough`].
pub(crate) struct PacedStream<S> {
    stream: S,
    pace: Pace,
    /// Bytes that the client read in the present window, and the time for which others waited in it.
    taken: u64,
    waited: Duration,
    blocked: Option<Instant>,
    check: Pin<Box<Sleep>>,
}

impl<S> PacedStream<S> {
    /// Creates a stream that can be written while its client keeps `pace`.
    pub(crate) fn new(stream: S, pace: Pace) -> Self {
        let check = Box::pin(tokio::time::sleep(Duration::ZERO));
        Self { stream, pace, taken: 0, waited: Duration::ZERO, blocked: None, check }
    }

    /// Returns the inner stream.
    pub(crate) fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    fn judge(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(written) => {
                if let Some(since) = self.blocked.take() {
                    self.waited += since.elapsed();
                }
                self.taken += written.as_ref().map_or(0, |length| *length as u64);
                // A fast time long ago does not allow a long pause now.
                if self.taken >= self.pace.bytes_per_second * self.pace.grace.as_secs() {
                    (self.taken, self.waited) = (0, Duration::ZERO);
                }
                Poll::Ready(written)
            }
            Poll::Pending => self.poll_blocked(context),
        }
    }

    fn poll_blocked(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let since = *self.blocked.get_or_insert_with(|| {
            self.check.as_mut().reset(Instant::now() + CHECK);
            Instant::now()
        });
        loop {
            ready!(self.check.as_mut().poll(context));
            if !self.pace.takes_enough(self.taken, self.waited + since.elapsed()) {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.check.as_mut().reset(Instant::now() + CHECK);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PacedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PacedStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.judge(written, context)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const PACE: Pace =
        Pace { bytes_per_second: 1024, grace: Duration::from_secs(10), patience: Duration::from_secs(75) };

    /// Returns the seconds until a client is given up that reads `bytes` each second, of a hundred thousand.
    async fn given_up_after(bytes: usize) -> Option<u64> {
        let (ours, mut theirs) = duplex(4096);
        let mut ours = PacedStream::new(ours, PACE);
        let reading = tokio::spawn(async move {
            let mut part = vec![0; bytes];
            while bytes > 0 && theirs.read_exact(&mut part).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            std::future::pending::<()>().await;
        });
        let began = Instant::now();
        let written = ours.write_all(&[0; 100_000]).await;
        reading.abort();
        written.err().map(|_| began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn readers_that_take_too_little_are_given_up() {
        // The bytes that the system takes at first count: four seconds' worth.
        assert_eq!(given_up_after(0).await, Some(15));
        assert!(given_up_after(1).await.is_some_and(|seconds| seconds < 30));
        assert_eq!(given_up_after(2048).await, None);
    }
}
