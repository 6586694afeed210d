//! Crowds of clients: memory and file descriptors stay within their bounds, and other clients are served.

use std::{net::SocketAddr, time::Duration};

use futures_util::future::join_all;
use integration_tests::{PATIENCE, eventually, processes::Processes};
use proto::component::{
    Component, PutComponentsRequest, WatchComponentsRequest, WatchComponentsResponse,
    component_service_client::ComponentServiceClient,
};
use reqwest::StatusCode;
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tonic::{Code, Status, Streaming, transport::Endpoint};

const MIB: u64 = 1 << 20;

/// Unread watches, and connections that carry them.
const WATCHES: usize = 2_000;
const CONNECTIONS: usize = 20;

/// Components that they watch, and how long the text is that each has.
const COMPONENTS: usize = 2_000;
const TEXT: usize = 2_000;

/// Bytes that all streams of the registry may hold, and that a watch may take beside that while it lasts.
const STREAM_BYTES: u64 = 16 * MIB;
const EACH: u64 = 40 << 10;

fn address(url: &str) -> SocketAddr {
    url.strip_prefix("http://").unwrap().parse().unwrap()
}

/// Stores components with long texts, past the gateway.
async fn store(mesh: &Processes, components: usize, text: usize) {
    let channel = chassis::plain_channel(&mesh.url("component_registry")).unwrap();
    let mut client = ComponentServiceClient::new(channel).max_decoding_message_size(64 << 20);
    let all: Vec<_> = (0..components).collect();
    for chunk in all.chunks(500) {
        let component = |index: &usize| Component {
            id: format!("c{index:05}"),
            enabled: Some(false),
            error: Some("e".repeat(text)),
            ..Component::default()
        };
        let components = chunk.iter().map(component).collect();
        client.put_components(PutComponentsRequest { components, ..Default::default() }).await.unwrap();
    }
}

/// Reads a watch to the revision of the fleet or to its end.
async fn read(watch: &mut Streaming<WatchComponentsResponse>) -> Result<(usize, u64), Status> {
    let mut components = 0;
    loop {
        let batch = watch.message().await?.ok_or_else(|| Status::unavailable("an end"))?;
        components += batch.components.len();
        if components >= COMPONENTS {
            return Ok((components, batch.revision));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_watches_stay_within_budget_and_delay_no_client() {
    let mut mesh = Processes::prepare();
    mesh.set(&format!("[simulator]\nnodes = 1\n[limits]\nstream_bytes = {STREAM_BYTES}\n"));
    mesh.begin().await;
    store(&mesh, COMPONENTS, TEXT).await;
    let url = mesh.url("component_registry");
    let mut reader = ComponentServiceClient::new(chassis::plain_channel(&url).unwrap());
    let before = mesh.peak_memory("component_registry");
    let mut watch = reader.watch_components(WatchComponentsRequest::default()).await.unwrap().into_inner();
    let (_, seen) = read(&mut watch).await.unwrap();

    let crowd = tokio::spawn(async move {
        let connections = (0..CONNECTIONS).map(|_| async {
            let channel = Endpoint::from_shared(url.clone()).unwrap().connect().await.unwrap();
            let client = ComponentServiceClient::new(channel);
            let watches = (0..WATCHES / CONNECTIONS).map(|_| {
                let mut client = client.clone();
                async move { client.watch_components(WatchComponentsRequest::default()).await }
            });
            join_all(watches).await
        });
        join_all(connections).await.into_iter().flatten().collect::<Vec<_>>()
    });
    // Meanwhile a client that reads gets the changes.
    let began = Instant::now();
    store(&mesh, 1, TEXT / 2).await;
    let next = timeout(PATIENCE, watch.message()).await.expect("a batch in time").unwrap().unwrap();
    assert!(next.revision > seen);
    let waited = began.elapsed();
    assert!(waited < Duration::from_secs(8), "a reader waited for {waited:?}");

    let (mut unread, mut refused) = (Vec::new(), 0);
    for watch in crowd.await.unwrap() {
        match watch {
            Ok(watch) => unread.push(watch.into_inner()),
            Err(status) => {
                assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
                refused += 1;
            }
        }
    }
    let grown = mesh.peak_memory("component_registry") - before;
    eprintln!(
        "{WATCHES} watches took {} MiB, {refused} were refused, a reader waited {waited:?}",
        grown / MIB
    );
    assert!(grown < 2 * STREAM_BYTES + EACH * WATCHES as u64, "{} MiB", grown / MIB);

    // A closed watch ends with an error, and its client may watch again.
    let reads =
        unread.iter_mut().map(|watch| async move { timeout(Duration::from_secs(10), read(watch)).await });
    let closed = join_all(reads).await.into_iter().find_map(|read| read.ok()?.err());
    if let Some(status) = closed {
        assert!(matches!(status.code(), Code::ResourceExhausted | Code::Cancelled), "{status}");
    } else {
        assert!(refused > 0, "nobody was refused or closed");
    }
    drop(unread);
    let again = async || {
        let watch = reader.clone().watch_components(WatchComponentsRequest::default()).await.ok()?;
        read(&mut watch.into_inner()).await.ok()
    };
    let (components, _) = eventually("another watch", again).await;
    assert!(components >= COMPONENTS);
}

/// Documented memory of the gateway.
const GATEWAY_BYTES: u64 = 64 * MIB;

/// Lists at once, and the bytes of each, as a hundred thousand components have them.
const LISTS: usize = 20;
const LISTED: usize = 3_000;
const LISTED_TEXT: usize = 20_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_lists_fits_into_the_smallest_gateway() {
    let mut mesh = Processes::prepare();
    mesh.set(&format!("[simulator]\nnodes = 1\n[limits]\nmemory_bytes = {GATEWAY_BYTES}\n"));
    mesh.set("[gateway]\nqueue_seconds = 3\n");
    mesh.begin().await;
    store(&mesh, LISTED, LISTED_TEXT).await;
    let url = format!("{}/v2/components", mesh.bos.url());
    let lists = (0..LISTS).map(|_| async {
        let answer = reqwest::Client::new().get(&url).send().await.unwrap();
        match answer.status() {
            StatusCode::OK => {
                let length = answer.bytes().await.unwrap().len();
                assert!(length > LISTED * LISTED_TEXT, "a list of {length} bytes");
                true
            }
            status => {
                assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
                assert!(answer.headers().contains_key("retry-after"));
                false
            }
        }
    });
    let whole = join_all(lists).await.into_iter().filter(|whole| *whole).count();
    let peak = mesh.peak_memory("gateway");
    eprintln!("{whole} of {LISTS} lists were given; the gateway took {} MiB", peak / MIB);
    assert!(whole > 0 && peak < GATEWAY_BYTES, "{whole} lists, {} MiB", peak / MIB);
}

/// File descriptors of each part, and connections to the gateway that ask nothing, or never finish their request.
const DESCRIPTORS: u32 = 256;
const IDLE: usize = 600;

/// Time in which a busy machine answers a few probes, and after which a platform would have ended the gateway.
const PROBED: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_make_room_at_the_limit_of_descriptors() {
    let mut mesh = Processes::prepare();
    mesh.set("[simulator]\nnodes = 1\n");
    mesh.limit_descriptors(DESCRIPTORS);
    mesh.begin().await;
    let gateway = address(mesh.bos.url());
    let mut idle = Vec::new();
    for index in 0..IDLE {
        let mut stream = TcpStream::connect(gateway).await.unwrap();
        if index % 2 == 0 {
            stream.write_all(b"GET /v2/opt").await.unwrap();
        }
        idle.push(stream);
    }
    for path in ["/livez", "/readyz", "/v2/options", "/v2/components"] {
        let began = Instant::now();
        // On a connection of its own.
        let answer = reqwest::get(format!("{}{path}", mesh.bos.url())).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        eprintln!("{path} took {:?}", began.elapsed());
    }
    assert!(!mesh.log("gateway").contains("cannot be accepted"), "descriptors ran out");
    drop(idle);
}

/// Sends bodies by the byte, one after the other, for ever.
async fn send_slowly(gateway: SocketAddr) {
    const HEAD: &str = "PATCH /v2/components/x1000c0s0b0n0 HTTP/1.1\r\nHost: here\r\n\
        Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n";
    const PACE: Duration = Duration::from_secs(1);
    loop {
        let mut connection = TcpStream::connect(gateway).await;
        let mut part = HEAD.as_bytes();
        while let Ok(stream) = &mut connection {
            if stream.write_all(part).await.is_err() {
                break;
            }
            part = b"{";
            sleep(PACE).await;
        }
        sleep(PACE).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_pass_a_crowd_of_slow_bodies() {
    let mut mesh = Processes::prepare();
    mesh.set("[simulator]\nnodes = 1\n");
    mesh.limit_descriptors(DESCRIPTORS);
    mesh.begin().await;
    let gateway = address(mesh.bos.url());
    let mut crowd = JoinSet::new();
    for _ in 0..IDLE {
        crowd.spawn(send_slowly(gateway));
    }
    let is_full = async || {
        let answer = reqwest::get(format!("{}/v2/options", mesh.bos.url())).await.ok()?;
        (answer.status() == StatusCode::SERVICE_UNAVAILABLE).then_some(())
    };
    eventually("a gateway without a place", is_full).await;
    let probes = async {
        for path in ["/livez", "/readyz", "/livez", "/readyz"] {
            let began = Instant::now();
            let answer =
                reqwest::Client::new().get(format!("{}{path}", mesh.bos.url())).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK, "{path}");
            eprintln!("{path} took {:?}", began.elapsed());
        }
    };
    timeout(PROBED, probes).await.expect("probes are answered");
    assert!(!mesh.log("gateway").contains("cannot be accepted"), "descriptors ran out");
}
