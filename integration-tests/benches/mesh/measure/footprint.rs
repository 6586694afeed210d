//! A fleet of 100,000 nodes that has booted: memory and processor time of the idle mesh, and times of its start and of
//! its lists.

use std::time::Duration;

use proto::session::Progress;
use upstreams::MachinePlan;

use super::{BenchRun, lists};
use crate::{
    records::{self, RecordSize},
    samples::{median, timed},
    stage::PlayedSurroundings,
    watching::SessionWatch,
};

const LARGE: u32 = 100_000;
const QUARTER: u32 = 25_000;

/// Components that filtered lists show.
const CHOSEN: usize = 1_000;

/// Time for which an idle mesh is watched each time, and time for it to come to rest.
const IDLE: Duration = Duration::from_secs(20);
const REST: Duration = Duration::from_secs(10);

/// Per cent of a core below which idle meshes cannot be distinguished: the clock of processes has steps of 10 ms.
const NOISE: f64 = 0.5;

/// Pause after a start, in which memory of the start is returned.
const AFTER_START: Duration = Duration::from_secs(5);

const MEMORY: [&str; 2] = ["T9", "T9.fresh"];
const IDLING: [&str; 4] = ["T14", "T14.scale", "T14.calls", "T14.commits"];
const STARTS: [&str; 2] = ["T12", "T9.fresh"];

/// Measures a mesh with 100,000 nodes, all of which it has booted, and one with a quarter of them.
pub async fn measure(bench: &mut BenchRun<'_>) {
    let of_lists = [&lists::WHOLE[..], &lists::FILTERED].concat();
    let rows = [&MEMORY[..], &["T7.storm"], &IDLING, &STARTS, &of_lists].concat();
    if !bench.wants_full(&rows) {
        return;
    }
    let empty =
        bench.attempt("memory of an empty mesh", &MEMORY, 2, memory_of_empty).await.unwrap_or_default();
    let booting = async |bench: &mut BenchRun<'_>| booted(bench, LARGE).await;
    let Some(mut site) = bench.attempt("reboot of 100,000 to measure on", &rows, 10, booting).await else {
        return;
    };
    let memory = |site: &PlayedSurroundings| (site.server.memory() - empty) / f64::from(LARGE);
    bench.attempt("memory", &["T9"], 1, async |bench| bench.note("T9", LARGE as usize, memory(&site))).await;
    let storm = async |bench: &mut BenchRun<'_>| lists::storm(bench, &site.server, LARGE as usize).await;
    bench.attempt("lists at a time", &["T7.storm"], 5, storm).await;
    bench.attempt("idling", &IDLING, 5, async |bench| idling(bench, &site).await).await;
    let starts = async |bench: &mut BenchRun<'_>| {
        for _ in 0..bench.runs() {
            bench.note("T12", LARGE as usize, site.server.start_again().await.as_secs_f64());
            tokio::time::sleep(AFTER_START).await;
            bench.note("T9.fresh", LARGE as usize, memory(&site));
        }
    };
    bench.attempt("cold starts", &STARTS, 10, starts).await;
    let whole = async |bench: &mut BenchRun<'_>| lists::whole(bench, &site.server, LARGE as usize).await;
    bench.attempt("whole lists", &lists::WHOLE, 5, whole).await;
    let filtered = async |bench: &mut BenchRun<'_>| {
        choose(&site).await;
        lists::filtered(bench, &site.server, CHOSEN, LARGE as usize).await;
    };
    bench.attempt("filtered lists", &lists::FILTERED, 5, filtered).await;
}

async fn memory_of_empty(bench: &mut BenchRun<'_>) -> f64 {
    let nothing = PlayedSurroundings::start(bench.stage, MachinePlan::quick(0)).await;
    tokio::time::sleep(AFTER_START).await;
    nothing.server.memory()
}

/// A mesh at rest that has rebooted so many nodes, with as much text as on a large machine.
async fn booted(bench: &BenchRun<'_>, nodes: u32) -> PlayedSurroundings {
    let site =
        PlayedSurroundings::start(bench.stage, MachinePlan { up: true, ..MachinePlan::quick(nodes) }).await;
    let lengthen = |template: &mut serde_json::Value| {
        template["boot_sets"]["compute"]["kernel_parameters"] = records::parameters(RecordSize::Long).into();
    };
    site.server.bos.template_with("image", lengthen).await;
    let mut sessions = SessionWatch::of(&site.server).await;
    let name = site.server.bos.session("image", "reboot").await;
    sessions.reach(&name, Progress::Complete).await;
    tokio::time::sleep(REST).await;
    site
}

/// Makes some components those of a session of their own that failed.
async fn choose(site: &PlayedSurroundings) {
    let all = site.upstreams.ids();
    let chosen = all.iter().step_by(all.len() / CHOSEN).take(CHOSEN);
    let request = records::failed_of_session(chosen, "chosen");
    site.server.registry().patch_components(request).await.expect("patched components");
}

async fn idling(bench: &mut BenchRun<'_>, site: &PlayedSurroundings) {
    let note = |bench: &mut BenchRun<'_>, row: &str, value| bench.note(row, LARGE as usize, value);
    let cpu = watch_idle(bench, site, bench.few_runs(), note).await;
    if bench.commits().await.is_none() {
        bench.leave(&["T14.commits"], "SQLite does not count transactions");
    }
    if bench.wants(&["T14.scale"]) {
        let quarter = booted(bench, QUARTER).await;
        let of_quarter = watch_idle(bench, &quarter, 1, |_, _, _| {}).await;
        bench.note("T14.scale", LARGE as usize, cpu.max(NOISE) / of_quarter.max(NOISE));
    }
}

/// Returns the CPU, in per cent of a core, and records every figure.
async fn watch_idle(
    bench: &mut BenchRun<'_>,
    site: &PlayedSurroundings,
    runs: u32,
    note: impl Fn(&mut BenchRun<'_>, &str, f64),
) -> f64 {
    let mut cpu = Vec::new();
    for _ in 0..runs {
        site.upstreams.reset_counts();
        let (before, commits) = (site.server.cpu(), bench.commits().await);
        let ((), took) = timed(tokio::time::sleep(IDLE)).await;
        let used = site.server.cpu() - before;
        let in_a_second = |count: u64| count as f64 / took.as_secs_f64();
        let (looks, others) = site.calls();
        cpu.push(100.0 * used.as_secs_f64() / took.as_secs_f64());
        note(bench, "T14", 100.0 * used.as_secs_f64() / took.as_secs_f64());
        note(bench, "T14.calls", in_a_second(looks + others));
        if let Some((before, after)) = commits.zip(bench.commits().await) {
            note(bench, "T14.commits", in_a_second(after - before));
        }
    }
    median(&cpu)
}
