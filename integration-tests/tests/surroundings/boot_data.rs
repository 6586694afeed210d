//! Boot data that are not accepted, for some or for all.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use upstreams::{MachinePlan, NodeFaults, Service::Bss, ServiceTrouble};

use crate::scene::{MeshScene, TEMPLATE, brisk};

const PUT: &str = "PUT /bootparameters";

/// Nodes in each of the boot sets.
const SET: usize = 8;

/// Three boot sets, each with an image and nodes of its own.
async fn three_sets(scene: &MeshScene) {
    let ids = scene.upstreams.ids();
    scene
        .mesh
        .bos
        .template_with(TEMPLATE, |template| {
            let usual = template["boot_sets"]["compute"].clone();
            let sets = ids.chunks(SET).enumerate().map(|(index, nodes)| {
                let mut set = usual.clone();
                set.as_object_mut().unwrap().remove("node_roles_groups");
                set["node_list"] = json!(nodes);
                set["path"] = json!(format!("s3://boot-images/image-{index}/manifest.json"));
                (format!("set-{index}"), set)
            });
            template["boot_sets"] = json!(sets.collect::<BTreeMap<_, _>>());
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_boot_data_keep_only_their_nodes_off() {
    let scene = MeshScene::new(3 * SET as u32).await;
    scene.mesh.bos.options(&json!({"default_retry_policy": 2, "max_power_on_wait_time": 2})).await;
    three_sets(&scene).await;
    let ids = scene.upstreams.ids();
    let (refused, taken) = (&ids[SET..2 * SET], [&ids[..SET], &ids[2 * SET..]].concat());
    scene.faults(refused, NodeFaults { bss_reject: true, ..NodeFaults::default() });
    let name = scene.boot().await;
    scene
        .show(refused, &["Error encountered setting BSS information: ", "refused PUT", "invalid host"])
        .await;
    scene.are(&taken, "stable").await;
    scene.mesh.bos.complete(&name).await;
    let status = scene.mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["phases"]["percent_powering_on"], Value::from(0.0), "{status}");
    let failed = status["percent_failed"].as_f64().unwrap();
    assert!((failed - 100.0 / 3.0).abs() < 0.1, "{status}");
    scene.were_asked(refused, &[]);
    scene.were_asked(&taken, &["On"]);
    scene.are(refused, "failed").await;
    scene.show(refused, &["invalid host"]).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_refused_boot_record_costs_other_nodes_nothing() {
    let scene = MeshScene::new(SET as u32).await;
    scene.mesh.bos.options(&json!({"default_retry_policy": 1})).await;
    let ids = scene.upstreams.ids();
    let (refused, taken) = ids.split_at(1);
    scene.faults(refused, NodeFaults { bss_reject: true, ..NodeFaults::default() });
    let name = scene.boot().await;
    scene.mesh.bos.complete(&name).await;
    scene.are(refused, "failed").await;
    scene.show(refused, &["refused PUT", "invalid host"]).await;
    scene.are(taken, "stable").await;
    scene.were_asked(refused, &[]);
    scene.were_asked(taken, &["On"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_node_turns_on_while_boot_data_are_refused() {
    for code in [500, 503] {
        let scene = MeshScene::of(MachinePlan::quick(SET as u32), brisk).await;
        scene.mesh.bos.options(&json!({"default_retry_policy": 1})).await;
        scene.upstreams.trouble(ServiceTrouble::status(Bss, code));
        let name = scene.boot().await;
        let ids = scene.upstreams.ids();
        scene.show(&ids, &["waiting for BSS at 127.0.0.1", " since 20", &code.to_string()]).await;
        scene.asked_at_least(Bss, PUT, 3).await;
        scene.were_asked(&ids, &[]);
        scene.are(&ids, "power_on_pending").await;
        scene.upstreams.clear_troubles(None);
        scene.succeeds(&name).await;
        scene.were_asked(&ids, &["On"]);
        assert_eq!(scene.most_attempts().await, 1);
        scene.end().await;
    }
}
