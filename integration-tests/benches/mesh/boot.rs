//! Whole sessions: how fast they start, how fast they end, and how long a node waits for the next step.

use std::{
    collections::HashMap,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use integration_tests::mesh::Mesh;
use proto::{
    power::PowerReading,
    session::{Progress, WatchSessionsRequest, session_service_client::SessionServiceClient},
    simulation::{
        ListTransitionsRequest, TransitionOperation, WatchPowerRequest,
        fleet_service_client::FleetServiceClient,
    },
};
use tonic::Streaming;

use crate::figures::Figures;

const FLEET: u32 = 10_000;
const RUNS: usize = 3;

/// Nodes of the latency measurement, and how fast their hardware is: their shutdowns end at about 200 a
/// second.
const STAGGERED: u32 = 2_000;
const STAGGERED_SPEED: f64 = 0.15;

/// Measures sessions of 10,000 nodes without hardware delay, then the latency of single decisions.
pub async fn measure(figures: &Figures) {
    if figures.wants("session") || figures.wants("reboot") {
        reboots(figures).await;
    }
    if figures.wants("latency") {
        latency(figures).await;
    }
}

async fn reboots(figures: &Figures) {
    let mesh = Mesh::start(async |settings| {
        settings.simulator.nodes = FLEET;
        settings.simulator.initial_power = "on".into();
    })
    .await;
    mesh.bos.template("image").await;
    let (mut running, mut complete) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let began = Instant::now();
        let mut sessions = watch_sessions(&mesh).await;
        let name = mesh.bos.session("image", "reboot").await;
        reached(&mut sessions, &name, Progress::Running).await;
        running.push(began.elapsed());
        reached(&mut sessions, &name, Progress::Complete).await;
        complete.push(began.elapsed());
        let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
        assert_eq!(status["percent_failed"], 0.0, "{status}");
    }
    figures.times("session of 10,000, create to running", running);
    figures.times("reboot of 10,000, create to complete", complete);
    mesh.stop().await;
}

async fn watch_sessions(mesh: &Mesh) -> Streaming<proto::session::WatchSessionsResponse> {
    let channel = chassis::channel(&mesh.settings.session_manager.url).expect("an address");
    let mut client = SessionServiceClient::new(channel).max_decoding_message_size(usize::MAX);
    client.watch_sessions(WatchSessionsRequest::default()).await.expect("a watch").into_inner()
}

async fn reached(
    sessions: &mut Streaming<proto::session::WatchSessionsResponse>,
    name: &str,
    progress: Progress,
) {
    loop {
        let batch = sessions.message().await.expect("a batch").expect("no end");
        if batch.sessions.iter().any(|session| session.name == name && session.progress() >= progress) {
            return;
        }
    }
}

/// Time from a node being seen off until the upstream was asked to switch it on, which comes after its boot
/// data were prepared. Both ends are the simulated upstream's.
async fn latency(figures: &Figures) {
    let mesh = Mesh::start(async |settings| {
        settings.simulator.nodes = STAGGERED;
        settings.simulator.initial_power = "on".into();
        settings.simulator.speed = STAGGERED_SPEED;
    })
    .await;
    mesh.bos.template("image").await;
    let channel = chassis::channel(&mesh.settings.simulator.url).expect("an address");
    let mut fleet = FleetServiceClient::new(channel).max_decoding_message_size(usize::MAX);
    let mut readings = fleet.watch_power(WatchPowerRequest {}).await.expect("a watch").into_inner();
    mesh.bos.session("image", "reboot").await;

    let mut off = HashMap::new();
    let limit = Instant::now() + Duration::from_secs(90);
    while off.len() < STAGGERED as usize && Instant::now() < limit {
        let Ok(batch) = tokio::time::timeout(Duration::from_secs(20), readings.message()).await else {
            break;
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_millis();
        for node in batch.expect("a batch").expect("no end").nodes {
            if node.reading() == PowerReading::Off {
                off.entry(node.id).or_insert(now);
            }
        }
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let accepted = fleet
        .list_transitions(ListTransitionsRequest { since: None })
        .await
        .expect("transitions")
        .into_inner();
    let mut times = Vec::new();
    for transition in accepted.transitions.iter().filter(|one| one.operation() == TransitionOperation::On) {
        let created = transition
            .created_at
            .as_ref()
            .map_or(0, |at| at.seconds * 1000 + i64::from(at.nanos) / 1_000_000);
        let created = u128::try_from(created).unwrap_or_default();
        let waits = transition.ids.iter().filter_map(|id| off.remove(id));
        times.extend(waits.map(|since| {
            Duration::from_millis(created.saturating_sub(since).try_into().unwrap_or(u64::MAX))
        }));
    }
    figures.distribution("latency from off to the call that switches on", times);
    mesh.stop().await;
}
