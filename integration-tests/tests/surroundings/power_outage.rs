//! A power service that is out of order for a while, or asks for patience.

use serde_json::json;
use upstreams::{
    MachinePlan,
    Service::{self, Bss, Cfs, Hsm, Pcs, S3},
    ServiceTrouble, TroubleEffect,
};

use crate::scene::{MeshScene, TEMPLATE, brisk};

const POST: &str = "POST /transitions";

const STATUS: &str = "POST /power-status";

/// Checks that no node is given up during `trouble`, which lasts for some calls of `asked`; that sessions name the
/// system waited for; and that all succeed afterwards.
async fn is_waited_out(trouble: ServiceTrouble, asked: &str) {
    let scene = MeshScene::of(MachinePlan::quick(8), brisk).await;
    // The first attempt that is spent would be the last.
    scene.mesh.bos.options(&json!({"default_retry_policy": 1})).await;
    scene.upstreams.trouble(trouble);
    let name = scene.boot().await;
    let ids = scene.upstreams.ids();
    scene.show(&ids, &["waiting for PCS at 127.0.0.1", " since 20", "503"]).await;
    scene.asked_at_least(Pcs, asked, 3).await;
    for id in &ids {
        let component = scene.mesh.bos.component(id).await;
        assert_eq!(component["enabled"], true, "{component}");
        assert_ne!(component["status"]["status"], "failed", "{component}");
    }
    scene.were_asked(&ids, &[]);
    scene.upstreams.clear_troubles(None);
    scene.succeeds(&name).await;
    scene.were_asked(&ids, &["On"]);
    assert_eq!(scene.most_attempts().await, 1);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn power_service_refusing_transitions_spends_no_attempts() {
    is_waited_out(ServiceTrouble::status(Pcs, 503).only(POST), POST).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn power_service_outage_spends_no_attempts() {
    is_waited_out(ServiceTrouble::status(Pcs, 503), STATUS).await;
}

/// Seconds for which a system asks not to be called.
const PATIENCE: u64 = 1;

/// Returns the times of calls of an operation of a system, in seconds.
fn times(scene: &MeshScene, service: Service, operation: &str) -> Vec<f64> {
    let log = scene.upstreams.log().into_iter();
    log.filter(|seen| seen.service == service && seen.operation == operation).map(|seen| seen.at).collect()
}

fn busy() -> TroubleEffect {
    TroubleEffect::Status { code: 429, body: "too many".into(), retry_after: Some(PATIENCE) }
}

/// Makes each of these operations ask for patience once, and waits until all has gone well.
async fn patience_is_had(operations: &[(Service, &str)]) {
    let scene = MeshScene::new(8).await;
    scene.mesh.bos.options(&json!({"default_retry_policy": 1})).await;
    scene.upstreams.reset_counts();
    for (service, operation) in operations {
        scene.upstreams.trouble(ServiceTrouble::new(*service, busy()).only(operation).times(1));
    }
    let name = scene.mesh.bos.session(TEMPLATE, "boot").await;
    was_had(&scene, &name, operations).await;
    scene.end().await;
}

/// Waits for the session's success, and checks that each system's `Retry-After` was respected.
async fn was_had(scene: &MeshScene, session: &str, operations: &[(Service, &str)]) {
    scene.succeeds(session).await;
    for (service, operation) in operations {
        let times = times(scene, *service, operation);
        let pause = times[1] - times[0];
        assert!(pause >= PATIENCE as f64, "{} {operation}: {times:?}", service.word());
    }
    scene.were_asked(&scene.upstreams.ids(), &["On"]);
    assert_eq!(scene.most_attempts().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn inventory_s_retry_after_is_respected_for_sessions() {
    patience_is_had(&[(Hsm, "GET /State/Components")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn store_s_retry_after_is_respected_for_sessions() {
    let scene = MeshScene::new(8).await;
    scene.mesh.bos.options(&json!({"default_retry_policy": 1})).await;
    // The session is taken, and its setup has to wait for the inventory.
    let away = scene.upstreams.trouble(ServiceTrouble::status(Hsm, 503));
    let name = scene.mesh.bos.session(TEMPLATE, "boot").await;
    scene.upstreams.reset_counts();
    let object = (S3, "GET /{bucket}/{*key}");
    scene.upstreams.trouble(ServiceTrouble::new(S3, busy()).only(object.1).times(1));
    scene.upstreams.clear_trouble(away);
    was_had(&scene, &name, &[object]).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_respected_for_nodes_without_spending_attempts() {
    patience_is_had(&[(Bss, "PUT /bootparameters"), (Cfs, "PATCH /components"), (Pcs, POST)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_is_wanted_again_as_it_runs_is_left_alone() {
    let scene = MeshScene::of(MachinePlan::quick(4), brisk).await;
    scene.mesh.bos.template("image-2").await;
    scene.mesh.bos.options(&json!({"disable_components_on_completion": false})).await;
    let ids = scene.upstreams.ids();
    let name = scene.boot().await;
    scene.succeeds(&name).await;
    scene.upstreams.trouble(ServiceTrouble::status(Pcs, 503).only(POST));
    scene.mesh.bos.session("image-2", "boot").await;
    scene.show(&ids, &["waiting for PCS at 127.0.0.1", "503"]).await;
    let back = scene.boot().await;
    scene.upstreams.clear_troubles(None);
    scene.succeeds(&back).await;
    let again = scene.boot().await;
    scene.succeeds(&again).await;
    scene.are(&ids, "stable").await;
    scene.were_asked(&ids, &["On"]);
    scene.end().await;
}
