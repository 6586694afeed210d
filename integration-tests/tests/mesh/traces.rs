//! Traces of requests, as a collector of OpenTelemetry that others wrote gets them.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Stdio,
};

use integration_tests::{
    authority::{CertificateAuthority, CertificateValidity},
    eventually, eventually_shown,
    ports::free_ports,
    processes::Processes,
    tls_front::TlsFront,
    tools,
};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use upstreams::{MachinePlan, Service};

const NODES: usize = 3;

/// Trace of the client.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Collector that prints the spans that it takes.
struct SpanCollector {
    address: SocketAddr,
    printed: PathBuf,
    _process: Child,
}

impl SpanCollector {
    /// Starts a collector; `None`: it is not installed.
    fn start(directory: &Path) -> Option<Self> {
        let program = tools::package_file("rotel/rotel-agent")?;
        let [grpc, http] = free_ports(2).try_into().unwrap();
        let printed = directory.join("spans.txt");
        let output = File::create(&printed).unwrap();
        let process = Command::new(program)
            .args(["start", "--exporter", "blackhole", "--debug-log", "traces"])
            .args(["--debug-log-verbosity", "detailed"])
            .arg(format!("--otlp-grpc-endpoint=127.0.0.1:{grpc}"))
            .arg(format!("--otlp-http-endpoint=127.0.0.1:{http}"))
            .arg(format!("--pid-file={}", directory.join("collector.pid").display()))
            .stdin(Stdio::null())
            .stderr(Stdio::from(output.try_clone().unwrap()))
            .stdout(Stdio::from(output))
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Some(Self { address: (Ipv4Addr::LOCALHOST, grpc).into(), printed, _process: process })
    }

    /// Returns what it has printed.
    fn printed(&self) -> String {
        fs::read_to_string(&self.printed).unwrap()
    }

    /// Returns the names of the spans of a trace.
    fn spans(&self, trace: &str) -> BTreeSet<String> {
        let printed = self.printed();
        let spans = printed.split("Span #").skip(1).filter(|span| span.contains(trace));
        let name =
            |span: &str| Some(span.split("Name").nth(1)?.lines().next()?.trim_matches([' ', ':']).to_owned());
        spans.filter_map(name).collect()
    }
}

/// Posts a record within the trace of the client.
async fn post(mesh: &Processes, path: &str, body: &Value) {
    let request = Client::new()
        .post(format!("{}{path}", mesh.bos.url()))
        .header("traceparent", format!("00-{TRACE}-b7ad6b7169203331-01"))
        .json(body);
    let answer = request.send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_leads_from_a_client_to_the_calls_of_peers() {
    let mut mesh = Processes::prepare();
    let Some(collector) = SpanCollector::start(mesh.directory.path()) else { return };
    let upstreams = mesh.among(MachinePlan::quick(u32::try_from(NODES).unwrap())).await;
    let (authority, ca_file) = (CertificateAuthority::new(), mesh.directory.path().join("collector-ca.pem"));
    fs::write(&ca_file, authority.pem()).unwrap();
    let front = TlsFront::before(collector.address, &authority, CertificateValidity::Now).await;
    mesh.set(&format!("[traces]\nurl = \"{}\"\nca_file = \"{}\"\n", front.url, ca_file.display()));
    // The default is five seconds.
    mesh.set_variable("OTEL_BSP_SCHEDULE_DELAY", "200");
    mesh.begin().await;
    mesh.bos.discovered(NODES).await;
    mesh.bos.template("traced").await;
    let wish = json!({"name": "s", "operation": "boot", "template_name": "traced"});
    post(&mesh, "/v2/sessions", &wish).await;
    mesh.bos.complete("s").await;

    let traced = |service: Service, operation: &str| {
        let calls = upstreams.log().into_iter();
        let mut calls = calls.filter(|call| call.service == service && call.operation == operation);
        calls.any(|call| call.trace.contains(TRACE))
    };
    assert!(traced(Service::Pcs, "POST /transitions"), "{:?}", upstreams.log());
    assert!(traced(Service::Cfs, "PATCH /components"), "{:?}", upstreams.log());
    assert!(traced(Service::Bss, "PUT /bootparameters"), "{:?}", upstreams.log());
    let polled = upstreams.log().into_iter().filter(|call| call.operation == "POST /power-status");
    assert!(polled.clone().count() > 0 && polled.clone().all(|call| call.trace.is_empty()), "nobody's work");
    for name in [
        "POST /v2/sessions",
        "reveille.session.v1.SessionService/CreateSession",
        "set a session up",
        "reveille.component.v1.ReportService/AssignSession",
        "put boot data in place",
        "BSS boot_parameters_put",
        "request a power action",
        "PCS transitions_create",
    ] {
        eventually_shown(name, async || {
            let spans = collector.spans(TRACE);
            if spans.contains(name) { Ok(()) } else { Err(spans) }
        })
        .await;
    }
    let is_logged = async || mesh.log("gateway").contains(&format!("\"trace_id\":\"{TRACE}\"")).then_some(());
    eventually("the trace in the log", is_logged).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_that_wait_are_sent_as_a_part_stops() {
    let mut mesh = Processes::prepare();
    let Some(collector) = SpanCollector::start(mesh.directory.path()) else { return };
    let settings = format!("[traces]\nurl = \"http://{}\"\n[simulator]\nnodes = 1\n", collector.address);
    mesh.set(&settings);
    mesh.set_variable("OTEL_BSP_SCHEDULE_DELAY", "600000");
    mesh.begin().await;
    // A node reports, and a probe looks, all the time: neither begins a trace.
    let report = Client::new().patch(format!("{}/v2/components/x1", mesh.bos.url())).json(&json!({}));
    report.send().await.unwrap();
    mesh.bos.get("/readyz").await;
    let wish = json!({"logging_level": "INFO"});
    let patch = Client::new()
        .patch(format!("{}/v2/options", mesh.bos.url()))
        .header("traceparent", format!("00-{TRACE}-b7ad6b7169203331-01"))
        .json(&wish);
    assert!(patch.send().await.unwrap().status().is_success());
    mesh.stop_part("gateway").await;
    eventually_shown("the span", async || {
        let spans = collector.spans(TRACE);
        if spans.contains("PATCH /v2/options") { Ok(()) } else { Err(spans) }
    })
    .await;
    let printed = collector.printed();
    assert!(!printed.contains("/v2/components/{id}") && !printed.contains("/readyz"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn collector_that_never_answers_is_named_and_the_mesh_works() {
    let mut mesh = Processes::prepare();
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    mesh.set(&format!("[traces]\nurl = \"http://{address}\"\n[simulator]\nnodes = 1\n"));
    mesh.set_variable("OTEL_BSP_SCHEDULE_DELAY", "100");
    mesh.begin().await;
    mesh.bos.discovered(1).await;
    let words = "the collector does not take spans";
    eventually("the trouble in the log", async || mesh.log("gateway").contains(words).then_some(())).await;
    mesh.bos.get("/v2/options").await;
    mesh.stop_part("gateway").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn collector_that_is_away_is_logged_once_and_in_nobodys_way() {
    let mut mesh = Processes::prepare();
    mesh.set("[traces]\nurl = \"http://127.0.0.1:9\"\n[simulator]\nnodes = 1\nspeed = 0.0\n");
    mesh.set_variable("OTEL_BSP_SCHEDULE_DELAY", "100");
    mesh.begin().await;
    mesh.bos.discovered(1).await;
    let words = "the collector does not take spans";
    eventually("the trouble in the log", async || mesh.log("gateway").contains(words).then_some(())).await;
    let before = mesh.log("gateway").len();
    for _ in 0..5 {
        mesh.bos.get("/v2/options").await;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert!(!mesh.log("gateway")[before..].contains(words), "{}", &mesh.log("gateway")[before..]);
}
