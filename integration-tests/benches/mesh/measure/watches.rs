//! Watches: memory of idle ones, and delay of busy ones.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use chassis::{
    Settings,
    mesh::call_class::{CallClass, scope},
};
use proto::component::{WatchComponentsRequest, WatchComponentsResponse};
use tokio::task::JoinSet;
use tonic::Streaming;

use super::{BenchRun, lists};
use crate::{
    load,
    records::{self, RecordSize},
    samples::{milliseconds, percentile},
    stage::{Server, Stage},
};

const COMPONENTS: usize = 1_000;

/// Watches on one connection: below the server's limit.
const ON_ONE: usize = 100;

const CHANGES_A_SECOND: u32 = 100;

type Watch = Streaming<WatchComponentsResponse>;

/// Measures watches of 1,000 components.
pub async fn measure(bench: &mut BenchRun<'_>) {
    if bench.wants_full(&["T10.idle", "T10.p99"]) {
        bench.attempt("idle watches", &["T10.idle"], 5, idle).await;
        bench.attempt("busy watches", &["T10.p99"], 5, busy).await;
    }
}

/// Room for the streams of as many clients, of which the default leaves none for the last ones.
const STREAM_BYTES: u64 = 2 << 30;

async fn start(stage: &Stage) -> Server {
    let adjust = async |settings: &mut Settings| {
        settings.simulator.nodes = 0;
        settings.limits.stream_bytes = STREAM_BYTES;
    };
    let server = Server::start(stage, adjust).await;
    records::fill(&server, COMPONENTS, RecordSize::Usual, |_| false).await;
    server
}

async fn idle(bench: &mut BenchRun<'_>) {
    let count = 10_000;
    for _ in 0..bench.few_runs() {
        // A new server each time: memory left by ended watches would hide that of the next ones.
        let server = start(bench.stage).await;
        let before = server.memory();
        let watches = open(&server, count).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let growth = ((server.memory() - before) / 1024.0).max(0.0);
        bench.note("T10.idle", count, growth / count as f64);
        drop(watches);
        server.stop().await;
    }
}

async fn busy(bench: &mut BenchRun<'_>) {
    let server = start(bench.stage).await;
    let count = 1_000;
    let lasting = Duration::from_secs(6);
    for run in 0..bench.few_runs() {
        let changes = CHANGES_A_SECOND as usize * lasting.as_secs() as usize;
        let written: Arc<Vec<OnceLock<Instant>>> = Arc::new((0..changes).map(|_| OnceLock::new()).collect());
        let mut readers = JoinSet::new();
        for watch in open(&server, count).await {
            readers.spawn(read(watch, format!("{run}:"), Arc::clone(&written)));
        }
        let registry = server.registry();
        let write = |number: usize| {
            let (mut registry, written) = (registry.clone(), Arc::clone(&written));
            let patch = records::patch(std::iter::once(number % COMPONENTS), &format!("{run}:{number}"));
            async move {
                written[number].set(Instant::now()).expect("each change is written once");
                registry.patch_components(patch).await.expect("a patched component");
            }
        };
        load::pace(CHANGES_A_SECOND, lasting, write).await;
        let mut times = readers.join_all().await.concat();
        bench.note("T10.p99", count, percentile(&mut times, 99.0));
    }
    server.stop().await;
}

/// Opens watches of future changes.
async fn open(server: &Server, count: usize) -> Vec<Watch> {
    let resume_revision = lists::revision(&server.registry()).await;
    let mut watches = Vec::new();
    let mut registry = server.registry();
    for number in 0..count {
        if number % ON_ONE == 0 {
            registry = server.registry();
        }
        let request = WatchComponentsRequest { resume_revision };
        let watch = scope(CallClass::Watch, registry.watch_components(request)).await.expect("a watch");
        watches.push(watch.into_inner());
    }
    watches
}

/// Reads until a silence that is long against all delays; returns the delay of each change of a run.
async fn read(mut watch: Watch, run: String, written: Arc<Vec<OnceLock<Instant>>>) -> Vec<f64> {
    let mut times = Vec::new();
    while let Ok(batch) = tokio::time::timeout(Duration::from_secs(5), watch.message()).await {
        let now = Instant::now();
        for component in batch.expect("a batch").expect("no end").components {
            let noted = component.error.as_deref().and_then(|noted| noted.strip_prefix(&run));
            let number = noted.and_then(|number| number.parse::<usize>().ok());
            let at = number.and_then(|number| written[number].get());
            times.extend(at.map(|at| milliseconds(now - *at)));
        }
    }
    times
}
