//! The mesh among the systems of a real site, with default poll periods: its calls, and the workloads of the original.

use std::{sync::Arc, time::Duration};

use integration_tests::{
    authority::CertificateAuthority,
    redfish::{
        emulator::{self, RedfishEmulator},
        nodes::RedfishNodes,
        site::{RedfishPlace, RedfishSite, id},
    },
};
use proto::{component::Component, session::Progress};
use upstreams::{MachinePlan, NodePace};

use super::{BenchRun, ONE_DATABASE, sessions};
use crate::{
    samples::timed,
    stage::{PlayedSurroundings, Server},
    targets::target,
    watching::{SessionWatch, all_are, discovered},
};

const FLEET: u32 = 10_000;

/// Times of the original's peers until a node was on, and until it reported.
const POWER: Duration = Duration::from_secs(10);
const REPORT: Duration = Duration::from_secs(10);

/// Step times of a small reboot on the original's hardware.
const OFF: Duration = Duration::from_millis(100);
const ON: Duration = Duration::from_secs(5);
const UP: Duration = Duration::from_secs(1);

/// An image that sites behind BMCs have.
const IMAGE: &str = "image-1";

/// Scale of hardware, power service and pauses in the reboot whose polls are counted.
const SHARE: f64 = 0.1;

/// The fleet of a small reboot.
const FEW: u32 = 3;

/// Time for which waiting nodes are watched each time.
const WAITING: Duration = Duration::from_secs(20);

/// Sizes of fleets in the measurements of the original, and the rows for until running, until booted, until shut down,
/// CPU of the boot and memory; the memory of 30,000 nodes is unknown.
const ORIGINAL: [(u32, &[&str]); 3] = [
    (1_000, &["O6.1k", "O7.1k", "O8.1k", "O9.1k", "O11.1k"]),
    (10_000, &["O6", "O7", "O8", "O9", "O11"]),
    (30_000, &["O6.30k", "O7.30k", "O8.30k", "O9.30k"]),
];

const WAITING_ROWS: [&str; 2] = ["O10", "O10.calls"];

/// Measures whole sessions.
pub async fn measure(bench: &mut BenchRun<'_>) {
    bench.attempt("upstream calls of reboots", &["T15"], 5, economy).await;
    if bench.is_first_of_two() {
        bench.leave(&["T15.looks"], ONE_DATABASE);
    } else {
        bench.attempt("looks at power during a reboot", &["T15.looks"], 15, looks_at_power).await;
    }
    for (nodes, rows) in ORIGINAL {
        let what = format!("the original's boots of {nodes}");
        if nodes != FLEET && bench.is_first_of_two() {
            bench.leave(rows, ONE_DATABASE);
            continue;
        }
        if nodes == FLEET || bench.wants_full(rows) {
            bench.attempt(&what, rows, 8, async |bench| as_original(bench, nodes, rows).await).await;
        }
    }
    if bench.wants_full(&WAITING_ROWS) {
        bench.attempt("nodes that wait for configuration", &WAITING_ROWS, 5, waiting).await;
    }
    bench.attempt("reboots of few nodes", &["O12"], 20, few_nodes).await;
    bench.attempt("reboots of few nodes behind BMCs", &["O12.redfish"], 5, behind_bmcs).await;
}

async fn economy(bench: &mut BenchRun<'_>) {
    let site =
        PlayedSurroundings::start(bench.stage, MachinePlan { up: true, ..target("T15").power.plan(FLEET) })
            .await;
    site.server.bos.template("image").await;
    for _ in 0..bench.few_runs() {
        site.upstreams.reset_counts();
        run(&site.server, "image", "reboot").await;
        println!("{}", site.operations());
        bench.note("T15", FLEET as usize, site.calls().1 as f64 / fewest(FLEET));
    }
    site.server.stop().await;
}

/// Measures the frequency of power polls, which shows only while hardware takes its time: a reboot of instant hardware
/// has one poll of each kind. A whole reboot of real hardware takes a quarter of an hour, so hardware, the power
/// service, pauses between polls and the five seconds are all scaled.
async fn looks_at_power(bench: &mut BenchRun<'_>) {
    let plan = MachinePlan { up: true, ..target("T15.looks").power.plan(FLEET) };
    let site = PlayedSurroundings::start_with(bench.stage, plan, |settings| {
        settings.power.follow_seconds *= SHARE;
        settings.power.poll_seconds *= SHARE;
    })
    .await;
    site.server.bos.template("image").await;
    site.upstreams.reset_counts();
    let took = run(&site.server, "image", "reboot").await.complete;
    println!("{}", site.operations());
    let in_five_seconds = site.calls().0 as f64 / (took / (5.0 * SHARE));
    bench.note("T15.looks", FLEET as usize, in_five_seconds / f64::from(FLEET.div_ceil(2500)));
    site.server.stop().await;
}

/// The fewest calls of a reboot: inventory, groups and locks; off and on in the batches that PCS accepts; one set of
/// boot data; configuration changes and their polls, in the batches that CFS accepts; the image's manifest, parameters
/// and architecture, and the projection of its root file system.
fn fewest(nodes: u32) -> f64 {
    let (of_power, of_configuration) = (nodes.div_ceil(2500), nodes.div_ceil(1000));
    f64::from(3 + 2 * of_power + 1 + 2 * of_configuration + 2 + 2)
}

/// Durations of a session, in seconds.
struct SessionTimes {
    running: f64,
    complete: f64,
}

/// Runs a session of all nodes until it is complete.
async fn run(server: &Server, template: &str, operation: &str) -> SessionTimes {
    let mut watched = SessionWatch::of(server).await;
    let (name, posted) = timed(server.bos.session(template, operation)).await;
    let ((), running) = timed(watched.reach(&name, Progress::Running)).await;
    let ((), complete) = timed(watched.reach(&name, Progress::Complete)).await;
    sessions::succeeded(server, &name).await;
    let running = posted + running;
    SessionTimes { running: running.as_secs_f64(), complete: (running + complete).as_secs_f64() }
}

async fn as_original(bench: &mut BenchRun<'_>, nodes: u32, rows: &[&str]) {
    let pace = NodePace { soft_off: POWER, power_on: POWER, boot: REPORT, ..NodePace::default() };
    let site = PlayedSurroundings::start(
        bench.stage,
        MachinePlan { pace: Some(pace), ..target(rows[0]).power.plan(nodes) },
    )
    .await;
    let server = &site.server;
    server.bos.template("image").await;
    // More than one run of the others would take minutes and show the same.
    let runs = if nodes == FLEET { bench.few_runs() } else { 1 };
    for _ in 0..runs {
        let before = server.cpu();
        let boot = run(server, "image", "boot").await;
        let cpu = (server.cpu() - before).as_secs_f64();
        let memory = server.memory() / (1 << 20) as f64;
        let shutdown = run(server, "image", "shutdown").await.complete;
        for (row, value) in rows.iter().zip([boot.running, boot.complete, shutdown, cpu, memory]) {
            bench.note(row, nodes as usize, value);
        }
    }
    site.server.stop().await;
}

/// Measures polls of nodes that are up and whose configuration never ends.
async fn waiting(bench: &mut BenchRun<'_>) {
    let pace = NodePace { configuration: Duration::from_secs(3600), ..NodePace::default() };
    let site = PlayedSurroundings::start(
        bench.stage,
        MachinePlan { pace: Some(pace), ..target("O10").power.plan(FLEET) },
    )
    .await;
    site.server.bos.template("image").await;
    site.server.bos.session("image", "boot").await;
    let is_waiting = |component: &Component| {
        component.status.as_ref().is_some_and(|status| status.status == "configuring")
    };
    all_are(&site.server, sessions::members(FLEET), is_waiting).await;
    for _ in 0..bench.few_runs() {
        site.upstreams.reset_counts();
        let before = site.server.cpu();
        let ((), took) = timed(tokio::time::sleep(WAITING)).await;
        let used = site.server.cpu() - before;
        let (looks, others) = site.calls();
        println!("{}", site.operations());
        bench.note("O10", FLEET as usize, used.as_secs_f64() / took.as_secs_f64() * 15.0);
        bench.note("O10.calls", FLEET as usize, (looks + others) as f64 / took.as_secs_f64() * 60.0);
    }
    site.server.stop().await;
}

/// Measures reboots of a few nodes. Their duration through a power service that reads its hardware now and then depends
/// on the time of their beginning. So reboots begin at times that are spread evenly between two readings.
async fn few_nodes(bench: &mut BenchRun<'_>) {
    let pace = NodePace { soft_off: OFF, power_on: ON, boot: UP, ..NodePace::default() };
    let plan = MachinePlan { pace: Some(pace), up: true, ..target("O12").power.plan(FEW) };
    let period = plan.power.sampling_period;
    let site = PlayedSurroundings::start(bench.stage, plan).await;
    site.server.bos.template("image").await;
    for number in 0..bench.runs() {
        let share = (f64::from(number) + 0.5) / f64::from(bench.runs());
        tokio::time::sleep(site.upstreams.until_reading() + period.mul_f64(share)).await;
        site.upstreams.reset_counts();
        let took = run(&site.server, "image", "reboot").await.complete;
        println!("    begun {:.1} s after a reading: {took:.1} s", period.as_secs_f64() * share);
        println!("{}", site.operations());
        bench.note("O12", sessions::members(FEW), took);
    }
    site.server.stop().await;
}

/// Measures the same three nodes behind BMCs that the mesh drives itself.
async fn behind_bmcs(bench: &mut BenchRun<'_>) {
    let Some(program) = emulator::program() else {
        bench
            .leave(&["O12.redfish"], "integration-tests/run installs the emulator of BMCs, which is missing");
        return;
    };
    let authority = CertificateAuthority::new();
    let count = u32::try_from(sessions::members(FEW)).expect("few nodes");
    let systems: Vec<_> = (0..count).map(id).collect();
    let systems: Vec<_> = systems.iter().map(String::as_str).collect();
    let on_after = u32::try_from(ON.as_secs()).expect("some seconds");
    let emulator = Arc::new(RedfishEmulator::start(&program, &authority, &systems, &[], on_after).await);
    let mut site = RedfishSite::new(&authority);
    site.add_bmc("bmc", &emulator.url);
    for system in 0..systems.len() {
        site.add_node(&RedfishPlace { bmc: "bmc", system });
    }
    let server = Server::start(bench.stage, async |settings| site.set(settings)).await;
    discovered(&server, systems.len()).await;
    let _nodes = RedfishNodes::boot(emulator, &server.bos, count, ON + UP);
    server.bos.template(IMAGE).await;
    run(&server, IMAGE, "boot").await;
    for _ in 0..bench.runs() {
        let took = run(&server, IMAGE, "reboot").await.complete;
        bench.note("O12.redfish", systems.len(), took);
    }
    server.stop().await;
}
