//! Bulk patches and reports of single nodes.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use super::{Bench, lists};
use crate::{
    load,
    records::{self, Size, id},
    samples::{percentile, timed},
    stage::{Registry, Server},
    watching,
};

const COMPONENTS: usize = 10_000;

/// Patches in one request, requests at a time, and how often.
const PATCHED: usize = 2_500;
const AT_ONCE: usize = 4;
const ROUNDS: usize = 4;

/// The original's bulk patch.
const ORIGINAL: usize = 2_000;

/// Callers and their connections.
const CALLERS: usize = 256;
const CONNECTIONS: usize = 8;

/// Measures writes on 10,000 components.
pub async fn measure(bench: &mut Bench<'_>) {
    let rows = ["T5", "T6", "T6.p99", "T6.burst", "T16", "T16.commits", "O4.patch", "O5"];
    if !bench.wants(&rows) {
        return;
    }
    let server = Server::empty(bench.stage).await;
    records::fill(&server, COMPONENTS, Size::Usual, |_| false).await;
    if bench.wants(&["T5"]) {
        bulk(bench, &server).await;
    }
    if bench.wants(&["O5"]) {
        bulk_over_rest(bench, &server).await;
    }
    if bench.wants(&["T6", "T6.p99", "T6.burst"]) {
        reports(bench, &server).await;
    }
    if bench.wants(&["O4.patch"]) {
        single_patches(bench, &server).await;
    }
    if bench.wants(&["T16", "T16.commits"]) {
        repeated_reports(bench, &server).await;
    }
    server.stop().await;
}

async fn bulk(bench: &mut Bench<'_>, server: &Server) {
    let mut rates = Vec::new();
    for run in 0..bench.runs() {
        let mut changes = watching::components(server, lists::revision(&server.registry()).await).await;
        let registry = server.registry();
        let began = Instant::now();
        let mut callers = JoinSet::new();
        for caller in 0..AT_ONCE {
            let mut registry = registry.clone();
            callers.spawn(async move {
                for round in 0..ROUNDS {
                    let numbers = caller * PATCHED..(caller + 1) * PATCHED;
                    let patch = records::patch(numbers, &format!("noted {run} {round}"));
                    registry.patch_components(patch).await.expect("patched components");
                }
            });
        }
        let last = format!("noted {run} {}", ROUNDS - 1);
        let mut seen = 0;
        while seen < AT_ONCE * PATCHED {
            let batch = changes.message().await.expect("a batch").expect("no end");
            let is_last = |component: &&proto::component::Component| component.error.as_ref() == Some(&last);
            seen += batch.components.iter().filter(is_last).count();
        }
        rates.push((AT_ONCE * PATCHED * ROUNDS) as f64 / began.elapsed().as_secs_f64());
        callers.join_all().await;
    }
    bench.note("T5", COMPONENTS, rates);
}

async fn bulk_over_rest(bench: &mut Bench<'_>, server: &Server) {
    let (client, url) = (reqwest::Client::new(), server.components_url());
    let mut times = Vec::new();
    for run in 0..bench.runs() {
        let noted = format!("noted over REST {run}");
        let patches: Vec<_> = (0..ORIGINAL).map(|n| json!({"id": id(n), "error": noted})).collect();
        let patch = async {
            let answer = client.patch(&url).json(&patches).send().await.expect("an answer");
            assert!(answer.status().is_success(), "{}", answer.status());
            answer.bytes().await.expect("a whole answer");
        };
        times.push(timed(patch).await.1.as_secs_f64());
    }
    bench.note("O5", ORIGINAL, times);
}

async fn reports(bench: &mut Bench<'_>, server: &Server) {
    let lasting = bench.command.scale.of(Duration::from_secs(2), Duration::from_secs(5));
    let connections: Vec<Registry> = (0..CONNECTIONS).map(|_| server.registry()).collect();
    let report = move |number: usize| {
        let mut registry = connections[number % CONNECTIONS].clone();
        async move {
            registry.patch_components(records::report(number % COMPONENTS)).await.expect("a report taken");
        }
    };
    let (mut rates, mut p99, mut bursts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.runs() {
        let load = load::callers(CALLERS, lasting, report.clone()).await;
        rates.push(load.rate());
        p99.push(percentile(&mut load.times(), 99.0));
        bursts.push(load::burst((0..COMPONENTS).map(&report)).await.as_secs_f64());
    }
    bench.note("T6", CALLERS, rates);
    bench.note("T6.p99", CALLERS, p99);
    bench.note("T6.burst", COMPONENTS, bursts);
}

async fn single_patches(bench: &mut Bench<'_>, server: &Server) {
    let lasting = bench.command.scale.of(Duration::from_secs(2), Duration::from_secs(5));
    let patch = over_rest(server, json!({"error": "noted alone"}));
    let mut rates = Vec::new();
    for _ in 0..bench.runs() {
        rates.push(load::callers(8, lasting, patch.clone()).await.rate());
    }
    bench.note("O4.patch", COMPONENTS, rates);
}

/// Nodes that run say so again and again, and say the same.
async fn repeated_reports(bench: &mut Bench<'_>, server: &Server) {
    let lasting = bench.command.scale.of(Duration::from_secs(2), Duration::from_secs(5));
    let report = over_rest(server, records::report_body());
    let (mut rates, mut commits) = (Vec::new(), Vec::new());
    for _ in 0..bench.runs() {
        let before = bench.commits().await;
        let load = load::callers(CALLERS, lasting, report.clone()).await;
        rates.push(load.rate());
        // The server's own count is a second behind.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let after = bench.commits().await;
        commits.extend(
            before.zip(after).map(|(before, after)| (after - before) as f64 / load.took.as_secs_f64()),
        );
    }
    bench.note("T16", CALLERS, rates);
    match commits.is_empty() {
        true => bench.leave(&["T16.commits"], "SQLite does not count transactions"),
        false => bench.note("T16.commits", CALLERS, commits),
    }
}

/// Patches of single components over REST.
fn over_rest(
    server: &Server,
    body: serde_json::Value,
) -> impl Fn(usize) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Clone + Send + 'static {
    let (client, url) = (reqwest::Client::new(), server.components_url());
    move |number| {
        let patch = client.patch(format!("{url}/{}", id(number % COMPONENTS))).json(&body);
        Box::pin(async move {
            let answer = patch.send().await.expect("an answer");
            assert!(answer.status().is_success(), "{}", answer.status());
            answer.bytes().await.expect("a whole answer");
        })
    }
}
