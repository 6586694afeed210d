//! Connections to one of several addresses of the same part.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;
use tonic::codegen::http::Uri;
use tower::Service;

use crate::mesh::tls::ClientTls;

/// Connection, with or without TLS.
type PartStream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Connects to the first address of a list that answers. Each attempt begins after the last address, so that the next
/// attempt leaves an address that accepts connections and never answers.
#[derive(Debug, Clone)]
pub(super) struct AddressConnector {
    all: Arc<[Uri]>,
    next: Arc<AtomicUsize>,
    patience: Duration,
    /// TLS for the encrypted addresses; `None` if there are none.
    tls: Option<ClientTls>,
}

impl AddressConnector {
    /// Begins with a random address, so that clients that start together are spread over all. Each address gets
    /// `patience` to answer.
    pub(super) fn new(all: Vec<Uri>, patience: Duration, tls: Option<ClientTls>) -> Self {
        let first = rand::random_range(0..all.len().max(1));
        Self { all: all.into(), next: Arc::new(AtomicUsize::new(first)), patience, tls }
    }

    async fn connect(self) -> io::Result<PartStream> {
        let count = self.all.len().max(1);
        let first = self.next.load(Ordering::Relaxed);
        let mut failure = io::Error::other("there is no address to connect to");
        for place in (first..first + count).map(|place| place % count) {
            let Some(address) = self.all.get(place) else { break };
            match timeout(self.patience, connect(address, self.tls.as_ref())).await {
                Ok(Ok(stream)) => {
                    self.next.store((place + 1) % count, Ordering::Relaxed);
                    return Ok(stream);
                }
                Ok(Err(error)) => failure = io::Error::new(error.kind(), format!("{address}: {error}")),
                Err(_) => failure = io::Error::new(io::ErrorKind::TimedOut, format!("{address}: silent")),
            }
        }
        Err(failure)
    }
}

/// Returns whether connections to an address are encrypted.
pub(super) fn is_encrypted(address: &Uri) -> bool {
    address.scheme_str() == Some("https")
}

async fn connect(address: &Uri, tls: Option<&ClientTls>) -> io::Result<PartStream> {
    let host = address.host().unwrap_or_default();
    let usual = if is_encrypted(address) { 443 } else { 80 };
    let stream = TcpStream::connect((host, address.port_u16().unwrap_or(usual))).await?;
    // Nagle's delay would add 40 ms to small requests.
    stream.set_nodelay(true)?;
    match tls.filter(|_| is_encrypted(address)) {
        Some(tls) => Ok(Either::Right(Box::new(tls.connect(host, stream).await?))),
        None => Ok(Either::Left(stream)),
    }
}

impl Service<Uri> for AddressConnector {
    type Response = TokioIo<PartStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let addresses = self.clone();
        Box::pin(async move { addresses.connect().await.map(TokioIo::new) })
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_next_that_answers_is_taken() {
        let mut listeners = Vec::new();
        for _ in 0..3 {
            listeners.push(TcpListener::bind("127.0.0.1:0").await.unwrap());
        }
        let ports: Vec<u16> = listeners.iter().map(|one| one.local_addr().unwrap().port()).collect();
        drop(listeners.remove(1));
        let all = ports.iter().map(|port| format!("http://127.0.0.1:{port}").parse().unwrap()).collect();
        let addresses = AddressConnector::new(all, Duration::from_secs(5), None);
        addresses.next.store(0, Ordering::Relaxed);
        let mut taken = Vec::new();
        for _ in 0..4 {
            let Either::Left(stream) = addresses.clone().connect().await.unwrap() else {
                panic!("encrypted")
            };
            taken.push(stream.peer_addr().unwrap().port());
        }
        assert_eq!(taken, [ports[0], ports[2], ports[0], ports[2]]);
        drop(listeners);
        let failure = addresses.connect().await.unwrap_err();
        assert_eq!(failure.kind(), io::ErrorKind::ConnectionRefused, "{failure}");
    }
}
