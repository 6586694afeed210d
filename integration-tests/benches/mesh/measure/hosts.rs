//! Bare-metal hosts of a rack without hardware delay: from creation to available, at rest, in memory, and as clients of
//! Kubernetes read them.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, future::join_all, stream};
use integration_tests::hosts::RackHosts;
use proto::host::{Host, HostSpec};
use tokio::time::{interval, sleep, timeout};

use super::{BenchRun, lists};
use crate::{
    records::{self, RecordSize},
    samples::{milliseconds, percentile, timed},
    stage::Server,
};

const FEW: usize = 1_000;
const MANY: usize = 10_000;

/// Hosts that are created at the same time.
const AT_ONCE: usize = 64;

/// Wishes in a second.
const RATE: u64 = 200;

/// Time for hosts to come to rest, and time for which they are watched then: three listings of a backend.
const REST: Duration = Duration::from_secs(5);
const AT_REST: Duration = Duration::from_secs(30);

/// Limit of any wait.
const PATIENCE: Duration = Duration::from_secs(600);

/// Measures hosts.
pub async fn measure(bench: &mut BenchRun<'_>) {
    bench.attempt("1,000 hosts", &["H1", "H2", "H3.p50", "H3.p99"], 15, few).await;
    if bench.wants_full(&["H1.10k"]) {
        bench.attempt("10,000 hosts", &["H1.10k"], 30, many).await;
    }
    bench.attempt("hosts at rest", &["H4", "H5", "H5.watch"], 15, at_rest).await;
}

async fn few(bench: &mut BenchRun<'_>) {
    for _ in 0..bench.few_runs() {
        let server = Server::empty(bench.stage).await;
        let hosts = server.hosts();
        bench.note("H1", FEW, become_available(&hosts, FEW, |_, _| {}).await.as_secs_f64());
        sleep(REST).await;
        bench.note("H2", FEW, listings_in_ten_seconds(&hosts).await);
        let mut latencies = decisions(&hosts).await;
        for (row, percent) in [("H3.p50", 50.0), ("H3.p99", 99.0)] {
            bench.note(row, FEW, percentile(&mut latencies, percent));
        }
        server.stop().await;
    }
}

async fn many(bench: &mut BenchRun<'_>) {
    for _ in 0..bench.few_runs() {
        let server = Server::empty(bench.stage).await;
        let took = become_available(&server.hosts(), MANY, |_, _| {}).await;
        bench.note("H1.10k", MANY, took.as_secs_f64());
        server.stop().await;
    }
}

async fn at_rest(bench: &mut BenchRun<'_>) {
    let count = bench.command.scale.of(FEW, MANY);
    let server = Server::empty(bench.stage).await;
    sleep(REST).await;
    let empty = server.memory();
    become_available(&server.hosts(), count, do_not_inspect).await;
    sleep(REST).await;
    bench.note("H4", count, (server.memory() - empty) / count as f64 / 1024.0);

    records::fill(&server, count, RecordSize::Usual, |_| false).await;
    let client = reqwest::Client::new();
    let hosts = server.kubernetes_hosts_url();
    for _ in 0..bench.runs() {
        let components = lists::rest(&client, &server.components_url()).await.1.as_secs_f64();
        let listed = lists::rest(&client, &hosts).await.1.as_secs_f64();
        let watched = timed(watch_all(&client, &hosts, count)).await.1.as_secs_f64();
        bench.note("H5", count, listed / components);
        bench.note("H5.watch", count, watched / components);
    }
    server.stop().await;
}

/// Watches until so many hosts have arrived.
async fn watch_all(client: &reqwest::Client, url: &str, count: usize) {
    let mut answer = client.get(format!("{url}?watch=true")).send().await.expect("a watch");
    let mut lines = 0;
    while lines < count {
        let part = answer.chunk().await.expect("a watch").expect("a watch without end");
        lines += part.iter().filter(|byte| **byte == b'\n').count();
    }
}

fn do_not_inspect(index: usize, spec: &mut HostSpec) {
    spec.inspection_mode = "disabled".to_owned();
    spec.boot_mac_address = format!("02:00:00:00:{:02x}:{:02x}", index / 256, index % 256);
}

/// Creates so many hosts, and returns the time until the last one is available.
async fn become_available(
    hosts: &RackHosts,
    count: usize,
    adjust: impl Fn(usize, &mut HostSpec) + Copy,
) -> Duration {
    hosts.log_in().await;
    let create = async |index| hosts.create_with(&name(index), |spec| adjust(index, spec)).await;
    let created = stream::iter(0..count).map(create).buffer_unordered(AT_ONCE).collect::<Vec<()>>();
    let is_available = |host: &Host| state(host) == "available";
    let (_, took) = timed(async { tokio::join!(created, all_are(hosts, count, is_available)) }).await;
    took
}

async fn listings_in_ten_seconds(hosts: &RackHosts) -> f64 {
    let before = hosts.listings().await;
    let ((), took) = timed(sleep(AT_REST)).await;
    (hosts.listings().await - before) as f64 / took.as_secs_f64() * 10.0
}

/// Has every host switched off, one after the other, and returns the milliseconds until a watcher has seen the decision
/// about each.
async fn decisions(hosts: &RackHosts) -> Vec<f64> {
    let calls = |host: &Host| host.progress.as_ref().map_or(0, |progress| progress.calls);
    let mut before = HashMap::new();
    let mut watch = hosts.watch().await;
    while before.len() < FEW {
        let part = watch.message().await.expect("a watch").expect("a watch without end");
        before.extend(part.hosts.iter().map(|host| (name_of(host), calls(host))));
    }
    let is_decided = |host: &Host| calls(host) > before[&name_of(host)];
    let (begun, decided) = tokio::join!(switch_off(hosts), all_are(hosts, FEW, is_decided));
    begun.iter().map(|(name, since)| milliseconds(decided[name] - *since)).collect()
}

/// Has every host switched off, at a steady rate, and returns when each was.
async fn switch_off(hosts: &RackHosts) -> HashMap<String, Instant> {
    let mut ticks = interval(Duration::from_secs(1) / u32::try_from(RATE).expect("a small number"));
    let (mut begun, mut calls) = (HashMap::new(), Vec::new());
    for name in (0..FEW).map(name) {
        ticks.tick().await;
        begun.insert(name.clone(), Instant::now());
        let hosts = hosts.clone();
        calls.push(tokio::spawn(async move { hosts.switch_off(&name).await }));
    }
    join_all(calls).await;
    begun
}

/// Waits until `count` hosts are as `wanted`, and returns when that was seen first of each.
async fn all_are(
    hosts: &RackHosts,
    count: usize,
    wanted: impl Fn(&Host) -> bool,
) -> HashMap<String, Instant> {
    let mut seen = HashMap::new();
    let mut watch = hosts.watch().await;
    while seen.len() < count {
        let part = timeout(PATIENCE, watch.message()).await.expect("hosts in time");
        let now = Instant::now();
        for host in part.expect("a watch").expect("a watch without end").hosts {
            if wanted(&host) {
                seen.entry(name_of(&host)).or_insert(now);
            }
        }
    }
    seen
}

fn name(index: usize) -> String {
    format!("host-{index}")
}

fn name_of(host: &Host) -> String {
    host.meta.as_ref().map(|meta| meta.name.clone()).unwrap_or_default()
}

fn state(host: &Host) -> &str {
    let provisioning = host.status.as_ref().and_then(|status| status.provisioning.as_ref());
    provisioning.map_or("", |provisioning| &provisioning.state)
}
