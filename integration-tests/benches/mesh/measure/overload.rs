//! Ten times as many callers as the mesh can serve well, and the recovery.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::BenchRun;
use crate::{
    load::{self, LoadResult},
    records::{self, BootReports, RecordSize, id},
    samples::percentile,
    stage::Server,
};

const COMPONENTS: usize = 10_000;

/// Callers that get the most out of the mesh.
const CALLERS: usize = 64;

/// Times for which normal work is watched before the overload, and after it.
const BEFORE: Duration = Duration::from_secs(6);
const AFTER: Duration = Duration::from_secs(12);

/// Window after the overload, in which answers are as quick as before or not.
const WINDOW: Duration = Duration::from_secs(1);

/// Answers are as quick as before when they take at most this much longer, and as many milliseconds.
const ALLOWANCE: f64 = 2.0;
const GRACE: f64 = 10.0;

/// Measures reports of single nodes over REST.
pub async fn measure(bench: &mut BenchRun<'_>) {
    bench.attempt("overload", &["T17.goodput", "T17.recovery"], 8, overload).await;
}

async fn overload(bench: &mut BenchRun<'_>) {
    let server = records::filled(bench.stage, COMPONENTS, RecordSize::Usual, |_| false).await;
    let lasting = bench.command.scale.of(Duration::from_secs(10), Duration::from_secs(60));
    let peak = done(&server, CALLERS, BEFORE).await;
    let usual = (peak / 2.0) as u32;
    let before = percentile(&mut at_pace(&server, usual, BEFORE).await.times(), 99.0);
    let during = done(&server, 10 * CALLERS, lasting).await;
    bench.note("T17.goodput", 10 * CALLERS, 100.0 * during / peak);
    let began = Instant::now();
    let after = at_pace(&server, usual, AFTER).await;
    bench.note("T17.recovery", 10 * CALLERS, recovered(&after, began, ALLOWANCE * before + GRACE));
    server.stop().await;
}

/// Reports that were taken in a second.
async fn done(server: &Server, callers: usize, lasting: Duration) -> f64 {
    let taken = Arc::new(AtomicU64::new(0));
    let load = load::callers(callers, lasting, reports(server, Arc::clone(&taken))).await;
    taken.load(Ordering::Relaxed) as f64 / load.took.as_secs_f64()
}

async fn at_pace(server: &Server, a_second: u32, lasting: Duration) -> LoadResult {
    load::pace(a_second, lasting, reports(server, Arc::default())).await
}

type BenchReport = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Reports over REST, each of another boot than before; counts those that are taken. One that is refused is as fine as one
/// that is not, but no work.
fn reports(server: &Server, taken: Arc<AtomicU64>) -> impl Fn(usize) -> BenchReport + Clone + Send + 'static {
    let (client, url, bodies) = (reqwest::Client::new(), server.components_url(), records::report_bodies());
    let boots = Arc::new(BootReports::of(COMPONENTS));
    move |number| {
        let node = number % COMPONENTS;
        let report = client.patch(format!("{url}/{}", id(node))).json(&bodies[boots.next(node)]);
        let taken = Arc::clone(&taken);
        Box::pin(async move {
            let answer = report.send().await.expect("an answer");
            if answer.status().is_success() {
                taken.fetch_add(1, Ordering::Relaxed);
            }
            answer.bytes().await.expect("a whole answer");
        })
    }
}

/// Seconds until the end of the last window in which answers were slower than `allowed` milliseconds.
fn recovered(after: &LoadResult, began: Instant, allowed: f64) -> f64 {
    let windows = AFTER.as_secs() / WINDOW.as_secs();
    let is_slow = |window: &u64| {
        let of_window =
            after.answers.iter().filter(|(at, _)| (*at - began).as_secs() / WINDOW.as_secs() == *window);
        let mut times: Vec<_> = of_window.map(|(_, took)| *took).collect();
        percentile(&mut times, 99.0) > allowed
    };
    let last = (0..windows).rev().find(is_slow);
    last.map_or(0.0, |window| (window + 1) as f64 * WINDOW.as_secs_f64())
}
