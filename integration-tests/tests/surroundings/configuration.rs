//! Configuration that is refused, fails, or is not reported.

use std::time::Duration;

use serde_json::json;
use upstreams::{MachinePlan, NodeFaults, NodePace, Service::Cfs, ServiceTrouble};

use crate::scene::{MeshScene, TEMPLATE, brisk};

const PATCH: &str = "PATCH /components";

const NODES: usize = 8;

/// Template of nodes without configuration.
const PLAIN: &str = "plain";

#[tokio::test(flavor = "multi_thread")]
async fn node_stays_off_while_its_configuration_cannot_be_set() {
    let scene = MeshScene::of(MachinePlan::quick(NODES as u32), brisk).await;
    let bos = &scene.mesh.bos;
    bos.options(&json!({"default_retry_policy": 1})).await;
    bos.template_with(PLAIN, |template| template["enable_cfs"] = json!(false)).await;
    scene.upstreams.trouble(ServiceTrouble::status(Cfs, 503).only(PATCH));
    let ids = scene.upstreams.ids();
    let (configured, plain) = ids.split_at(NODES / 2);
    let waits = scene.begin("boot", configured).await;
    let goes = bos.session_of(PLAIN, "boot", plain).await;
    scene.show(configured, &["waiting for CFS at 127.0.0.1", " since 20", "503"]).await;
    scene.succeeds(&goes).await;
    scene.were_asked(plain, &["On"]);
    scene.were_asked(configured, &[]);
    scene.upstreams.clear_troubles(None);
    scene.succeeds(&waits).await;
    scene.were_asked(configured, &["On"]);
    assert_eq!(scene.most_attempts().await, 1);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn running_node_without_a_known_configuration_is_not_switched_off() {
    let scene = MeshScene::of(MachinePlan { up: true, ..MachinePlan::quick(NODES as u32) }, brisk).await;
    scene.mesh.bos.options(&json!({"polling_frequency": 1})).await;
    let ids = scene.upstreams.ids();
    let (unknown, known) = ids.split_at(1);
    scene.faults(unknown, NodeFaults { cfs_missing: true, ..NodeFaults::default() });
    let name = scene.begin("reboot", &ids).await;
    scene.are(known, "stable").await;
    scene.show(unknown, &["Component information was not returned by cfs"]).await;
    scene.are(unknown, "on_hold").await;
    scene.were_asked(unknown, &[]);
    scene.were_asked(known, &["Soft-Off", "On"]);
    scene.faults(unknown, NodeFaults::default());
    scene.succeeds(&name).await;
    scene.were_asked(unknown, &["Soft-Off", "On"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn running_node_shows_why_its_configuration_is_not_accepted() {
    let scene = MeshScene::new(NODES as u32).await;
    let bos = &scene.mesh.bos;
    let ids = scene.upstreams.ids();
    let (refused, taken) = ids.split_at(1);
    scene.succeeds(&scene.boot().await).await;
    scene.faults(refused, NodeFaults { cfs_reject: true, ..NodeFaults::default() });
    bos.template_with(TEMPLATE, |template| template["cfs"]["configuration"] = json!("newer")).await;
    let name = scene.boot().await;
    scene.show(refused, &["Error encountered setting CFS information: ", "CFS at 127.0.0.1"]).await;
    scene.are(refused, "configuring").await;
    scene.are(taken, "stable").await;
    scene.faults(refused, NodeFaults::default());
    scene.succeeds(&name).await;
    scene.until("nothing to be wrong", refused, |component| component["error"] == "").await;
    scene.were_asked(&ids, &["On"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reported_configuration_status_decides_and_a_missing_one_is_awaited() {
    let scene = MeshScene::new(NODES as u32).await;
    let ids = scene.upstreams.ids();
    let [failed, baffled, silent, fine] = [&ids[..2], &ids[2..4], &ids[4..6], &ids[6..]];
    for (ids, word) in [(failed, "failed"), (baffled, "baffled"), (silent, "")] {
        scene.faults(ids, NodeFaults { cfs_status: Some(word.into()), ..NodeFaults::default() });
    }
    let name = scene.boot().await;
    scene.show(failed, &["cfs configuration failed"]).await;
    scene.show(baffled, &["not reporting a valid configuration status", ": baffled"]).await;
    scene.are(failed, "failed").await;
    scene.are(baffled, "failed").await;
    scene.are(fine, "stable").await;
    scene.are(silent, "configuring").await;
    scene.faults(silent, NodeFaults::default());
    scene.are(silent, "stable").await;
    scene.mesh.bos.complete(&name).await;
    scene.were_asked(&ids, &["On"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_configuration_keeps_only_its_node_off() {
    let scene = MeshScene::new(NODES as u32).await;
    scene.mesh.bos.options(&json!({"default_retry_policy": 1})).await;
    let ids = scene.upstreams.ids();
    let (refused, taken) = ids.split_at(1);
    scene.faults(refused, NodeFaults { cfs_reject: true, ..NodeFaults::default() });
    let name = scene.boot().await;
    scene.mesh.bos.complete(&name).await;
    scene.are(refused, "failed").await;
    scene.show(refused, &["Error encountered setting CFS information: ", "cannot be changed"]).await;
    scene.are(taken, "stable").await;
    scene.were_asked(refused, &[]);
    scene.were_asked(taken, &["On"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peer_silent_during_configuration_is_named_and_awaited() {
    let pace = NodePace { configuration: Duration::from_secs(1), ..NodePace::default() };
    let plan = MachinePlan { pace: Some(pace), ..MachinePlan::quick(NODES as u32) };
    let scene = MeshScene::of(plan, brisk).await;
    let name = scene.boot().await;
    let ids = scene.upstreams.ids();
    scene.are(&ids, "configuring").await;
    scene.upstreams.trouble(ServiceTrouble::status(Cfs, 500));
    scene.show(&ids, &["waiting for CFS at 127.0.0.1", " since 20", "500"]).await;
    scene.are(&ids, "configuring").await;
    scene.upstreams.clear_troubles(None);
    scene.succeeds(&name).await;
    scene.were_asked(&ids, &["On"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn template_without_configuration_configures_no_node() {
    let scene = MeshScene::new(NODES as u32).await;
    scene.mesh.bos.template_with(TEMPLATE, |template| template["enable_cfs"] = json!(false)).await;
    let name = scene.boot().await;
    scene.succeeds(&name).await;
    let wanted = scene.upstreams.configuration_requests();
    assert!(wanted.iter().all(|request| request.patch["desired_config"] == ""), "{wanted:?}");
    scene.end().await;
}
