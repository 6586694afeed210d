//! Overload: excess is refused cleanly, and all other work continues.

use std::{net::SocketAddr, ops::Range, time::Duration};

use chassis::{Fault, Settings};
use futures_util::future::join_all;
use integration_tests::{PATIENCE, bos::Bos, eventually, mesh::Mesh};
use proto::component::{
    ListComponentsRequest, WatchComponentsRequest, component_service_client::ComponentServiceClient,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, timeout},
};
use tonic::{Code, Request, transport::Endpoint};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

fn address(mesh: &Mesh) -> SocketAddr {
    mesh.settings.gateway.url.strip_prefix("http://").unwrap().parse().unwrap()
}

/// Makes lists too long for the buffers on the way to a client that does not read.
async fn long_lists(bos: &Bos) {
    let error = "e".repeat(65_000);
    let components: Vec<_> = (0..500).map(|n| json!({"id": format!("long-{n}"), "error": error})).collect();
    bos.expect(Method::PUT, "/v2/components", Some(&Value::Array(components))).await;
}

/// Asks for the list and reads the first of it.
async fn deaf(gateway: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(gateway).await.unwrap();
    stream.write_all(b"GET /v2/components HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    timeout(PATIENCE, stream.read_exact(&mut first)).await.expect("an answer").unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

/// Everything that people ask, and how the mesh is.
async fn works(bos: &Bos) {
    for path in ["/livez", "/readyz", "/v2/healthz", "/v2/options", "/v2/components/long-7"] {
        bos.get(path).await;
    }
    let patch = json!({"error": "short"});
    bos.expect(Method::PATCH, "/v2/components/long-7", Some(&patch)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_delay_no_other() {
    let mesh = Mesh::start(async |_| {}).await;
    long_lists(&mesh.bos).await;
    let mut readers = Vec::new();
    for _ in 0..16 {
        readers.push(deaf(address(&mesh)).await);
    }
    works(&mesh.bos).await;
    let whole = mesh.bos.get("/v2/components").await;
    assert_eq!(whole.as_array().unwrap().len(), 508);
    // A client that resumes reading gets all of it.
    let mut rest = Vec::new();
    let mut reader = readers.swap_remove(0);
    timeout(PATIENCE, reader.read_to_end(&mut rest)).await.expect("the rest").unwrap();
    assert!(rest.ends_with(b"]\r\n0\r\n\r\n"));
    drop(readers);
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_beyond_the_limit_wait_or_get_retry_after() {
    let mesh = Mesh::start(async |settings| {
        settings.gateway.lists = 2;
        settings.gateway.queue_seconds = 1;
    })
    .await;
    long_lists(&mesh.bos).await;
    let readers = [deaf(address(&mesh)).await, deaf(address(&mesh)).await];
    for path in ["/v2/components", "/apis/bos/v2/sessions"] {
        let refused = reqwest::get(format!("{}{path}", mesh.bos.url())).await.unwrap();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        let seconds: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=5).contains(&seconds), "{seconds}");
        let problem: Value = refused.json().await.unwrap();
        assert_eq!(problem["title"], "Too many requests at a time");
        assert_eq!(problem["detail"], "as many calls of the class 'list' are under way as the limits allow");
    }
    works(&mesh.bos).await;
    drop(readers);
    let listed = async || {
        let answer = mesh.bos.send(Method::GET, "/v2/components", None).await;
        answer.status.is_success().then_some(())
    };
    eventually("a list", listed).await;
    mesh.stop().await;
}

/// A node's reports, and the last acknowledged one.
struct NodeReporter {
    client: reqwest::Client,
    url: String,
    acknowledged: Option<u32>,
    refused: u32,
}

impl NodeReporter {
    /// Sends a new report in each round, and ignores `Retry-After`.
    async fn storm(mut self, rounds: Range<u32>) -> Self {
        for round in rounds {
            let said = json!({"error": round.to_string()});
            let answer = self.client.patch(&self.url).json(&said).send().await.unwrap();
            match answer.status() {
                StatusCode::OK => self.acknowledged = Some(round),
                status => {
                    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text().await.unwrap());
                    assert!(answer.headers().contains_key("retry-after"));
                    self.refused += 1;
                }
            }
        }
        self
    }
}

/// Sends a body by the byte, one each second, until the gateway has had enough. Gives the first line of the answer.
async fn drip(gateway: SocketAddr, method: &str, path: &str) -> String {
    let (reader, mut writer) = TcpStream::connect(gateway).await.unwrap().into_split();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: 600\r\n\r\n"
    );
    writer.write_all(head.as_bytes()).await.unwrap();
    let dripping = async {
        while writer.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = String::new();
    let mut reader = BufReader::new(reader);
    tokio::select! {
        () = dripping => {}
        _ = reader.read_line(&mut answer) => {}
    }
    answer
}

/// More bodies than there are places come by the byte. They have no place until they are complete, and are cut off.
#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_shut_no_client_out() {
    let mesh = Mesh::start(async |settings| {
        settings.gateway.operators = 16;
        settings.gateway.reports = 16;
        settings.gateway.queue_seconds = 0;
        settings.gateway.stall_seconds = 4;
    })
    .await;
    let gateway = address(&mesh);
    let mut drips = JoinSet::new();
    for (method, path) in
        [("PATCH", "/v2/options"), ("PATCH", "/v2/components/none"), ("POST", "/v2/sessions")]
    {
        for _ in 0..40 {
            drips.spawn(drip(gateway, method, path));
        }
    }
    let began = Instant::now();
    let id = mesh.bos.get("/v2/components").await[0]["id"].as_str().unwrap().to_owned();
    while began.elapsed() < Duration::from_secs(3) {
        mesh.bos.expect(Method::PATCH, &format!("/v2/components/{id}"), Some(&json!({"error": "e"}))).await;
        mesh.bos.get("/v2/options").await;
        mesh.bos.get("/readyz").await;
    }
    let answers = timeout(PATIENCE, drips.join_all()).await.expect("an end of every body");
    assert!(answers.iter().all(|answer| answer.starts_with("HTTP/1.1 408 ")), "{answers:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    mesh.stop().await;
}

/// Starts all reporters at the same time.
fn all_at_once(reporters: Vec<NodeReporter>, rounds: Range<u32>) -> JoinSet<NodeReporter> {
    reporters.into_iter().map(|reporter| reporter.storm(rounds.clone())).collect()
}

/// Ten times as many callers as are admitted, each retrying at once when refused.
#[tokio::test(flavor = "multi_thread")]
async fn storm_of_reports_loses_no_acknowledged_report() {
    const NODES: usize = 80;
    const PLACES: u32 = 8;
    const ROUNDS: u32 = 50;
    let mesh = Mesh::start(async |settings| {
        settings.gateway.reports = PLACES;
        settings.gateway.queue_seconds = 0;
        settings.simulator.nodes = u32::try_from(NODES).unwrap();
    })
    .await;
    let all = mesh.bos.get("/v2/components").await;
    let ids: Vec<_> = all.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    let reporter = |id: &&str| NodeReporter {
        client: reqwest::Client::new(),
        url: format!("{}/v2/components/{id}", mesh.bos.url()),
        acknowledged: None,
        refused: 0,
    };
    let mut storm = all_at_once(ids.iter().map(reporter).collect(), 0..ROUNDS);
    let mut reporters = Vec::new();
    while !storm.is_empty() {
        tokio::select! {
            Some(reporter) = storm.join_next() => reporters.push(reporter.unwrap()),
            // Requests of people and health checks are answered meanwhile.
            () = async {
                for path in ["/readyz", "/v2/options", "/v2/components"] {
                    mesh.bos.get(path).await;
                }
            } => {}
        }
    }
    assert!(reporters.iter().any(|one| one.acknowledged.is_some()), "nothing was done");
    assert!(reporters.iter().any(|one| one.refused > 0), "nothing was refused");
    for reporter in &reporters {
        let stored: Value = reqwest::get(&reporter.url).await.unwrap().json().await.unwrap();
        let acknowledged = reporter.acknowledged.map(|round| round.to_string());
        assert_eq!(stored["error"], acknowledged.unwrap_or_default(), "{}", reporter.url);
    }
    // Afterwards all requests are accepted, and the machine boots.
    let patch = json!({"error": "after"});
    for id in ids.iter().take(8) {
        mesh.bos.expect(Method::PATCH, &format!("/v2/components/{id}"), Some(&patch)).await;
    }
    mesh.bos.template("compute").await;
    let session = mesh.bos.session("compute", "boot").await;
    mesh.bos.complete(&session).await;
    mesh.stop().await;
}

/// A registry that admits no people and nodes still serves the mesh and its health checks.
#[tokio::test(flavor = "multi_thread")]
async fn people_and_nodes_never_starve_the_mesh_s_own_calls() {
    let mesh = Mesh::start(async |settings: &mut Settings| {
        settings.limits.reports = 1;
        settings.limits.operators = 1;
        settings.limits.watches = 16;
    })
    .await;
    let url = mesh.settings.component_registry.url.clone();
    let stranger = Endpoint::from_shared(url).unwrap().connect().await.unwrap();
    let mut client = ComponentServiceClient::new(stranger.clone());
    let mut watches = Vec::new();
    let refused = loop {
        match client.watch_components(WatchComponentsRequest { resume_revision: 0 }).await {
            Ok(watch) => watches.push(watch),
            Err(refused) => break refused,
        }
    };
    assert_eq!(watches.len(), 16, "the mesh has places of its own");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let Fault::Busy { retry_after, .. } = Fault::from(refused) else { panic!("no word of coming back") };
    assert!(retry_after >= Duration::from_secs(1));
    // Lists, calls and health have places of their own.
    client.list_components(ListComponentsRequest::default()).await.unwrap();
    HealthClient::new(stranger).check(HealthCheckRequest::default()).await.unwrap();
    mesh.bos.get("/readyz").await;
    mesh.bos.template("compute").await;
    let session = mesh.bos.session("compute", "boot").await;
    mesh.bos.complete(&session).await;
    // A place is free again as soon as its watch is gone.
    drop(watches);
    let watched = async || {
        let request = Request::new(WatchComponentsRequest { resume_revision: 0 });
        client.clone().watch_components(request).await.ok()
    };
    eventually("a place for a watch", watched).await;
    mesh.stop().await;
}

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Twenty concurrent lists, each of more than ten megabytes, are read from the same memory.
#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_lists_takes_little_memory() {
    const CLIENTS: usize = 20;
    const COMPONENTS: usize = 20_000;
    let mesh = Mesh::start(async |_| {}).await;
    for chunk in (0..COMPONENTS).collect::<Vec<_>>().chunks(5_000) {
        let components: Vec<_> =
            chunk.iter().map(|n| json!({"id": format!("listed-{n:05}"), "error": "e".repeat(500)})).collect();
        mesh.bos.expect(Method::PUT, "/v2/components", Some(&Value::Array(components))).await;
    }
    let listed = mesh.bos.get("/v2/components").await.as_array().unwrap().len();
    assert_eq!(listed, COMPONENTS + 8);
    let before = resident();
    let (gateway, mut peak) = (address(&mesh), before);
    let mut readers = join_all((0..CLIENTS).map(|_| deaf(gateway))).await;
    let mut lengths = vec![0; CLIENTS];
    let mut part = vec![0; 64 << 10];
    // All of them at the same pace, so that all are under way until the end.
    while !readers.is_empty() {
        let mut ended = Vec::new();
        for (place, reader) in readers.iter_mut().enumerate() {
            let length = timeout(PATIENCE, reader.read(&mut part)).await.expect("more of the list").unwrap();
            lengths[place] += length;
            if length == 0 {
                ended.push(place);
            }
        }
        peak = peak.max(resident());
        for place in ended.into_iter().rev() {
            let whole = lengths.swap_remove(place);
            drop(readers.swap_remove(place));
            assert!(whole > 10_000_000, "a list has {whole} bytes");
        }
    }
    let grown = peak.saturating_sub(before);
    assert!(grown < 128 << 20, "{CLIENTS} lists took {grown} bytes more");
    mesh.stop().await;
}
