//! Delay between a change in the systems around the mesh and its effect, with the default periods.

use std::time::Duration;

use chassis::Settings;
use integration_tests::eventually;
use tokio::time::{Instant, timeout};
use upstreams::{EventKind, MachinePlan, NodePace};

use crate::scene::MeshScene;

/// A hardware step longer than the first pauses between polls.
const STEP: Duration = Duration::from_millis(1500);

/// Most time until the result of a transition is noticed.
const RESULT: Duration = Duration::from_secs(2);

/// Most time until the end of a configuration is noticed, for which thousands of nodes are listed.
const CONFIGURED: Duration = Duration::from_secs(3);

fn usual_pauses(settings: &mut Settings) {
    let usual = Settings::default();
    settings.power.follow_seconds = usual.power.follow_seconds;
    settings.power.poll_seconds = usual.power.poll_seconds;
    settings.configuration.poll_seconds = usual.configuration.poll_seconds;
    settings.inventory.lock_poll_seconds = usual.inventory.lock_poll_seconds;
}

/// Waits until something has happened to the only node.
async fn happened(scene: &MeshScene, what: &str, is: impl Fn(&EventKind) -> bool) {
    let id = &scene.first(1)[0];
    eventually(what, async || {
        let history = scene.upstreams.history(id).unwrap();
        history.iter().any(|event| is(&event.what)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_changes_are_noticed_within_seconds() {
    let pace = NodePace { soft_off: STEP, power_on: STEP, configuration: STEP, ..NodePace::default() };
    let scene = MeshScene::of(MachinePlan { pace: Some(pace), ..MachinePlan::quick(1) }, usual_pauses).await;
    let ids = scene.first(1);
    scene.boot().await;
    happened(&scene, "a configured node", |what| {
        matches!(what, EventKind::Configured { status: "configured" })
    })
    .await;
    let noticed = timeout(CONFIGURED, scene.are(&ids, "stable")).await;
    assert!(noticed.is_ok(), "that the node is configured was not noticed");

    scene.begin("shutdown", &ids).await;
    happened(&scene, "a node that is off", |what| *what == EventKind::Off).await;
    let (began, off) = (Instant::now(), scene.are(&ids, "stable"));
    assert!(
        timeout(RESULT, off).await.is_ok(),
        "that the node is off was not noticed: {:?}",
        began.elapsed()
    );
    scene.end().await;
}
