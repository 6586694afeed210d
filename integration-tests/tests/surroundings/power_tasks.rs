//! Transitions that go well for some of their nodes only.

use std::time::Duration;

use serde_json::{Value, json};
use upstreams::{
    HardwareFault, MachinePlan, NodeChange, NodeFaults, PowerCommand, PowerService, Service::Pcs,
};

use crate::scene::{MeshScene, TEMPLATE, every_role};

const POST: &str = "POST /transitions";

const NODES: usize = 8;

/// More nodes than a power service accepts at once.
const FLEET: u32 = 300;

/// Two attempts, with little time between.
async fn impatient(scene: &MeshScene) {
    scene.mesh.bos.options(&json!({"default_retry_policy": 2, "max_power_on_wait_time": 2})).await;
}

/// Waits until the session is complete with so many percent of its members failed.
async fn ends_with_failures(scene: &MeshScene, session: &str, percent: f64) {
    scene.mesh.bos.complete(session).await;
    let status = scene.mesh.bos.get(&format!("/v2/sessions/{session}/status")).await;
    let shares = [&status["percent_failed"], &status["percent_successful"]].map(|share| share.as_f64());
    assert_eq!(shares, [Some(percent), Some(100.0 - percent)], "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_task_shows_the_peer_s_words_on_its_node() {
    let scene = MeshScene::new(NODES as u32).await;
    impatient(&scene).await;
    let ids = scene.upstreams.ids();
    let (bad, good) = ids.split_at(2);
    let words = "BMC says 500";
    scene.faults(bad, NodeFaults { pcs_task_fails: Some(words.into()), ..NodeFaults::default() });
    let name = scene.boot().await;
    // The first failure shows while there is an attempt left.
    scene.show(bad, &["PCS", words]).await;
    scene.are(good, "stable").await;
    ends_with_failures(&scene, &name, 25.0).await;
    scene.were_asked(bad, &["On", "On"]);
    scene.were_asked(good, &["On"]);
    for id in bad {
        let component = scene.mesh.bos.component(id).await;
        assert!(component["error"].as_str().unwrap().contains(words), "{component}");
        assert_eq!(component["status"]["status"], "failed", "{component}");
    }
    scene.was_orderly();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn task_failing_once_costs_one_attempt_and_its_error_clears() {
    let scene = MeshScene::new(NODES as u32).await;
    impatient(&scene).await;
    let bad = scene.first(1);
    scene.faults(&bad, NodeFaults { pcs_task_fails: Some("not yet".into()), ..NodeFaults::default() });
    let name = scene.boot().await;
    scene.show(&bad, &["not yet"]).await;
    scene.faults(&bad, NodeFaults::default());
    scene.succeeds(&name).await;
    scene.were_asked(&bad, &["On", "On"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_with_a_failed_shutdown_request_is_not_forced_off() {
    let scene = MeshScene::of(MachinePlan { up: true, ..MachinePlan::quick(NODES as u32) }, |_| {}).await;
    scene.mesh.bos.options(&json!({"max_power_off_wait_time": 2, "default_retry_policy": 2})).await;
    let ids = scene.upstreams.ids();
    let (bad, good) = ids.split_at(1);
    let words = "BMC answered 503: busy";
    scene.faults(bad, NodeFaults { pcs_task_fails: Some(words.into()), ..NodeFaults::default() });
    let name = scene.mesh.bos.session("image-1", "shutdown").await;
    ends_with_failures(&scene, &name, 12.5).await;
    scene.were_asked(bad, &["Soft-Off", "Soft-Off"]);
    scene.were_asked(good, &["Soft-Off"]);
    let component = scene.mesh.bos.component(&bad[0]).await;
    assert!(component["error"].as_str().unwrap().contains(words), "{component}");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_spoils_a_batch_is_found_and_others_continue() {
    let scene = MeshScene::new(NODES as u32).await;
    scene.mesh.bos.options(&json!({"default_retry_policy": 1})).await;
    let ids = scene.upstreams.ids();
    let (bad, good) = (&ids[5..6], [&ids[..5], &ids[6..]].concat());
    scene.faults(bad, NodeFaults { pcs_reject: true, ..NodeFaults::default() });
    let name = scene.boot().await;
    ends_with_failures(&scene, &name, 12.5).await;
    scene.were_asked(bad, &[]);
    scene.were_asked(&good, &["On"]);
    let component = scene.mesh.bos.component(&bad[0]).await;
    let error = component["error"].as_str().unwrap();
    assert!(error.contains("invalid xnames detected"), "{component}");
    // The whole at first, then three alone, the others, and each half of five, three and two.
    let posts = scene.upstreams.requests(Pcs, POST);
    assert!(posts <= 11, "{posts}");
    scene.was_orderly();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_too_large_for_the_peer_is_split() {
    let mut plan = MachinePlan::quick(FLEET);
    plan.power.most_nodes = FLEET as usize / 2;
    let scene = MeshScene::of(plan, |_| {}).await;
    scene.mesh.bos.options(&json!({"default_retry_policy": 1})).await;
    scene.mesh.bos.template_with(TEMPLATE, every_role).await;
    for operation in ["boot", "shutdown", "boot", "shutdown"] {
        let name = scene.mesh.bos.session(TEMPLATE, operation).await;
        scene.succeeds(&name).await;
    }
    scene.were_asked(&scene.upstreams.ids(), &["On", "Soft-Off", "On", "Soft-Off"]);
    assert_eq!(scene.most_attempts().await, 1);
    // The limit is remembered from then on.
    let posts = scene.upstreams.counts().into_iter().find(|count| count.operation == POST).unwrap();
    assert!(posts.failed <= 1, "{posts:?}");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_reserved_elsewhere_is_awaited_and_retried() {
    let scene = MeshScene::new(NODES as u32).await;
    // A refusal that spent the only attempt would fail the session.
    scene.mesh.bos.options(&json!({"default_retry_policy": 1})).await;
    let ids = scene.upstreams.ids();
    let (held, free) = ids.split_at(1);
    let reserved = |reserved| NodeChange { reserved: Some(reserved), ..NodeChange::default() };
    scene.upstreams.change(held, &reserved(true)).unwrap();
    let name = scene.boot().await;
    scene.show(held, &["waiting for the end of a reservation of the node"]).await;
    scene.are(free, "stable").await;
    scene.upstreams.change(held, &reserved(false)).unwrap();
    scene.succeeds(&name).await;
    let asked = scene.asked(&held[0]);
    assert!(asked.len() > 1 && asked.iter().all(|operation| *operation == "On"), "{asked:?}");
    assert_eq!(scene.most_attempts().await, 1);
    scene.were_asked(free, &["On"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_count_before_the_transition_ends_and_new_requests_wait() {
    let mut plan = MachinePlan::quick(NODES as u32);
    // A minute of patience with the node that never comes on never ends.
    plan.power.minute = Duration::from_secs(3600);
    let scene = MeshScene::of(plan, |_| {}).await;
    let ids = scene.upstreams.ids();
    let (stuck, fine) = ids.split_at(1);
    scene.faults(stuck, NodeFaults::hardware(Some(HardwareFault::StuckOff)));
    scene.boot().await;
    scene.are(fine, "stable").await;
    let name = scene.begin("shutdown", fine).await;
    scene.are(fine, "power_off_pending").await;
    scene.asked_again(Pcs, "GET /transitions/{id}", 5).await;
    scene.were_asked(&ids, &["On"]);
    // An operator presses the button.
    scene.faults(stuck, NodeFaults::default());
    scene.upstreams.press(PowerCommand::On, stuck).unwrap();
    scene.succeeds(&name).await;
    scene.were_asked(fine, &["On", "Soft-Off"]);
    scene.are(stuck, "stable").await;
    assert_eq!(scene.mesh.bos.component(&stuck[0]).await["error"], Value::from(""));
    scene.were_asked(stuck, &["On"]);
    scene.was_orderly();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_power_off_is_aborted_before_the_forced_one() {
    let mut plan = MachinePlan { up: true, ..MachinePlan::quick(NODES as u32) };
    plan.power.minute = Duration::from_secs(3600);
    let scene = MeshScene::of(plan, |_| {}).await;
    scene.mesh.bos.options(&json!({"max_power_off_wait_time": 2})).await;
    let ids = scene.upstreams.ids();
    let (deaf, polite) = ids.split_at(2);
    scene.faults(deaf, NodeFaults::hardware(Some(HardwareFault::IgnoresGracefulOff)));
    let name = scene.mesh.bos.session("image-1", "shutdown").await;
    scene.succeeds(&name).await;
    scene.were_asked(deaf, &["Soft-Off", "Force-Off"]);
    scene.were_asked(polite, &["Soft-Off"]);
    scene.was_orderly();
    scene.end().await;
}

/// Seconds that a node has to shut down, and for which it is reserved by somebody else before: longer.
const SHUTDOWN_WAIT: u32 = 10;
const RESERVED: f64 = 12.0;

#[tokio::test(flavor = "multi_thread")]
async fn time_of_a_shutdown_begins_when_it_is_taken() {
    let power = PowerService::at_speed(0.05);
    let plan = MachinePlan { up: true, power, ..MachinePlan::quick(NODES as u32) };
    let scene = MeshScene::of(plan, |_| {}).await;
    scene.mesh.bos.options(&json!({"max_power_off_wait_time": SHUTDOWN_WAIT})).await;
    let ids = scene.upstreams.ids();
    let reserved = NodeChange { reserved_seconds: Some(RESERVED), ..NodeChange::default() };
    scene.upstreams.change(&ids[..1], &reserved).unwrap();
    let name = scene.mesh.bos.session(TEMPLATE, "shutdown").await;
    scene.succeeds(&name).await;
    let asked = scene.asked(&ids[0]);
    assert!(asked.len() > 1 && asked.iter().all(|operation| *operation == "Soft-Off"), "{asked:?}");
    assert_eq!(scene.upstreams.requests(Pcs, "DELETE /transitions/{id}"), 0);
    scene.end().await;
}
