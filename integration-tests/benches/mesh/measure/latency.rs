//! How long a node waits for the mesh.

use std::{
    collections::HashMap,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use proto::{
    power::PowerReading,
    session::Progress,
    simulation::{
        AcceptedTransition, ListTransitionsRequest, TransitionOperation, WatchPowerRequest,
        fleet_service_client::FleetServiceClient,
    },
};
use simulator::{hardware::Timing, topology};

use super::{Bench, sessions};
use crate::{
    samples::percentile,
    stage::Server,
    watching::{Sessions, all_are},
};

/// Nodes of the measurement of single decisions, and how fast their hardware is: their shutdowns end at about 200 a
/// second.
const STAGGERED: u32 = 2_000;
const STAGGERED_SPEED: f64 = 0.15;

/// Seed of simulated hardware where nobody sets another.
const SEED: u64 = 1;

/// Measures single decisions and whole reboots on hardware that takes its time.
pub async fn measure(bench: &mut Bench<'_>) {
    if bench.wants(&["T4.p50", "T4.p99"]) {
        single_decisions(bench).await;
    }
    if bench.wants(&["T3.p50", "T3.p99", "T3.max"]) {
        whole_reboots(bench).await;
    }
}

async fn single_decisions(bench: &mut Bench<'_>) {
    let (mut p50, mut p99) = (Vec::new(), Vec::new());
    for _ in 0..bench.few_runs() {
        let server = sessions::fleet(bench.stage, STAGGERED, STAGGERED_SPEED).await;
        let mut times = from_off_to_on(&server, STAGGERED).await;
        p50.push(percentile(&mut times, 50.0));
        p99.push(percentile(&mut times, 99.0));
        server.stop().await;
    }
    bench.note("T4.p50", STAGGERED as usize, p50);
    bench.note("T4.p99", STAGGERED as usize, p99);
}

/// Reboots a fleet and gives for its nodes the time from being seen off until the upstream was asked to switch them on,
/// which comes after their boot data were prepared, in milliseconds. Both ends are the simulated upstream's.
///
/// # Panics
/// When most nodes are never switched on.
pub async fn from_off_to_on(server: &Server, nodes: u32) -> Vec<f64> {
    let channel = chassis::channel(&server.settings.simulator.url).expect("an address");
    let mut fleet = FleetServiceClient::new(channel).max_decoding_message_size(usize::MAX);
    let mut readings = fleet.watch_power(WatchPowerRequest {}).await.expect("a watch").into_inner();
    server.bos.session("image", "reboot").await;
    let mut off: HashMap<String, i64> = HashMap::new();
    // Nodes that take very long to shut down are not waited for.
    let until = Instant::now() + Duration::from_secs(90);
    while off.len() < nodes as usize && Instant::now() < until {
        let Ok(batch) = tokio::time::timeout(Duration::from_secs(20), readings.message()).await else {
            break;
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_millis() as i64;
        let batch = batch.expect("a batch").expect("no end");
        for node in batch.nodes.into_iter().filter(|node| node.reading() == PowerReading::Off) {
            off.entry(node.id).or_insert(now);
        }
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let request = ListTransitionsRequest { since: None };
    let accepted = fleet.list_transitions(request).await.expect("transitions").into_inner().transitions;
    let mut times = Vec::new();
    for transition in accepted.iter().filter(|one| one.operation() == TransitionOperation::On) {
        let waits = transition.ids.iter().filter_map(|id| off.remove(id));
        times.extend(waits.map(|since| (created(transition) - since).max(0) as f64));
    }
    assert!(times.len() * 2 > nodes as usize, "only {} of {nodes} nodes were switched on", times.len());
    times
}

/// When the upstream took a transition, in milliseconds since 1970.
fn created(transition: &AcceptedTransition) -> i64 {
    transition.created_at.as_ref().map_or(0, |at| at.seconds * 1000 + i64::from(at.nanos) / 1_000_000)
}

/// What nodes of a reboot take longer than their hardware.
async fn whole_reboots(bench: &mut Bench<'_>) {
    let (nodes, speed) = bench.command.scale.of((2_500, 0.01), (10_000, 0.05));
    let (mut p50, mut p99, mut max) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.few_runs() {
        let mut added = added_by_the_mesh(bench, nodes, speed).await;
        p50.push(percentile(&mut added, 50.0));
        p99.push(percentile(&mut added, 99.0));
        max.push(percentile(&mut added, 100.0));
    }
    bench.note("T3.p50", nodes as usize, p50);
    bench.note("T3.p99", nodes as usize, p99);
    bench.note("T3.max", nodes as usize, max);
}

/// Seconds for each node that takes part.
async fn added_by_the_mesh(bench: &Bench<'_>, nodes: u32, speed: f64) -> Vec<f64> {
    let server = sessions::fleet(bench.stage, nodes, speed).await;
    let timing = Timing::new(SEED, speed).expect("a factor");
    let machine = topology::generate(nodes);
    let members = machine.iter().enumerate().filter(|(_, node)| node.role == "Compute");
    let hardware: HashMap<_, _> = members
        .map(|(index, node)| {
            let pace = timing.pace(index);
            (node.id.as_str(), pace.soft_off + pace.power_on + pace.boot + pace.configuration)
        })
        .collect();
    let mut watched = Sessions::of(&server).await;
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
