//! Systems that accept every call and never answer, with default deadlines: work that does not need them is not
//! delayed.

use std::time::Duration;

use integration_tests::eventually;
use reqwest::Method;
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};
use upstreams::{
    MachinePlan, NodePace,
    Service::{self, Bss, Hsm, Ims, Pcs, S3},
    ServiceTrouble, TroubleEffect,
};

use crate::scene::{MeshScene, TEMPLATE};

const NODES: usize = 32;

/// Well below the deadlines of calls, which are 20 seconds and more.
const AT_ONCE: Duration = Duration::from_secs(8);

/// Latency limit of REST calls meanwhile on a busy machine.
const LATENCY: Duration = Duration::from_secs(1);

/// Nodes that are up.
async fn scene() -> MeshScene {
    MeshScene::of(MachinePlan { up: true, ..MachinePlan::quick(NODES as u32) }, |_| {}).await
}

fn silence(scene: &MeshScene, services: &[Service]) {
    for service in services {
        scene.upstreams.trouble(ServiceTrouble::new(*service, TroubleEffect::Hang));
    }
}

/// Waits until a session is complete, without delay by a silent system.
async fn completes_at_once(scene: &MeshScene, session: &str) {
    let complete = timeout(AT_ONCE, scene.mesh.bos.complete(session)).await;
    assert!(complete.is_ok(), "session {session} is held up");
}

/// Calls of the contract are as fast as ever.
async fn contract_is_swift(scene: &MeshScene) {
    let bos = &scene.mesh.bos;
    for path in ["/v2/components", "/v2/sessions", "/v2/options", "/readyz"] {
        let began = Instant::now();
        bos.expect(Method::GET, path, None).await;
        assert!(began.elapsed() < LATENCY, "{path}: {:?}", began.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_peers_delay_only_their_own_work() {
    let scene = scene().await;
    let ids = scene.upstreams.ids();
    let (held_up, others) = ids.split_at(NODES / 2);
    silence(&scene, &[Bss, Ims]);
    // Each node is one more that waits; together they are more than there are calls at a time.
    for id in held_up {
        scene.begin("reboot", std::slice::from_ref(id)).await;
    }
    scene.are(held_up, "power_on_pending").await;
    silence(&scene, &[S3]);
    // The test does not wait for the end of these.
    let mut refused = JoinSet::new();
    for _ in 0..NODES {
        let bos = scene.mesh.bos.clone();
        let wish = json!({"template_name": TEMPLATE, "operation": "reboot", "limit": ids[0]});
        refused.spawn(async move { bos.try_send(Method::POST, "/v2/sessions", Some(&wish)).await });
    }
    let name = scene.mesh.bos.session_of(TEMPLATE, "shutdown", others).await;
    completes_at_once(&scene, &name).await;
    scene.were_asked(others, &["Soft-Off"]);
    scene.were_asked(held_up, &["Soft-Off"]);
    contract_is_swift(&scene).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_run_do_not_need_the_inventory() {
    let pace = NodePace { boot: Duration::from_secs(1), ..NodePace::default() };
    let plan = MachinePlan { up: true, pace: Some(pace), ..MachinePlan::quick(NODES as u32) };
    let scene = MeshScene::of(plan, |_| {}).await;
    let name = scene.begin("reboot", &scene.upstreams.ids()).await;
    silence(&scene, &[Hsm]);
    let waits = scene.mesh.bos.session_of(TEMPLATE, "shutdown", &scene.first(1)).await;
    completes_at_once(&scene, &name).await;
    scene.were_asked(&scene.upstreams.ids(), &["Soft-Off", "On"]);
    contract_is_swift(&scene).await;
    let session = scene.mesh.bos.get(&format!("/v2/sessions/{waits}")).await;
    assert_eq!(session["status"]["status"], "pending", "{session}");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_power_service_blocks_neither_setup_nor_reports_nor_discovery() {
    let scene = scene().await;
    silence(&scene, &[Pcs]);
    let ids = scene.upstreams.ids();
    let name = scene.mesh.bos.session_of(TEMPLATE, "reboot", &ids[1..]).await;
    let running = eventually("a session that runs", async || {
        let session = scene.mesh.bos.get(&format!("/v2/sessions/{name}")).await;
        (session["status"]["status"] == "running").then_some(())
    });
    assert!(timeout(AT_ONCE, running).await.is_ok());
    contract_is_swift(&scene).await;
    let report = json!({"id": ids[0], "actual_state": {"bss_token": "t"}});
    let path = format!("/v2/components/{}", ids[0]);
    let began = Instant::now();
    scene.mesh.bos.expect(Method::PATCH, &path, Some(&report)).await;
    assert!(began.elapsed() < LATENCY);
    scene.mesh.bos.expect(Method::DELETE, &path, None).await;
    scene.mesh.bos.options(&json!({"discovery_frequency": 1})).await;
    let discovered = scene.mesh.bos.discovered(NODES);
    assert!(timeout(AT_ONCE, discovered).await.is_ok());
    scene.end().await;
}
