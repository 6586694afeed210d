//! An inventory that is unreachable, that locks nodes, and that sends notifications.

use domain::boot::{
    component::{ERROR_ABSENT, ERROR_DOUBTFUL},
    evaluation::ERROR_LOCKED,
};
use integration_tests::eventually;
use proto::session::{GetSessionRequest, Session, session_service_client::SessionServiceClient};
use reqwest::Method;
use serde_json::{Value, json};
use upstreams::{
    MachinePlan, NodeChange, NodeFaults, PowerCommand,
    Service::{Bss, Hsm, Pcs},
    ServiceTrouble, TroubleEffect,
};

use crate::scene::{MeshScene, TEMPLATE, brisk};

const NODES: usize = 8;

/// The session's present wait, as other services see it.
async fn waits_for(scene: &MeshScene, session: &str) -> String {
    let channel = chassis::plain_channel(&scene.mesh.settings.session_manager.url).unwrap();
    let request = GetSessionRequest { name: session.to_owned(), tenant: String::new() };
    let answer = SessionServiceClient::new(channel).get_session(request).await.unwrap();
    let Session { waiting_for, .. } = answer.into_inner().session.unwrap();
    waiting_for
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_waits_for_the_inventory_and_says_so() {
    for trouble in [
        ServiceTrouble::status(Hsm, 503),
        ServiceTrouble::new(Hsm, TroubleEffect::Drop),
        // Half an inventory would be a smaller machine.
        ServiceTrouble::status(Hsm, 500).only("GET /groups"),
    ] {
        let scene = MeshScene::of(MachinePlan::quick(NODES as u32), brisk).await;
        scene.upstreams.trouble(trouble.clone());
        let name = scene.mesh.bos.session(TEMPLATE, "boot").await;
        let told =
            eventually("a session that says what it waits for", async || scene.waiting_for(&name).await);
        let told = told.await;
        for words in ["inventory: ", "HSM at 127.0.0.1", "since 20"] {
            assert!(told.contains(words), "{trouble:?}: {told}");
        }
        assert!(waits_for(&scene, &name).await.starts_with("inventory: "), "{trouble:?}");
        let session = scene.mesh.bos.get(&format!("/v2/sessions/{name}")).await;
        let status = &session["status"];
        assert_eq!(
            (&status["status"], &status["error"]),
            (&Value::from("pending"), &Value::Null),
            "{session}"
        );
        scene.upstreams.clear_troubles(None);
        scene.succeeds(&name).await;
        assert_eq!((scene.waiting_for(&name).await, waits_for(&scene, &name).await), (None, String::new()));
        scene.were_asked(&scene.upstreams.ids(), &["On"]);
        scene.end().await;
    }
}

fn locked(locked: bool) -> NodeChange {
    NodeChange { locked: Some(locked), ..NodeChange::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_locked_during_a_session_waits_with_a_reason() {
    let scene = MeshScene::of(MachinePlan::quick(NODES as u32), brisk).await;
    // All nodes are held up before the power-on, which leaves time to lock one.
    scene.upstreams.trouble(ServiceTrouble::status(Bss, 503));
    let name = scene.boot().await;
    let ids = scene.upstreams.ids();
    scene.show(&ids, &["waiting for BSS"]).await;
    let (held, free) = ids.split_at(1);
    scene.upstreams.change(held, &locked(true)).unwrap();
    scene.asked_again(Hsm, "GET /locks/status", 2).await;
    scene.upstreams.clear_troubles(None);
    scene.are(free, "stable").await;
    scene.show(held, &[ERROR_LOCKED]).await;
    scene.asked_again(Hsm, "GET /locks/status", 1).await;
    scene.were_asked(held, &[]);
    scene.upstreams.change(held, &locked(false)).unwrap();
    scene.succeeds(&name).await;
    scene.were_asked(&ids, &["On"]);
    scene.was_orderly();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_stops_a_pending_retry() {
    let scene = MeshScene::of(MachinePlan { up: true, ..MachinePlan::quick(NODES as u32) }, brisk).await;
    scene.upstreams.trouble(ServiceTrouble::status(Pcs, 503).only("POST /transitions"));
    let ids = scene.upstreams.ids();
    let name = scene.begin("reboot", &ids).await;
    scene.show(&ids, &["waiting for PCS"]).await;
    let (held, free) = ids.split_at(2);
    scene.upstreams.change(held, &locked(true)).unwrap();
    scene.asked_again(Hsm, "GET /locks/status", 2).await;
    scene.upstreams.clear_troubles(None);
    scene.are(free, "stable").await;
    scene.show(held, &[ERROR_LOCKED]).await;
    scene.were_asked(held, &[]);
    scene.upstreams.change(held, &locked(false)).unwrap();
    scene.succeeds(&name).await;
    scene.were_asked(&ids, &["Soft-Off", "On"]);
    scene.was_orderly();
    scene.end().await;
}

/// A mesh that gets notifications and hardly ever polls.
async fn listening() -> MeshScene {
    let scene = MeshScene::of(MachinePlan::quick(NODES as u32), |settings| {
        settings.inventory.notifications.subscribe = true;
        settings.inventory.notifications.webhook_url = format!("{}/scn", settings.gateway.url);
        settings.inventory.lock_poll_seconds = 3600.0;
        brisk(settings);
    })
    .await;
    scene.asked_at_least(Hsm, "POST /Subscriptions/SCN", 1).await;
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn notification_discovers_a_node_at_once() {
    let scene = listening().await;
    let node = scene.first(1);
    let path = format!("/v2/components/{}", node[0]);
    scene.mesh.bos.expect(Method::DELETE, &path, None).await;
    scene.upstreams.press(PowerCommand::On, &node).unwrap();
    eventually("the node to be discovered", async || {
        let answer = scene.mesh.bos.send(Method::GET, &path, None).await;
        answer.status.is_success().then_some(())
    })
    .await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notification_shows_a_lock_at_once() {
    let scene = listening().await;
    scene.upstreams.trouble(ServiceTrouble::status(Bss, 503));
    let name = scene.boot().await;
    let ids = scene.upstreams.ids();
    scene.show(&ids, &["waiting for BSS"]).await;
    let (held, free) = ids.split_at(1);
    let looks = scene.upstreams.requests(Hsm, "GET /locks/status");
    scene.upstreams.change(held, &locked(true)).unwrap();
    scene.asked_at_least(Hsm, "GET /locks/status", looks + 1).await;
    scene.upstreams.clear_troubles(None);
    scene.are(free, "stable").await;
    scene.show(held, &[ERROR_LOCKED]).await;
    scene.were_asked(held, &[]);
    scene.upstreams.change(held, &locked(false)).unwrap();
    scene.succeeds(&name).await;
    scene.end().await;
}

fn unlisted() -> NodeFaults {
    NodeFaults { hsm_missing: true, ..NodeFaults::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_enabled_by_hand_is_not_switched_unless_listed() {
    let scene = MeshScene::of(MachinePlan { up: true, ..MachinePlan::quick(NODES as u32) }, brisk).await;
    let ids = scene.first(1);
    scene.faults(&ids, unlisted());
    let off = json!({
        "enabled": true,
        "desired_state": {
            "boot_artifacts": {"kernel": "", "kernel_parameters": "", "initrd": ""},
            "configuration": "",
        },
    });
    let path = format!("/v2/components/{}", ids[0]);
    scene.mesh.bos.expect(Method::PATCH, &path, Some(&off)).await;
    scene.show(&ids, &[ERROR_DOUBTFUL]).await;
    scene.are(&ids, "power_off_pending").await;
    scene.show(&ids, &[ERROR_ABSENT]).await;
    scene.were_asked(&ids, &[]);
    scene.faults(&ids, NodeFaults::default());
    scene.are(&ids, "stable").await;
    scene.show(&ids, &[""]).await;
    scene.were_asked(&ids, &["Soft-Off"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_removed_during_a_session_shows_it_until_back() {
    let scene = MeshScene::of(MachinePlan::quick(NODES as u32), brisk).await;
    scene.upstreams.trouble(ServiceTrouble::status(Bss, 503));
    let name = scene.boot().await;
    let ids = scene.upstreams.ids();
    scene.show(&ids, &["waiting for BSS"]).await;
    let (gone, kept) = ids.split_at(1);
    scene.faults(gone, unlisted());
    scene.mesh.bos.options(&json!({"discovery_frequency": 1})).await;
    scene.show(gone, &[ERROR_DOUBTFUL]).await;
    scene.upstreams.clear_troubles(None);
    scene.are(kept, "stable").await;
    scene.show(gone, &["the inventory"]).await;
    scene.were_asked(gone, &[]);
    scene.faults(gone, NodeFaults::default());
    scene.succeeds(&name).await;
    scene.were_asked(&ids, &["On"]);
    scene.end().await;
}
