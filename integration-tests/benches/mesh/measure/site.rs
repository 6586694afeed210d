//! The mesh among the systems of a real site, with the default periods of looking: what it asks of them, and the
//! workloads that the original was measured with.

use std::time::{Duration, Instant};

use proto::{component::Component, session::Progress};
use upstreams::{Pace, Plan};

use super::Bench;
use crate::{
    samples::timed,
    stage::{Server, Surroundings},
    watching::{Sessions, all_are},
};

const FLEET: u32 = 10_000;

/// What the original's peers took: a node was on after the one and reported after the other.
const POWER: Duration = Duration::from_secs(10);
const REPORT: Duration = Duration::from_secs(10);

/// For how long waiting nodes are watched.
const WAITING: Duration = Duration::from_secs(30);

/// Measures whole sessions of 10,000 nodes.
pub async fn measure(bench: &mut Bench<'_>) {
    if bench.wants(&["T15", "T15.looks"]) {
        economy(bench).await;
    }
    if bench.wants(&["O7", "O8", "O9", "O11"]) {
        as_original(bench).await;
    }
    if bench.wants_full(&["O10", "O10.calls"]) {
        waiting(bench).await;
    }
}

async fn economy(bench: &mut Bench<'_>) {
    let site = Surroundings::start(bench.stage, Plan { up: true, ..Plan::generated(FLEET) }).await;
    site.server.bos.template("image").await;
    let (mut calls, mut looks) = (Vec::new(), Vec::new());
    for _ in 0..bench.few_runs() {
        site.upstreams.reset_counts();
        let took = run(&site.server, "reboot").await;
        let (of_power, others) = site.calls();
        calls.push(others as f64 / fewest(FLEET));
        let in_five_seconds = of_power as f64 / (took.as_secs_f64() / 5.0).max(1.0);
        looks.push(in_five_seconds / f64::from(FLEET.div_ceil(2500)));
    }
    bench.note("T15", FLEET as usize, calls);
    bench.note("T15.looks", FLEET as usize, looks);
    site.server.stop().await;
}

/// Calls that a reboot cannot do without: inventory, groups and locks; off and on in the batches that PCS takes; one set of
/// boot data; wishes for configuration and looks at what came of them, in the batches that CFS takes; the image's
/// manifest and its parameters.
fn fewest(nodes: u32) -> f64 {
    let (of_power, of_configuration) = (nodes.div_ceil(2500), nodes.div_ceil(1000));
    f64::from(3 + 2 * of_power + 1 + 2 * of_configuration + 2)
}

/// Runs a session of all nodes until it is complete.
async fn run(server: &Server, operation: &str) -> Duration {
    let mut sessions = Sessions::of(server).await;
    let began = Instant::now();
    let name = server.bos.session("image", operation).await;
    sessions.reach(&name, Progress::Complete).await;
    let took = began.elapsed();
    let status = server.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_failed"], 0.0, "{status}");
    took
}

async fn as_original(bench: &mut Bench<'_>) {
    let pace = Pace { soft_off: POWER, power_on: POWER, boot: REPORT, ..Pace::default() };
    let site = Surroundings::start(bench.stage, Plan { pace: Some(pace), ..Plan::generated(FLEET) }).await;
    let server = &site.server;
    server.bos.template("image").await;
    let (mut boots, mut shutdowns, mut cpu, mut memory) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.few_runs() {
        let before = server.cpu();
        boots.push(run(server, "boot").await.as_secs_f64());
        cpu.push((server.cpu() - before).as_secs_f64());
        memory.push(server.memory() / (1 << 20) as f64);
        shutdowns.push(run(server, "shutdown").await.as_secs_f64());
    }
    bench.note("O7", FLEET as usize, boots);
    bench.note("O8", FLEET as usize, shutdowns);
    bench.note("O9", FLEET as usize, cpu);
    bench.note("O11", FLEET as usize, memory);
    site.server.stop().await;
}

/// Nodes that are up and whose configuration does not end.
async fn waiting(bench: &mut Bench<'_>) {
    let pace = Pace { configuration: Duration::from_secs(3600), ..Pace::default() };
    let site = Surroundings::start(bench.stage, Plan { pace: Some(pace), ..Plan::generated(FLEET) }).await;
    site.server.bos.template("image").await;
    site.server.bos.session("image", "boot").await;
    let is_waiting = |component: &Component| {
        component.status.as_ref().is_some_and(|status| status.status == "configuring")
    };
    let members = simulator::topology::generate(FLEET).iter().filter(|node| node.role == "Compute").count();
    all_are(&site.server, members, is_waiting).await;
    let (mut cpu, mut calls) = (Vec::new(), Vec::new());
    for _ in 0..bench.few_runs() {
        site.upstreams.reset_counts();
        let before = site.server.cpu();
        let ((), took) = timed(tokio::time::sleep(WAITING)).await;
        let used = site.server.cpu() - before;
        let (looks, others) = site.calls();
        cpu.push(used.as_secs_f64() / took.as_secs_f64() * 15.0);
        calls.push((looks + others) as f64 / took.as_secs_f64() * 60.0);
    }
    bench.note("O10", FLEET as usize, cpu);
    bench.note("O10.calls", FLEET as usize, calls);
    site.server.stop().await;
}
