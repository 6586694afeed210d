//! Servers to be called.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chassis::settings;
use tokio::{
    io::{AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use upstream::Peer;

/// A server that ends with the test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Serves `router`.
    pub(crate) async fn of(router: axum::Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, connections: Arc::default(), task }
    }

    /// Hands each connection to `talk`, after the head of a request was read from it.
    pub(crate) async fn raw<F>(talk: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                read_head(&mut connection).await;
                tokio::spawn(talk(connection));
            }
        });
        Self { address, connections, task }
    }

    /// Sends a greeting that is not TLS before it reads.
    pub(crate) async fn greets(greeting: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                say(&mut connection, greeting).await;
            }
        });
        Self { address, connections: Arc::default(), task }
    }

    /// Answers every request with these bytes and closes.
    pub(crate) async fn says(answer: &'static [u8]) -> Self {
        Self::raw(move |mut connection| async move { say(&mut connection, answer).await }).await
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn settings(&self) -> settings::Peer {
        settings(&format!("http://{}/v2", self.address))
    }

    /// Settings with short deadlines, for tests that wait for them.
    pub(crate) fn hasty(&self) -> settings::Peer {
        settings::Peer {
            connect_seconds: 0.1,
            answer_seconds: 0.2,
            total_seconds: 0.5,
            calls_in_flight: 2,
            ..self.settings()
        }
    }

    pub(crate) fn peer(&self) -> Peer {
        Peer::new("HSM", &self.settings()).unwrap()
    }
}

/// Settings for a peer at `url`, with deadlines long enough for a busy machine.
pub(crate) fn settings(url: &str) -> settings::Peer {
    settings::Peer {
        url: url.to_owned(),
        plain_http: true,
        connect_seconds: 10.0,
        answer_seconds: 10.0,
        total_seconds: 20.0,
        largest_answer: 1 << 20,
        ..chassis::Settings::default().inventory.hsm
    }
}

/// Writes `bytes`; the client may have closed the connection.
pub(crate) async fn say(connection: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    if connection.write_all(bytes).await.is_ok() && connection.flush().await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn read_head(connection: &mut TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && matches!(connection.read(&mut byte).await, Ok(1)) {
        head.push(byte[0]);
    }
}

/// Replaces the parts of a text that differ between runs: addresses and times.
pub(crate) fn steady(text: &str, address: SocketAddr) -> String {
    let text = text.replace(&address.to_string(), "ADDRESS");
    match text.split_once(" since ") {
        Some((before, after)) if !after.starts_with("TIME") => {
            let (time, rest) = after.split_at("2026-11-20T12:00:00Z".len());
            assert!(time.ends_with('Z') && time.as_bytes()[10] == b'T', "{text}");
            format!("{before} since TIME{rest}")
        }
        Some(_) | None => text,
    }
}
