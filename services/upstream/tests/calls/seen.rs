//! Metrics, logs and texts of calls, and no secret in any of them.

use std::{io::Write, sync::Arc};

use axum::{
    Router,
    extract::RawQuery,
    http::{HeaderMap, StatusCode},
    routing::{get, post},
};
use chassis::process::telemetry;
use expect_test::expect;
use parking_lot::Mutex;
use tracing_subscriber::fmt::MakeWriter;
use upstream::{Peer, Request, SecretText};

use crate::{
    credentials::{Tokens, peer, put},
    server::Server,
};

/// Lines of the metrics that name the peer.
fn metrics_of(peer: &str) -> String {
    let all = telemetry::metrics();
    let own = all.lines().filter(|line| line.contains(&format!("peer=\"{peer}\"")) && !line.contains("_sum"));
    own.map(|line| format!("{line}\n")).collect()
}

#[tokio::test]
async fn calls_items_and_circuits_are_counted() {
    telemetry::record_metrics();
    let router = Router::new()
        .route("/v2/good", get(async || "1"))
        .route("/v2/bad", get(async || StatusCode::BAD_REQUEST))
        .route("/v2/forbidden", get(async || StatusCode::FORBIDDEN))
        .route("/v2/slowly", get(async || StatusCode::TOO_MANY_REQUESTS))
        .route("/v2/broken", get(async || StatusCode::BAD_GATEWAY));
    let server = Server::of(router).await;
    let peer = Peer::new("COUNTED", &server.settings()).unwrap();
    for (operation, path) in [
        ("good", "/good"),
        ("good", "/good"),
        ("mixed", "/good"),
        ("mixed", "/bad"),
        ("mixed", "/forbidden"),
        ("mixed", "/slowly"),
        ("broken", "/broken"),
        ("broken", "/broken"),
        ("broken", "/broken"),
        ("broken", "/broken"),
    ] {
        let request = Request::get(operation, path).items(if operation == "good" { 500 } else { 0 });
        drop(peer.call(request).await);
    }
    let counted = metrics_of("COUNTED");
    let mut lines = counted.lines().filter(|line| !line.contains("_bucket")).collect::<Vec<_>>();
    lines.sort_unstable();
    expect![[r#"
        reveille_upstream_call_seconds_count{peer="COUNTED",operation="broken"} 3
        reveille_upstream_call_seconds_count{peer="COUNTED",operation="good"} 2
        reveille_upstream_call_seconds_count{peer="COUNTED",operation="mixed"} 4
        reveille_upstream_calls_total{peer="COUNTED",operation="broken",outcome="ambiguous"} 3
        reveille_upstream_calls_total{peer="COUNTED",operation="broken",outcome="held"} 1
        reveille_upstream_calls_total{peer="COUNTED",operation="good",outcome="ok"} 2
        reveille_upstream_calls_total{peer="COUNTED",operation="mixed",outcome="denied"} 1
        reveille_upstream_calls_total{peer="COUNTED",operation="mixed",outcome="ok"} 1
        reveille_upstream_calls_total{peer="COUNTED",operation="mixed",outcome="refused"} 1
        reveille_upstream_calls_total{peer="COUNTED",operation="mixed",outcome="unreachable"} 1
        reveille_upstream_gate_open{peer="COUNTED",operation="broken"} 0
        reveille_upstream_gate_open{peer="COUNTED",operation="good"} 1
        reveille_upstream_gate_open{peer="COUNTED",operation="mixed"} 1
        reveille_upstream_items_total{peer="COUNTED",operation="good"} 1000
        reveille_upstream_up{peer="COUNTED"} 0"#]]
    .assert_eq(&lines.join("\n"));
    assert!(counted.contains("reveille_upstream_call_seconds_bucket"), "{counted}");
    for name in ["calls_total counter", "items_total counter", "call_seconds histogram", "gate_open gauge"] {
        let kind = format!("# TYPE reveille_upstream_{name}");
        assert!(telemetry::metrics().contains(&kind), "{kind}");
    }
    assert!(telemetry::metrics().contains("# HELP reveille_upstream_calls_total Calls of other systems"));
    drop(peer);
    assert!(metrics_of("COUNTED").contains("gate_open{peer=\"COUNTED\",operation=\"good\"} 0"));
}

/// Captures the log at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn only_the_peer_receives_secrets() {
    telemetry::record_metrics();
    let log = Log::default();
    let filter = "upstream=trace,reqwest=trace,hyper_util=trace,rustls=trace";
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(log.clone()).finish();
    let _logged = tracing::subscriber::set_default(subscriber);

    // The server repeats the whole request in its answers and refusals.
    let repeat = |status: u16| {
        move |RawQuery(query): RawQuery, headers: HeaderMap, body: String| async move {
            let status = StatusCode::from_u16(status).unwrap();
            (status, format!("{headers:?} {body} {}", query.map_or(0, |query| query.len())))
        }
    };
    let mut router = Router::new();
    for status in [200, 400, 401, 500] {
        router = router.route(&format!("/v2/{status}"), post(repeat(status)));
    }
    let server = Server::of(router).await;
    let directory = tempfile::tempdir().unwrap();
    let tokens = Tokens::new().await;
    let file = directory.path().join("pcs.toml");
    let mut seen = String::new();
    for document in [
        "token = 'hush-token'",
        "username = 'root'\npassword = 'hush-password'",
        "access_key = 'a'\nsecret_key = 'hush-key'",
        "token = 'hush-broken",
    ] {
        put(&file, document);
        let peer = peer(&server, &file);
        seen += &format!("{:?}\n", peer.secrets().await);
        for path in ["/200", "/400", "/401", "/500", "/200?X-Amz-Signature=hush-signature"] {
            let request = Request::post("test", path)
                .query("signature", "hush-query")
                .header("cookie".parse().unwrap(), "hush-cookie".parse().unwrap())
                .body("hush-body")
                .hiding(SecretText::new("hush-body"))
                .hiding(SecretText::new("hush-cookie"));
            seen += &format!("{request:?}\n");
            let failure = peer.json::<u8>(request.clone()).await.unwrap_err();
            seen += &format!("{failure} {failure:?}\n");
            seen += &format!("{:?}\n", peer.call(request).await);
        }
    }
    tokens.answer.lock().1 = "hush-granted";
    let peer = tokens.peer(&server, directory.path());
    for path in ["/400", "/401", "/500"] {
        let failure = peer.call(Request::post("granted", path)).await.unwrap_err();
        seen += &format!("{failure:?}\n");
    }
    seen += &telemetry::metrics();
    seen += &String::from_utf8_lossy(&log.0.lock());
    assert!(seen.contains("[hidden]") && seen.contains("called"), "the test captured nothing: {seen}");
    for secret in ["hush", "s3cret", "cm9vdDpodXNoLXBhc3N3b3Jk"] {
        let line = seen.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret} is seen");
    }
}
