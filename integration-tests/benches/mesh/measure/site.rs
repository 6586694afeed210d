//! The mesh among the systems of a real site, with the default periods of looking: what it asks of them, and the
//! workloads that the original was measured with.

use std::time::Duration;

use proto::{component::Component, session::Progress};
use upstreams::{Pace, Plan};

use super::{Bench, ONE_DATABASE, sessions};
use crate::{
    samples::timed,
    stage::{Server, Surroundings},
    watching::{Sessions, all_are},
};

const FLEET: u32 = 10_000;

/// What the original's peers took: a node was on after the one and reported after the other.
const POWER: Duration = Duration::from_secs(10);
const REPORT: Duration = Duration::from_secs(10);

/// What one of three steps of a small reboot took on the hardware that the original was measured with.
const STEP: Duration = Duration::from_secs(2);

/// The share of their time that hardware and pauses take in a reboot of which the looks are counted.
const SHARE: f64 = 0.1;

/// The least fleet with three nodes that sessions take.
const FEW: u32 = 4;

/// For how long waiting nodes are watched each time.
const WAITING: Duration = Duration::from_secs(20);

/// Sizes of fleets that the original was measured with, and the rows for until running, until booted, until shut down,
/// CPU of the boot and
/// memory, of which that of 30,000 is not known.
const ORIGINAL: [(u32, &[&str]); 3] = [
    (1_000, &["O6.1k", "O7.1k", "O8.1k", "O9.1k", "O11.1k"]),
    (10_000, &["O6", "O7", "O8", "O9", "O11"]),
    (30_000, &["O6.30k", "O7.30k", "O8.30k", "O9.30k"]),
];

const WAITING_ROWS: [&str; 2] = ["O10", "O10.calls"];

/// Measures whole sessions.
pub async fn measure(bench: &mut Bench<'_>) {
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
    bench.attempt("a reboot of few nodes", &["O12"], 3, few_nodes).await;
}

async fn economy(bench: &mut Bench<'_>) {
    let site = Surroundings::start(bench.stage, Plan { up: true, ..Plan::quick(FLEET) }).await;
    site.server.bos.template("image").await;
    for _ in 0..bench.few_runs() {
        site.upstreams.reset_counts();
        run(&site.server, "reboot").await;
        println!("{}", site.operations());
        bench.note("T15", FLEET as usize, site.calls().1 as f64 / fewest(FLEET));
    }
    site.server.stop().await;
}

/// Looks at power cost nothing by themselves, and a reboot without hardware has one of each kind; how often they are made
/// shows while hardware takes its time. So this is a reboot of hardware as it is, of which a whole one takes a quarter
/// of an hour: hardware, pauses between looks and the five seconds all take a share of their time.
async fn looks_at_power(bench: &mut Bench<'_>) {
    let plan = Plan { up: true, ..Plan::quick(FLEET).at_speed(SHARE) };
    let site = Surroundings::start_with(bench.stage, plan, |settings| {
        settings.power.follow_seconds *= SHARE;
        settings.power.poll_seconds *= SHARE;
    })
    .await;
    site.server.bos.template("image").await;
    site.upstreams.reset_counts();
    let took = run(&site.server, "reboot").await.complete;
    println!("{}", site.operations());
    let in_five_seconds = site.calls().0 as f64 / (took / (5.0 * SHARE));
    bench.note("T15.looks", FLEET as usize, in_five_seconds / f64::from(FLEET.div_ceil(2500)));
    site.server.stop().await;
}

/// Calls that a reboot cannot do without: inventory, groups and locks; off and on in the batches that PCS takes; one set of
/// boot data; wishes for configuration and looks at what came of them, in the batches that CFS takes; the image's
/// manifest and its parameters, and what it is made for and that its root file system is to be served.
fn fewest(nodes: u32) -> f64 {
    let (of_power, of_configuration) = (nodes.div_ceil(2500), nodes.div_ceil(1000));
    f64::from(3 + 2 * of_power + 1 + 2 * of_configuration + 2 + 2)
}

/// How long a session took, in seconds.
struct Run {
    running: f64,
    complete: f64,
}

/// Runs a session of all nodes until it is complete.
async fn run(server: &Server, operation: &str) -> Run {
    let mut watched = Sessions::of(server).await;
    let (name, posted) = timed(server.bos.session("image", operation)).await;
    let ((), running) = timed(watched.reach(&name, Progress::Running)).await;
    let ((), complete) = timed(watched.reach(&name, Progress::Complete)).await;
    sessions::succeeded(server, &name).await;
    let running = posted + running;
    Run { running: running.as_secs_f64(), complete: (running + complete).as_secs_f64() }
}

async fn as_original(bench: &mut Bench<'_>, nodes: u32, rows: &[&str]) {
    let pace = Pace { soft_off: POWER, power_on: POWER, boot: REPORT, ..Pace::default() };
    let site = Surroundings::start(bench.stage, Plan { pace: Some(pace), ..Plan::quick(nodes) }).await;
    let server = &site.server;
    server.bos.template("image").await;
    // More than one run of the others would take minutes and show the same.
    let runs = if nodes == FLEET { bench.few_runs() } else { 1 };
    for _ in 0..runs {
        let before = server.cpu();
        let boot = run(server, "boot").await;
        let cpu = (server.cpu() - before).as_secs_f64();
        let memory = server.memory() / (1 << 20) as f64;
        let shutdown = run(server, "shutdown").await.complete;
        for (row, value) in rows.iter().zip([boot.running, boot.complete, shutdown, cpu, memory]) {
            bench.note(row, nodes as usize, value);
        }
    }
    site.server.stop().await;
}

/// Nodes that are up and whose configuration does not end.
async fn waiting(bench: &mut Bench<'_>) {
    let pace = Pace { configuration: Duration::from_secs(3600), ..Pace::default() };
    let site = Surroundings::start(bench.stage, Plan { pace: Some(pace), ..Plan::quick(FLEET) }).await;
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

async fn few_nodes(bench: &mut Bench<'_>) {
    let pace = Pace { soft_off: STEP, power_on: STEP, boot: STEP, ..Pace::default() };
    let plan = Plan { pace: Some(pace), up: true, ..Plan::quick(FEW) };
    let site = Surroundings::start(bench.stage, plan).await;
    site.server.bos.template("image").await;
    for _ in 0..bench.runs() {
        let took = run(&site.server, "reboot").await.complete;
        bench.note("O12", sessions::members(FEW), took);
    }
    site.server.stop().await;
}
