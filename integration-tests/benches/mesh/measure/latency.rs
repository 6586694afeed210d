//! Delays of nodes by the mesh.

use std::{
    collections::HashMap,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use prost_types::Timestamp;
use proto::{
    power::PowerReading,
    session::Progress,
    simulation::{
        AcceptedTransition, ListTransitionsRequest, TransitionOperation, WatchPowerRequest,
        fleet_service_client::FleetServiceClient,
    },
};
use simulator::{hardware::NodeTiming, topology};

use super::{BenchRun, sessions};
use crate::{
    samples::percentile,
    stage::Server,
    watching::{SessionWatch, all_are},
};

/// Nodes of the measurement of single decisions, and how fast their hardware is: in the middle of their shutdowns some
/// 200 of them end in a second.
const STAGGERED: u32 = 700;
const STAGGERED_SPEED: f64 = 0.05;

/// Share of the nodes whose shutdown is awaited: the hardware of the last ones takes very long.
const SHUT_DOWN: f64 = 0.98;

/// Silence that ends a measurement.
const SILENCE: Duration = Duration::from_secs(5);

/// Wait for the power-on of a node that was seen off. A node that misses it counts as switched on at its end.
const LATE: Duration = Duration::from_secs(3);

/// Nodes that shut down at once.
const AT_ONCE: u32 = 10_000;

/// Default seed of simulated hardware.
const SEED: u64 = 1;

/// Times of events of nodes, in milliseconds since 1970.
type Times = HashMap<String, i64>;

/// Measures single decisions and whole reboots on hardware that takes its time.
pub async fn measure(bench: &mut BenchRun<'_>) {
    bench.attempt("single decisions", &["T4.p50", "T4.p99"], 8, single_decisions).await;
    bench.attempt("decisions on 10,000 at once", &["T4b.p99"], 5, all_at_once).await;
    bench.attempt("reboots at the hardware's pace", &["T3.p50", "T3.p99", "T3.max"], 15, whole_reboots).await;
}

async fn single_decisions(bench: &mut BenchRun<'_>) {
    for _ in 0..bench.runs() {
        // A new one each time, because the end of the slowest boots is not waited for.
        let server = sessions::fleet(bench.stage, STAGGERED, STAGGERED_SPEED).await;
        let began = now();
        let (_, off) = rebooting(&server, STAGGERED).await;
        tokio::time::sleep(LATE).await;
        let mut times = waits(&server, off, began).await;
        bench.note("T4.p50", STAGGERED as usize, percentile(&mut times, 50.0));
        bench.note("T4.p99", STAGGERED as usize, percentile(&mut times, 99.0));
    }
}

async fn all_at_once(bench: &mut BenchRun<'_>) {
    let server = sessions::fleet(bench.stage, AT_ONCE, 0.0).await;
    for _ in 0..bench.runs() {
        let began = now();
        let mut watched = SessionWatch::of(&server).await;
        let (session, off) = rebooting(&server, AT_ONCE).await;
        watched.reach(&session, Progress::Complete).await;
        let mut times = waits(&server, off, began).await;
        bench.note("T4b.p99", AT_ONCE as usize, percentile(&mut times, 99.0) / 1e3);
    }
    server.stop().await;
}

/// Begins to reboot a fleet. Returns the session, and the times at which nodes were seen off.
async fn rebooting(server: &Server, nodes: u32) -> (String, Times) {
    let members = sessions::members(nodes);
    let request = WatchPowerRequest {};
    let mut readings = simulated(server).watch_power(request).await.expect("a watch").into_inner();
    let session = server.bos.session("image", "reboot").await;
    let mut off = Times::new();
    while (off.len() as f64) < SHUT_DOWN * members as f64 {
        let Ok(batch) = tokio::time::timeout(SILENCE, readings.message()).await else { break };
        let seen = now();
        for node in batch.expect("a batch").expect("no end").nodes {
            if node.reading() == PowerReading::Off {
                off.entry(node.id).or_insert(seen);
            }
        }
    }
    assert!(2 * off.len() > members, "only {} of {members} nodes were seen off", off.len());
    (session, off)
}

/// Returns, for each node that was seen off, how many milliseconds later the upstream was asked to switch it on, which
/// comes after its boot data were prepared. Both ends are the simulated upstream's.
async fn waits(server: &Server, off: Times, began: i64) -> Vec<f64> {
    let since = Timestamp { seconds: began / 1000, nanos: 0 };
    let request = ListTransitionsRequest { since: Some(since) };
    let answer = simulated(server).list_transitions(request).await.expect("transitions").into_inner();
    let mut on = Times::new();
    for transition in answer.transitions {
        let at = created(&transition);
        if transition.operation() == TransitionOperation::On && at >= began {
            on.extend(transition.ids.into_iter().map(|id| (id, at)));
        }
    }
    let end = now();
    off.iter().map(|(id, since)| (on.get(id).unwrap_or(&end) - since).max(0) as f64).collect()
}

fn simulated(server: &Server) -> FleetServiceClient<chassis::Channel> {
    let channel = chassis::plain_channel(&server.settings.simulator.url).expect("an address");
    FleetServiceClient::new(channel).max_decoding_message_size(usize::MAX)
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_millis() as i64
}

/// Returns when the upstream took a transition, in milliseconds since 1970.
fn created(transition: &AcceptedTransition) -> i64 {
    transition.created_at.as_ref().map_or(0, |at| at.seconds * 1000 + i64::from(at.nanos) / 1_000_000)
}

/// Times of reboots beyond those of the hardware.
async fn whole_reboots(bench: &mut BenchRun<'_>) {
    let (nodes, speed) = bench.command.scale.of((2_500, 0.01), (10_000, 0.05));
    for _ in 0..bench.few_runs() {
        let mut added = added_by_the_mesh(bench, nodes, speed).await;
        for (row, percent) in [("T3.p50", 50.0), ("T3.p99", 99.0), ("T3.max", 100.0)] {
            bench.note(row, nodes as usize, percentile(&mut added, percent));
        }
    }
}

/// Seconds for each node that takes part.
async fn added_by_the_mesh(bench: &BenchRun<'_>, nodes: u32, speed: f64) -> Vec<f64> {
    let server = sessions::fleet(bench.stage, nodes, speed).await;
    let timing = NodeTiming::new(SEED, speed).expect("a factor");
    let machine = topology::generate(nodes);
    let members = machine.iter().enumerate().filter(|(_, node)| node.role == "Compute");
    let hardware: HashMap<_, _> = members
        .map(|(index, node)| {
            let pace = timing.pace(index);
            (node.id.as_str(), pace.soft_off + pace.power_on + pace.boot + pace.configuration)
        })
        .collect();
    let mut watched = SessionWatch::of(&server).await;
    let began = Instant::now();
    let name = server.bos.session("image", "reboot").await;
    let is_done = |component: &proto::component::Component| {
        let is_member = component.session.as_ref() == Some(&name) || !component.assignment.is_empty();
        is_member && component.enabled == Some(false)
    };
    let done = all_are(&server, hardware.len(), is_done).await;
    watched.reach(&name, Progress::Complete).await;
    let status = server.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_failed"], 0.0, "{status}");
    server.stop().await;
    let added = done.iter().filter_map(|(id, at)| {
        let hardware = hardware.get(id.as_str())?;
        Some((*at - began).as_secs_f64() - hardware.as_secs_f64())
    });
    added.collect()
}
