//! Sessions of nodes with instant hardware: the remaining time is the mesh's own.

use proto::session::Progress;
use simulator::topology;

use super::BenchRun;
use crate::{
    samples::{median, milliseconds, timed},
    stage::{Server, Stage},
    watching::{SessionWatch, discovered},
};

/// A fleet and a quarter of it: the cost of a node must not grow with their number.
const FLEET: u32 = 10_000;
const QUARTER: u32 = 2_500;
const LARGE: u32 = 100_000;

const ROWS: [&str; 4] = ["T1", "T11", "T11.post", "T1.scale"];

/// Measures reboots of whole fleets.
pub async fn measure(bench: &mut BenchRun<'_>) {
    bench.attempt("reboots of 10,000", &ROWS, 8, of_usual_fleets).await;
    if bench.wants_full(&["T2", "T11b"]) {
        bench.attempt("a reboot of 100,000", &["T2", "T11b"], 8, of_large_fleet).await;
    }
}

async fn of_usual_fleets(bench: &mut BenchRun<'_>) {
    let server = fleet(bench.stage, FLEET, 0.0).await;
    let mut cpu = Vec::new();
    for _ in 0..bench.runs() {
        let reboot = reboot(&server, FLEET).await;
        bench.note("T1", FLEET as usize, reboot.complete);
        bench.note("T11", FLEET as usize, reboot.running);
        bench.note("T11.post", FLEET as usize, reboot.post);
        cpu.push(reboot.cpu);
    }
    server.stop().await;
    if bench.wants(&["T1.scale"]) {
        let server = fleet(bench.stage, QUARTER, 0.0).await;
        let mut of_quarter = Vec::new();
        for _ in 0..bench.runs() {
            of_quarter.push(reboot(&server, QUARTER).await.cpu);
        }
        bench.note("T1.scale", FLEET as usize, median(&cpu) / median(&of_quarter));
        server.stop().await;
    }
}

async fn of_large_fleet(bench: &mut BenchRun<'_>) {
    let server = fleet(bench.stage, LARGE, 0.0).await;
    let reboot = reboot(&server, LARGE).await;
    bench.note("T2", LARGE as usize, reboot.complete);
    bench.note("T11b", LARGE as usize, reboot.running);
    server.stop().await;
}

/// Times of a reboot.
struct RebootTimes {
    /// Creation, in milliseconds.
    post: f64,
    /// Time from creation until running, in seconds.
    running: f64,
    /// Time from creation until complete, in seconds.
    complete: f64,
    /// Time of all cores, the simulated fleet's included, in seconds for each node.
    cpu: f64,
}

async fn reboot(server: &Server, nodes: u32) -> RebootTimes {
    let mut sessions = SessionWatch::of(server).await;
    let before = server.cpu();
    let (name, post) = timed(server.bos.session("image", "reboot")).await;
    let ((), running) = timed(sessions.reach(&name, Progress::Running)).await;
    let ((), complete) = timed(sessions.reach(&name, Progress::Complete)).await;
    let cpu = (server.cpu() - before).as_secs_f64() / f64::from(nodes);
    succeeded(server, &name).await;
    RebootTimes {
        post: milliseconds(post),
        running: (post + running).as_secs_f64(),
        complete: (post + running + complete).as_secs_f64(),
        cpu,
    }
}

/// Checks that no node of a session failed.
///
/// # Panics
/// When one did.
pub async fn succeeded(server: &Server, name: &str) {
    let status = server.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_failed"], 0.0, "{status}");
}

/// Returns the number of nodes of a fleet in a session of all of them.
pub fn members(nodes: u32) -> usize {
    topology::generate(nodes).iter().filter(|node| node.role == "Compute").count()
}

/// A mesh with a simulated fleet that is on, and a template for it.
///
/// # Panics
/// When it does not start.
pub async fn fleet(stage: &Stage, nodes: u32, speed: f64) -> Server {
    let server = Server::start(stage, async |settings| {
        settings.simulator.nodes = nodes;
        settings.simulator.initial_power = "on".into();
        settings.simulator.speed = speed;
    })
    .await;
    discovered(&server, nodes as usize).await;
    server.bos.template("image").await;
    server
}
