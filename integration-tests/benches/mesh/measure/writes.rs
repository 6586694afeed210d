//! Bulk patches and reports of single nodes.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use chassis::mesh::call_class::{CallClass, scope};
use tokio::task::JoinSet;

use super::{BenchRun, LASTING, lists};
use crate::{
    load,
    records::{self, BootReports, RecordSize, id},
    samples::percentile,
    stage::{Registry, Server},
    watching,
};

const COMPONENTS: usize = 10_000;

/// Patches in one request, requests at a time, and how often.
const PATCHED: usize = 2_500;
const AT_ONCE: usize = 4;
const ROUNDS: usize = 4;

/// Callers and their connections.
const CALLERS: usize = 256;
const CONNECTIONS: usize = 8;

/// Reports of a burst that are under way at a time: a little less than the registry takes.
const UNDER_WAY: usize = 4_000;

/// Delay of PostgreSQL's count of transactions: an idle connection reports its last ones after ten seconds.
const COUNT_DELAY: Duration = Duration::from_secs(11);

/// Time for which transactions are counted: so long that one more or less does not matter.
const COUNTED: Duration = Duration::from_secs(12);

type Taken = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

const REPORTS: [&str; 3] = ["T6", "T6.p99", "T6.burst"];
const REPEATED: [&str; 2] = ["T16", "T16.commits"];

/// Measures writes on 10,000 components.
pub async fn measure(bench: &mut BenchRun<'_>) {
    let rows = [&["T5"], &REPORTS[..], &REPEATED].concat();
    let filled = async |bench: &mut BenchRun<'_>| {
        records::filled(bench.stage, COMPONENTS, RecordSize::Usual, |_| false).await
    };
    let Some(server) = bench.attempt("10,000 components to write to", &rows, 2, filled).await else { return };
    bench.attempt("bulk patches", &["T5"], 3, async |bench| bulk(bench, &server).await).await;
    bench.attempt("reports", &REPORTS, 3, async |bench| reports(bench, &server).await).await;
    bench
        .attempt("repeated reports", &REPEATED, 5, async |bench| repeated_reports(bench, &server).await)
        .await;
}

async fn bulk(bench: &mut BenchRun<'_>, server: &Server) {
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
        let rate = (AT_ONCE * PATCHED * ROUNDS) as f64 / began.elapsed().as_secs_f64();
        bench.note("T5", COMPONENTS, rate);
        callers.join_all().await;
    }
}

async fn reports(bench: &mut BenchRun<'_>, server: &Server) {
    let connections: Vec<Registry> = (0..CONNECTIONS).map(|_| server.registry()).collect();
    let boots = Arc::new(BootReports::of(COMPONENTS));
    let report = move |number: usize| {
        let mut registry = connections[number % CONNECTIONS].clone();
        let report = records::report(number % COMPONENTS, boots.next(number % COMPONENTS));
        scope(CallClass::Report, async move {
            registry.patch_components(report).await.expect("a report taken");
        })
    };
    for _ in 0..bench.runs() {
        let load = load::callers(CALLERS, LASTING, report.clone()).await;
        bench.note("T6", CALLERS, load.rate());
        bench.note("T6.p99", CALLERS, percentile(&mut load.times(), 99.0));
        bench.note(
            "T6.burst",
            COMPONENTS,
            load::burst(UNDER_WAY, (0..COMPONENTS).map(&report)).await.as_secs_f64(),
        );
    }
}

/// Measures repeated reports without news.
async fn repeated_reports(bench: &mut BenchRun<'_>, server: &Server) {
    let report = rest_reports(server);
    load::burst(CALLERS, (0..COMPONENTS).map(&report)).await;
    for _ in 0..bench.runs() {
        bench.note("T16", CALLERS, load::callers(CALLERS, LASTING, report.clone()).await.rate());
    }
    if bench.commits().await.is_none() {
        bench.leave(&["T16.commits"], "SQLite does not count transactions");
        return;
    }
    for _ in 0..bench.runs().min(3) {
        // Replicas that share a database poll it for changes and renew their leases, with or without reports.
        let idle = commits(bench, tokio::time::sleep(COUNTED)).await;
        let during = commits(bench, load::callers(CALLERS, COUNTED, report.clone())).await;
        let Some((idle, during)) = idle.zip(during) else { continue };
        let of_reports = (during - idle) * (COUNTED + COUNT_DELAY).as_secs_f64() / COUNTED.as_secs_f64();
        bench.note("T16.commits", CALLERS, of_reports.max(0.0));
    }
}

/// Does `work`, and returns how many transactions there were in each second until all of them were counted.
async fn commits(bench: &BenchRun<'_>, work: impl Future) -> Option<f64> {
    tokio::time::sleep(COUNT_DELAY).await;
    let (began, before) = (Instant::now(), bench.commits().await);
    work.await;
    tokio::time::sleep(COUNT_DELAY).await;
    let after = bench.commits().await;
    let seconds = began.elapsed().as_secs_f64();
    before.zip(after).map(|(before, after)| (after - before) as f64 / seconds)
}

/// Reports of single nodes over REST, all the same.
fn rest_reports(server: &Server) -> impl Fn(usize) -> Taken + Clone + Send + 'static {
    let (client, url) = (reqwest::Client::new(), server.components_url());
    let [body, _] = records::report_bodies();
    move |number| {
        Box::pin(load::taken(client.patch(format!("{url}/{}", id(number % COMPONENTS))).json(&body)))
    }
}
