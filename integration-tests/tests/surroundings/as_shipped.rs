//! The power service as shipped, twenty times as fast: it reads hardware late, shows results late, and keeps nodes
//! reserved until a transition has ended.

use std::time::Duration;

use upstreams::{MachinePlan, NodePace, PowerEvent, Service::Pcs, ServiceTrouble, TroubleEffect};

use crate::scene::MeshScene;

const POST: &str = "POST /transitions";

/// Hardware that is much faster than the power service.
const STEP: Duration = Duration::from_millis(100);

/// The power service as shipped, twenty times as fast, and nodes that are up.
fn plan() -> MachinePlan {
    let pace =
        NodePace { soft_off: STEP, force_off: STEP, power_on: STEP, boot: STEP, ..NodePace::default() };
    MachinePlan { up: true, pace: Some(pace), ..MachinePlan::as_shipped(4).at_speed(0.05) }
}

#[tokio::test(flavor = "multi_thread")]
async fn reboot_asks_for_nothing_while_nodes_are_reserved() {
    let scene = MeshScene::of(plan(), |_| {}).await;
    let ids = scene.upstreams.ids();
    let name = scene.begin("reboot", &ids).await;
    scene.succeeds(&name).await;
    scene.were_asked(&ids, &["Soft-Off", "On"]);
    scene.was_orderly();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn power_off_survives_restart_of_power_service() {
    let scene = MeshScene::of(plan(), |_| {}).await;
    let ids = scene.upstreams.ids();
    let name = scene.begin("reboot", &ids).await;
    scene.asked_at_least(Pcs, POST, 1).await;
    scene.upstreams.power_service(PowerEvent::Restart { seconds: 0.5 });
    scene.succeeds(&name).await;
    scene.were_asked(&ids, &["Soft-Off", "On"]);
    scene.was_orderly();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn power_off_of_dead_worker_is_waited_for() {
    let scene = MeshScene::of(plan(), |_| {}).await;
    let ids = scene.upstreams.ids();
    scene.upstreams.trouble(ServiceTrouble::new(Pcs, TroubleEffect::WorkerDies).only(POST).times(1));
    let name = scene.begin("reboot", &ids).await;
    scene.succeeds(&name).await;
    scene.were_asked(&ids, &["Soft-Off", "On"]);
    scene.was_orderly();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lagging_readings_delay_a_reboot_and_repeat_nothing() {
    let scene = MeshScene::of(plan(), |_| {}).await;
    let ids = scene.upstreams.ids();
    let name = scene.begin("reboot", &ids).await;
    scene.asked_at_least(Pcs, POST, 1).await;
    scene.upstreams.power_service(PowerEvent::NoSampling { seconds: 2.0 });
    scene.succeeds(&name).await;
    scene.were_asked(&ids, &["Soft-Off", "On"]);
    scene.was_orderly();
    scene.end().await;
}
