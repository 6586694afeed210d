//! Options that are changed while nodes are under way.

use std::time::Duration;

use chassis::settings::Settings;
use integration_tests::eventually;
use reqwest::Method;
use serde_json::{Value, json};
use upstreams::{
    HardwareFault, MachinePlan, NodeFaults, PowerCommand, Service, ServiceTrouble, TroubleEffect,
};

use crate::scene::MeshScene;

/// Longest time for which "off" is not believed of a node that has just reported its boot.
const DISBELIEF: Duration = Duration::from_secs(100);

#[tokio::test(flavor = "multi_thread")]
async fn shorter_waits_and_fewer_attempts_apply_to_nodes_under_way() {
    let scene = MeshScene::of(MachinePlan::quick(4), |_| {}).await;
    let ids = scene.upstreams.ids();
    scene.faults(&ids, NodeFaults::hardware(Some(HardwareFault::NeverReports)));
    let name = scene.boot().await;
    // The nodes run, and have 20 minutes to report.
    scene.are(&ids, "power_on_called").await;
    scene.asked_again(Service::Pcs, "POST /power-status", 3).await;
    scene.were_asked(&ids, &["On"]);
    scene.mesh.bos.options(&json!({"max_boot_wait_time": 1, "default_retry_policy": 2})).await;
    scene.mesh.bos.complete(&name).await;
    scene.are(&ids, "failed").await;
    scene.were_asked(&ids, &["On", "Soft-Off", "On", "Soft-Off"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_exceeds_the_batch_option() {
    let scene = MeshScene::new(10).await;
    scene.mesh.bos.options(&json!({"max_component_batch_size": 3})).await;
    let name = scene.boot().await;
    scene.succeeds(&name).await;
    let most = |sizes: &mut dyn Iterator<Item = usize>| sizes.max().unwrap_or_default();
    let boot_data = scene.upstreams.boot_requests();
    let configurations = scene.upstreams.configuration_requests();
    let transitions = scene.upstreams.transitions();
    let transitions = transitions.as_array().unwrap();
    let nodes = |transition: &Value| transition["tasks"].as_array().map_or(0, Vec::len);
    let largest = [
        most(&mut boot_data.iter().map(|request| request.hosts.len())),
        most(&mut configurations.iter().map(|request| request.ids.len())),
        most(&mut transitions.iter().map(nodes)),
    ];
    assert!(largest.iter().all(|size| (1..=3).contains(size)), "{largest:?} {transitions:?}");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retained_nodes_are_brought_back_until_released() {
    let scene = MeshScene::new(4).await;
    let (bos, ids) = (&scene.mesh.bos, scene.upstreams.ids());
    assert!(bos.get("/v2/options").await.get("disable_components_on_completion").is_none());
    // A node that is off so soon after it was switched on is only thought to take its time.
    bos.options(&json!({"disable_components_on_completion": false, "max_power_on_wait_time": 1})).await;
    assert_eq!(bos.get("/v2/options").await["disable_components_on_completion"], false);
    let name = scene.boot().await;
    scene.succeeds(&name).await;
    let kept = |component: &Value| component["status"]["status"] == "stable" && component["enabled"] == true;
    scene.until("nodes that are kept", &ids, kept).await;

    scene.upstreams.press(PowerCommand::ForceOff, &ids[..1]).unwrap();
    tokio::time::sleep(DISBELIEF).await;
    eventually("a node that is switched on again", async || {
        (scene.asked(&ids[0]) == ["On", "On"]).then_some(())
    })
    .await;
    scene.until("nodes that are kept", &ids, kept).await;
    scene.were_asked(&ids[1..], &["On"]);
    assert_eq!(bos.get(&format!("/v2/sessions/{name}")).await["status"]["status"], "complete");

    bos.options(&json!({"disable_components_on_completion": true})).await;
    assert!(bos.get("/v2/options").await.get("disable_components_on_completion").is_none());
    scene.until("nodes that are let go of", &ids, |component| component["enabled"] == false).await;
    scene.are(&ids, "stable").await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_retained_off_is_shut_down_when_it_runs() {
    let scene = MeshScene::new(2).await;
    let (bos, ids) = (&scene.mesh.bos, scene.upstreams.ids());
    bos.options(&json!({"disable_components_on_completion": false})).await;
    for operation in ["boot", "shutdown"] {
        let name = scene.begin(operation, &ids).await;
        scene.succeeds(&name).await;
    }
    scene.were_asked(&ids, &["On", "Soft-Off"]);
    scene.upstreams.press(PowerCommand::On, &ids[..1]).unwrap();
    eventually("a node that is switched off again", async || {
        (scene.asked(&ids[0]) == ["On", "Soft-Off", "Soft-Off"]).then_some(())
    })
    .await;
    scene.are(&ids, "stable").await;
    scene.were_asked(&ids[..1], &["On", "Soft-Off", "Soft-Off"]);
    scene.were_asked(&ids[1..], &["On", "Soft-Off"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_mode_has_only_the_twenty_options_of_bos() {
    let strict = |settings: &mut Settings| settings.compat.strict_bos = true;
    let scene = MeshScene::of(MachinePlan::quick(2), strict).await;
    let (bos, ids) = (&scene.mesh.bos, scene.upstreams.ids());
    let lost = json!({"disable_components_on_completion": false});
    let answer = bos.expect(Method::PATCH, "/v2/options", Some(&lost)).await;
    assert_eq!(answer["disable_components_on_completion"], false, "it is repeated once");
    assert_eq!(bos.get("/v2/options").await.as_object().unwrap().len(), 20);
    let name = scene.boot().await;
    scene.succeeds(&name).await;
    scene.until("nodes that are let go of", &ids, |component| component["enabled"] == false).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returned_node_is_found_within_the_option_s_period() {
    let scene = MeshScene::new(2).await;
    scene.mesh.bos.options(&json!({"polling_frequency": 3600})).await;
    let ids = scene.upstreams.ids();
    let left_out = [
        NodeFaults { pcs_omitted: true, ..NodeFaults::default() },
        NodeFaults { cfs_missing: true, ..NodeFaults::default() },
    ];
    ids.iter().zip(left_out).for_each(|(id, faults)| scene.faults(std::slice::from_ref(id), faults));
    let name = scene.boot().await;
    scene.are(&ids, "on_hold").await;
    scene.show(&ids, &["Component information was not returned by"]).await;
    scene.faults(&ids, NodeFaults::default());
    scene.mesh.bos.options(&json!({"polling_frequency": 0})).await;
    scene.succeeds(&name).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_are_given_as_long_as_the_options_say() {
    let scene = MeshScene::new(2).await;
    let ids = scene.upstreams.ids();
    for service in [Service::Bss, Service::Cfs, Service::Pcs] {
        scene.upstreams.trouble(ServiceTrouble::new(service, TroubleEffect::Hang));
    }
    let options = ["bss", "cfs", "pcs"].map(|peer| (format!("{peer}_read_timeout"), json!(10)));
    scene.mesh.bos.options(&Value::Object(options.into_iter().collect())).await;
    scene.boot().await;
    scene.show(&ids, &["waiting for PCS", "no answer within 10s"]).await;
    scene.upstreams.clear_troubles(Some(Service::Pcs));
    scene.show(&ids, &["waiting for BSS", "no answer within 10s"]).await;
    scene.upstreams.clear_troubles(Some(Service::Bss));
    scene.show(&ids, &["waiting for CFS", "no answer within 10s"]).await;
    scene.upstreams.clear_troubles(None);
    scene.are(&ids, "stable").await;
    scene.end().await;
}
