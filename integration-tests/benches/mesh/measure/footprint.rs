//! What a mesh costs that has nothing to do: memory, idle work, and how long it takes to start.

use std::time::Duration;

use proto::session::Progress;
use upstreams::Plan;

use super::Bench;
use crate::{
    samples::{median, timed},
    stage::Surroundings,
    watching::Sessions,
};

const LARGE: u32 = 100_000;
const QUARTER: u32 = 25_000;

/// How long an idle mesh is watched, and how long it has to come to rest.
const IDLE: Duration = Duration::from_secs(30);
const REST: Duration = Duration::from_secs(15);

/// What an idle mesh does.
#[derive(Default)]
struct Idle {
    /// Per cent of a core.
    cpu: Vec<f64>,
    /// Calls of other systems in a second.
    calls: Vec<f64>,
    /// Transactions in a second, where they are counted.
    commits: Vec<f64>,
}

/// Measures a mesh with 100,000 nodes, all of which it has booted, and one with a quarter of them.
pub async fn measure(bench: &mut Bench<'_>) {
    let rows = ["T9", "T9.fresh", "T12", "T14", "T14.scale", "T14.calls", "T14.commits"];
    if !bench.wants_full(&rows) {
        return;
    }
    let nothing = Surroundings::start(bench.stage, Plan::generated(0)).await;
    let empty = nothing.server.memory();
    nothing.server.stop().await;

    let mut site = booted(bench, LARGE).await;
    let per_component = |memory: f64| (memory - empty) / f64::from(LARGE);
    bench.note("T9", LARGE as usize, vec![per_component(site.server.memory())]);
    let idle = watch_idle(bench, &site).await;
    let (mut starts, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..bench.runs() {
        starts.push(site.server.start_again().await.as_secs_f64());
        tokio::time::sleep(REST).await;
        memory.push(per_component(site.server.memory()));
    }
    bench.note("T12", LARGE as usize, starts);
    bench.note("T9.fresh", LARGE as usize, memory);
    site.server.stop().await;

    if bench.wants(&["T14.scale"]) {
        let site = booted(bench, QUARTER).await;
        let of_quarter = median(&watch_idle(bench, &site).await.cpu);
        // The clock of processes has steps of 10 ms, below which nothing can be told apart.
        let step = 100.0 * 0.01 / IDLE.as_secs_f64();
        bench.note("T14.scale", LARGE as usize, vec![median(&idle.cpu).max(step) / of_quarter.max(step)]);
        site.server.stop().await;
    }
    bench.note("T14", LARGE as usize, idle.cpu);
    bench.note("T14.calls", LARGE as usize, idle.calls);
    match idle.commits.is_empty() {
        true => bench.leave(&["T14.commits"], "SQLite does not count transactions"),
        false => bench.note("T14.commits", LARGE as usize, idle.commits),
    }
}

/// A mesh at rest that has rebooted so many nodes.
async fn booted(bench: &Bench<'_>, nodes: u32) -> Surroundings {
    let site = Surroundings::start(bench.stage, Plan { up: true, ..Plan::generated(nodes) }).await;
    site.server.bos.template("image").await;
    let mut sessions = Sessions::of(&site.server).await;
    let name = site.server.bos.session("image", "reboot").await;
    sessions.reach(&name, Progress::Complete).await;
    tokio::time::sleep(REST).await;
    site
}

async fn watch_idle(bench: &Bench<'_>, site: &Surroundings) -> Idle {
    let mut idle = Idle::default();
    for _ in 0..bench.few_runs() {
        site.upstreams.reset_counts();
        let (cpu, commits) = (site.server.cpu(), bench.commits().await);
        let ((), took) = timed(tokio::time::sleep(IDLE)).await;
        let used = site.server.cpu() - cpu;
        let in_a_second = |count: u64| count as f64 / took.as_secs_f64();
        let (looks, others) = site.calls();
        idle.cpu.push(100.0 * used.as_secs_f64() / took.as_secs_f64());
        idle.calls.push(in_a_second(looks + others));
        let after = bench.commits().await;
        idle.commits.extend(commits.zip(after).map(|(before, after)| in_a_second(after - before)));
    }
    idle
}
