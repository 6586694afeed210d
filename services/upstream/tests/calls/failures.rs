//! Peers that do not work.

use std::{
    fmt::Write as _,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{StatusCode, header::RETRY_AFTER},
    routing::get,
};
use chassis::settings;
use expect_test::expect;
use tokio::{io::AsyncWriteExt, net::TcpStream};
use upstream::{Failure, FailureKind, Peer, Request};

use crate::server::{Server, say, settings, steady};

/// Requests a JSON document and returns the failure.
async fn ask(peer: &Peer) -> Failure {
    let failure = peer.json::<serde_json::Value>(Request::get("nodes", "/nodes?s3cret")).await.unwrap_err();
    assert!(!failure.text.contains("s3cret"));
    failure
}

async fn hang(_connection: TcpStream) {
    std::future::pending().await
}

/// Sends one byte every 20 ms, which no limit of a single read would notice.
async fn drip(mut connection: TcpStream) {
    say(&mut connection, b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
    while connection.write_all(b" ").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn drip_head(mut connection: TcpStream) {
    while connection.write_all(b"H").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Closes with data of the client unread and no time to linger, which the client sees as a reset.
async fn reset(connection: TcpStream) {
    connection.set_zero_linger().unwrap();
}

async fn break_off(mut connection: TcpStream) {
    say(&mut connection, b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"a\":").await;
}

#[tokio::test]
async fn a_peer_that_takes_too_long_is_contained() {
    let servers = [
        ("accepts and never answers", Server::raw(hang).await),
        ("one byte at a time", Server::raw(drip).await),
        ("one byte of a head at a time", Server::raw(drip_head).await),
    ];
    let mut table = String::new();
    for (what, server) in servers {
        let began = Instant::now();
        let failure = ask(&Peer::new("HSM", &server.hasty()).unwrap()).await;
        assert!(began.elapsed() < Duration::from_secs(3), "{what} took {:?}", began.elapsed());
        let text = steady(&failure.text, server.address);
        writeln!(table, "{what} | {} | {text}", failure.kind.word()).unwrap();
    }
    expect![[r#"
        accepts and never answers | ambiguous | HSM at ADDRESS (failing since TIME: no answer within 200ms)
        one byte at a time | ambiguous | HSM at ADDRESS (failing since TIME: no whole answer within 500ms)
        one byte of a head at a time | ambiguous | HSM at ADDRESS (failing since TIME: no answer within 200ms)
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn every_other_failure_has_a_text() {
    let servers = [
        ("resets after the request", Server::raw(reset).await),
        ("breaks off within the body", Server::raw(break_off).await),
        ("closes without an answer", Server::says(b"").await),
        ("is no HTTP server", Server::says(b"SSH-2.0-OpenSSH_9.2\r\n").await),
        ("claims a large body", Server::says(b"HTTP/1.1 200 OK\r\ncontent-length: 524288000\r\n\r\n[").await),
        ("malformed JSON", Server::says(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n[1,").await),
        ("not UTF-8", Server::says(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n\"\xff\xfe\"").await),
        ("an empty answer", Server::says(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await),
        ("500", Server::says(b"HTTP/1.1 500 Oops\r\ncontent-length: 4\r\n\r\noops").await),
        ("503", Server::says(b"HTTP/1.1 503 Later\r\ncontent-length: 0\r\n\r\n").await),
        (
            "503, for a while",
            Server::says(b"HTTP/1.1 503 Later\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n").await,
        ),
        ("429", Server::says(b"HTTP/1.1 429 Slowly\r\ncontent-length: 0\r\n\r\n").await),
    ];
    let mut table = String::new();
    for (what, server) in servers {
        let failure = ask(&server.peer()).await;
        let text = steady(&failure.text, server.address);
        writeln!(table, "{what} | {} | {text}", failure.kind.word()).unwrap();
    }
    expect![[r#"
        resets after the request | ambiguous | HSM at ADDRESS (failing since TIME: Connection reset by peer (os error 104))
        breaks off within the body | ambiguous | HSM at ADDRESS (failing since TIME: end of file before message length reached)
        closes without an answer | ambiguous | HSM at ADDRESS (failing since TIME: connection closed before message completed)
        is no HTTP server | ambiguous | HSM at ADDRESS (failing since TIME: invalid HTTP version parsed)
        claims a large body | ambiguous | HSM at ADDRESS (failing since TIME: the answer is larger than 1048576 bytes)
        malformed JSON | ambiguous | HSM at ADDRESS (failing since TIME: not the JSON that was expected: EOF while parsing a value at line 1 column 3)
        not UTF-8 | ambiguous | HSM at ADDRESS (failing since TIME: not the JSON that was expected: invalid unicode code point at line 1 column 2)
        an empty answer | ambiguous | HSM at ADDRESS (failing since TIME: not the JSON that was expected: EOF while parsing a value at line 1 column 0)
        500 | ambiguous | HSM at ADDRESS (failing since TIME: 500 Internal Server Error: oops)
        503 | ambiguous | HSM at ADDRESS (failing since TIME: 503 Service Unavailable)
        503, for a while | unreachable | HSM at ADDRESS (failing since TIME: 503 Service Unavailable)
        429 | unreachable | HSM at ADDRESS (failing since TIME: 429 Too Many Requests)
    "#]].assert_eq(&table);
}

#[tokio::test]
async fn failures_without_effect_are_distinguished() {
    let closed = SocketAddr::from(([127, 0, 0, 1], 1));
    let silent = Server::raw(hang).await;
    let plain = Server::greets(b"SSH-2.0-OpenSSH_9.2\r\n").await;
    let mut table = String::new();
    for (what, url, address) in [
        ("nobody listens", format!("http://{closed}"), closed),
        ("never shakes hands", format!("https://{}", silent.address), silent.address),
        ("no TLS", format!("https://{}", plain.address), plain.address),
    ] {
        let settings = settings::Peer { connect_seconds: 0.3, ..settings(&url) };
        let failure = ask(&Peer::new("HSM", &settings).unwrap()).await;
        assert_eq!(failure.kind, FailureKind::Unreachable, "{what}: {failure}");
        writeln!(table, "{what} | {}", steady(&failure.text, address)).unwrap();
    }
    expect![[r#"
        nobody listens | HSM at ADDRESS (failing since TIME: Connection refused (os error 111))
        never shakes hands | HSM at ADDRESS (failing since TIME: no connection within 300ms)
        no TLS | HSM at ADDRESS (failing since TIME: the peer does not speak TLS at this port; its url may have to begin with http://)
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn a_large_body_costs_no_more_memory_than_allowed() {
    let sent = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent);
    let endless = move || async move {
        let chunk = Bytes::from(vec![b' '; 64 << 10]);
        let chunks = (0..(500 << 20) / chunk.len()).map(move |_| {
            count.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            Ok::<_, std::io::Error>(chunk.clone())
        });
        Body::from_stream(futures_util::stream::iter(chunks))
    };
    let server = Server::of(Router::new().route("/v2/nodes", get(endless))).await;
    let failure = ask(&server.peer()).await;
    assert_eq!(failure.kind, FailureKind::Ambiguous);
    expect!["HSM at ADDRESS (failing since TIME: the answer is larger than 1048576 bytes)"]
        .assert_eq(&steady(&failure.text, server.address));
    // Bytes that were sent and not read fill kernel buffers.
    assert!(sent.load(Ordering::Relaxed) < 32 << 20, "{sent:?} bytes were sent");
}

#[tokio::test]
async fn a_circuit_opens_repeats_its_error_and_closes() {
    let calls = Arc::new(AtomicUsize::new(0));
    let status = Arc::new(AtomicUsize::new(500));
    let count = Arc::clone(&calls);
    let now = Arc::clone(&status);
    let answer = move || async move {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let status = u16::try_from(now.load(Ordering::Relaxed)).unwrap();
        (StatusCode::from_u16(status).unwrap(), format!("\"answer {number}\""))
    };
    let router = Router::new().route("/v2/nodes", get(answer)).route("/v2/other", get(async || "1"));
    let server = Server::of(router).await;
    let peer = server.peer();
    let first = ask(&peer).await;
    for _ in 0..20 {
        let failure = ask(&peer).await;
        assert_eq!(failure.text, first.text, "the text is that of the first failure");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 3, "the circuit opens after three failures");
    let failure = ask(&peer).await;
    assert_eq!((failure.kind, failure.status), (FailureKind::Unreachable, None));
    assert!(peer.call(Request::get("other", "/other")).await.is_ok(), "other operations go on");
    status.store(200, Ordering::Relaxed);
    let began = Instant::now();
    while peer.call(Request::get("nodes", "/nodes")).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(calls.load(Ordering::Relaxed), 4, "one probe was enough");
}

#[tokio::test]
async fn a_requested_pause_holds_back_calls() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let answer = move || async move {
        match count.fetch_add(1, Ordering::Relaxed) {
            0 => (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "1")], "\"slowly\""),
            _ => (StatusCode::OK, [(RETRY_AFTER, "0")], "1"),
        }
    };
    let server = Server::of(Router::new().route("/v2/nodes", get(answer))).await;
    let peer = server.peer();
    let began = Instant::now();
    let failure = ask(&peer).await;
    assert_eq!(
        (failure.kind, failure.status),
        (FailureKind::Unreachable, Some(StatusCode::TOO_MANY_REQUESTS))
    );
    while peer.call(Request::get("nodes", "/nodes")).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn calls_wait_for_a_slot_within_their_deadline() {
    let server = Server::raw(hang).await;
    let settings = settings::Peer { answer_seconds: 5.0, ..server.hasty() };
    let peer = Peer::new("HSM", &settings).unwrap();
    let began = Instant::now();
    let failures = futures_util::future::join_all((0..6).map(|number| {
        let operation = ["a", "b", "c", "d", "e", "f"][number];
        peer.call(Request::get(operation, "/nodes"))
    }));
    let failures = failures.await.into_iter().map(|outcome| outcome.unwrap_err()).collect::<Vec<_>>();
    assert!(began.elapsed() < Duration::from_secs(3));
    assert!(server.connections() <= 2 + 2, "{} calls were made", server.connections());
    let held = failures.iter().filter(|failure| failure.kind == FailureKind::Unreachable).collect::<Vec<_>>();
    expect!["HSM at ADDRESS (not called: all of 2 calls under way took over 500ms)"]
        .assert_eq(&steady(&held[0].text, server.address));
}

#[tokio::test]
async fn a_call_can_have_a_deadline_of_its_own() {
    let slow = async || {
        tokio::time::sleep(Duration::from_millis(700)).await;
        "1"
    };
    let server = Server::of(Router::new().route("/v2/nodes", get(slow))).await;
    // A longer wait for the beginning extends the deadline of the whole call.
    let peer = Peer::new("HSM", &server.hasty()).unwrap();
    let patient = Request::get("nodes", "/nodes").answer_within(Duration::from_secs(30));
    assert!(peer.call(patient).await.is_ok());
    assert_eq!(ask(&peer).await.kind, FailureKind::Ambiguous);
}

#[tokio::test]
async fn a_dropped_call_releases_its_slot_and_its_probe() {
    let server = Server::raw(hang).await;
    let peer = Peer::new("HSM", &server.hasty()).unwrap();
    for _ in 0..5 {
        let call = peer.call(Request::get("nodes", "/nodes"));
        assert!(tokio::time::timeout(Duration::from_millis(20), call).await.is_err());
    }
    assert_eq!(ask(&peer).await.kind, FailureKind::Ambiguous, "the call was made");
}
