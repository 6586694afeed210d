//! Sessions of nodes whose hardware takes no time: what remains is the mesh's own.

use proto::session::Progress;

use super::{Bench, latency};
use crate::{
    samples::{median, milliseconds, percentile, timed},
    stage::{Server, Stage},
    watching::{Sessions, discovered},
};

/// A fleet, and a quarter of it: what a node costs must not grow with their number.
const FLEET: u32 = 10_000;
const QUARTER: u32 = 2_500;
const LARGE: u32 = 100_000;

/// What came of some reboots of one fleet.
#[derive(Default)]
struct Reboots {
    /// Creation, in milliseconds.
    post: Vec<f64>,
    /// From creation until running, in seconds.
    running: Vec<f64>,
    /// From creation until complete, in seconds.
    complete: Vec<f64>,
    /// Time of all cores, the simulated fleet's included, in seconds for each node.
    cpu: Vec<f64>,
}

/// Measures reboots of whole fleets.
pub async fn measure(bench: &mut Bench<'_>) {
    if bench.wants(&["T1", "T1.scale", "T11", "T11.post", "O6"]) {
        let of_fleet = reboots(bench.stage, FLEET, bench.runs()).await;
        if bench.wants(&["T1.scale"]) {
            let of_quarter = reboots(bench.stage, QUARTER, bench.runs()).await;
            bench.note("T1.scale", FLEET as usize, vec![median(&of_fleet.cpu) / median(&of_quarter.cpu)]);
        }
        bench.note("T1", FLEET as usize, of_fleet.complete);
        bench.note("T11", FLEET as usize, of_fleet.running.clone());
        bench.note("T11.post", FLEET as usize, of_fleet.post);
        bench.note("O6", FLEET as usize, of_fleet.running);
    }
    if bench.wants(&["T4b.p99"]) {
        all_at_once(bench).await;
    }
    if bench.wants_full(&["T2", "T11b"]) {
        let of_large = reboots(bench.stage, LARGE, bench.few_runs()).await;
        bench.note("T2", LARGE as usize, of_large.complete);
        bench.note("T11b", LARGE as usize, of_large.running);
    }
}

async fn reboots(stage: &Stage, nodes: u32, runs: u32) -> Reboots {
    let server = fleet(stage, nodes, 0.0).await;
    let mut reboots = Reboots::default();
    for _ in 0..runs {
        let mut sessions = Sessions::of(&server).await;
        let before = server.cpu();
        let (name, post) = timed(server.bos.session("image", "reboot")).await;
        let ((), running) = timed(sessions.reach(&name, Progress::Running)).await;
        let ((), complete) = timed(sessions.reach(&name, Progress::Complete)).await;
        reboots.post.push(milliseconds(post));
        reboots.running.push((post + running).as_secs_f64());
        reboots.complete.push((post + running + complete).as_secs_f64());
        reboots.cpu.push((server.cpu() - before).as_secs_f64() / f64::from(nodes));
        let status = server.bos.get(&format!("/v2/sessions/{name}/status")).await;
        assert_eq!(status["percent_failed"], 0.0, "{status}");
    }
    server.stop().await;
    reboots
}

async fn all_at_once(bench: &mut Bench<'_>) {
    let mut p99 = Vec::new();
    for _ in 0..bench.few_runs() {
        let server = fleet(bench.stage, FLEET, 0.0).await;
        let mut times = latency::from_off_to_on(&server, FLEET).await;
        p99.push(percentile(&mut times, 99.0) / 1e3);
        server.stop().await;
    }
    bench.note("T4b.p99", FLEET as usize, p99);
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
