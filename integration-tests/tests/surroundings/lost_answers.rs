//! Transitions with a lost request or answer.

use std::time::Duration;

use upstreams::{MachinePlan, NodePace, Service::Pcs, ServiceTrouble, TroubleEffect};

use crate::scene::{MeshScene, brisk};

const POST: &str = "POST /transitions";

const NODES: u32 = 8;

/// Long enough to have nodes still off when the answer is given up, even where everything is slow.
const SLOW: Duration = Duration::from_secs(10);

/// There was one attempt of each node at this, which PCS has taken once and was asked for in so many calls, or more
/// where nodes did not come all at once.
async fn was_asked_once(scene: &MeshScene, effect: &TroubleEffect, operation: &str, calls: u64) {
    scene.were_asked(&scene.upstreams.ids(), &[operation]);
    let made = scene.upstreams.requests(Pcs, POST);
    assert!(made >= calls, "{effect:?}: {made} calls");
    assert_eq!(scene.most_attempts().await, 1, "{effect:?}");
    scene.was_orderly();
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_power_on_is_resent_and_lost_answer_is_adopted() {
    for (effect, calls) in [
        (TroubleEffect::HangAfter, 1),
        (TroubleEffect::DropAfter, 1),
        (TroubleEffect::Hang, 2),
        (TroubleEffect::Drop, 2),
    ] {
        let scene = MeshScene::of(MachinePlan::quick(NODES), brisk).await;
        scene.upstreams.trouble(ServiceTrouble::new(Pcs, effect.clone()).only(POST).times(1));
        let name = scene.boot().await;
        scene.succeeds(&name).await;
        was_asked_once(&scene, &effect, "On", calls).await;
        scene.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_power_off_is_resent_and_lost_answer_is_adopted() {
    for (effect, calls) in [(TroubleEffect::DropAfter, 1), (TroubleEffect::Hang, 2)] {
        let scene = MeshScene::of(MachinePlan { up: true, ..MachinePlan::quick(NODES) }, brisk).await;
        scene.upstreams.trouble(ServiceTrouble::new(Pcs, effect.clone()).only(POST).times(1));
        let name = scene.mesh.bos.session("image-1", "shutdown").await;
        scene.succeeds(&name).await;
        was_asked_once(&scene, &effect, "Soft-Off", calls).await;
        scene.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transition_in_doubt_blocks_further_requests() {
    let pace = NodePace { power_on: SLOW, ..NodePace::default() };
    let mut plan = MachinePlan { pace: Some(pace), ..MachinePlan::quick(NODES) };
    // PCS has more patience than slow nodes need.
    plan.power.minute = Duration::from_secs(60);
    let scene = MeshScene::of(plan, brisk).await;
    // The transition is accepted, its answer is lost, and it cannot be looked up.
    scene.upstreams.trouble(ServiceTrouble::new(Pcs, TroubleEffect::HangAfter).only(POST));
    scene.boot().await;
    // Before the call transitions are listed too.
    scene.asked_at_least(Pcs, POST, 1).await;
    scene.upstreams.trouble(ServiceTrouble::status(Pcs, 503).only("GET /transitions"));
    scene.show(&scene.upstreams.ids(), &["waiting for PCS at ", " since "]).await;
    // The session then wants the opposite of the transition in doubt.
    let name = scene.mesh.bos.session("image-1", "shutdown").await;
    scene.asked_again(Pcs, "GET /transitions", 3).await;
    scene.were_asked(&scene.upstreams.ids(), &["On"]);
    scene.upstreams.clear_troubles(None);
    scene.succeeds(&name).await;
    scene.were_asked(&scene.upstreams.ids(), &["On", "Soft-Off"]);
    scene.was_orderly();
    assert_eq!(scene.upstreams.summary().on, 0);
    scene.end().await;
}
