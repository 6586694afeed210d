//! Evidence of the present overrules remembered state and single answers.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde_json::json;
use upstreams::{
    HardwareFault, MachinePlan, NodeChange, NodeFaults, NodePace,
    Service::{Bss, Cfs, Pcs, Tapms},
    ServiceTrouble, TroubleEffect,
};

use crate::scene::{MeshScene, TEMPLATE, brisk};

const POST: &str = "POST /transitions";
const LOOK: &str = "GET /transitions/{id}";
const ABORT: &str = "DELETE /transitions/{id}";
const PATCH: &str = "PATCH /components";
const PUT: &str = "PUT /bootparameters";
const TENANT: &str = "GET /tenants/{name}";

const NODES: u32 = 8;

/// Duration of a refusal of all calls.
const REFUSAL: Duration = Duration::from_secs(3);

/// Most time for nodes after that.
const SOON: Duration = Duration::from_secs(12);

fn paced(soft_off: f64, power_on: f64, configuration: f64) -> NodePace {
    let [soft_off, power_on, configuration] =
        [soft_off, power_on, configuration].map(Duration::from_secs_f64);
    NodePace { soft_off, power_on, configuration, ..NodePace::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn open_power_off_keeps_every_other_action_away() {
    let mut plan = MachinePlan { up: true, ..MachinePlan::quick(NODES) };
    plan.power.minute = Duration::from_secs(3600);
    let scene = MeshScene::of(plan, |_| {}).await;
    scene.mesh.bos.options(&json!({"max_power_off_wait_time": 1})).await;
    let ids = scene.upstreams.ids();
    scene.faults(&ids, NodeFaults::hardware(Some(HardwareFault::IgnoresGracefulOff)));
    // The transition stays open: it has no effect and cannot be aborted.
    scene.upstreams.trouble(ServiceTrouble::status(Pcs, 503).only(ABORT));
    let name = scene.begin("reboot", &ids).await;
    scene.asked_at_least(Pcs, ABORT, 1).await;
    scene.asked_again(Pcs, LOOK, 10).await;
    scene.were_asked(&ids, &["Soft-Off"]);
    scene.upstreams.clear_troubles(None);
    scene.succeeds(&name).await;
    scene.were_asked(&ids, &["Soft-Off", "Force-Off", "On"]);
    scene.was_orderly();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn swapped_answers_are_told_apart() {
    let plan = MachinePlan { pace: Some(paced(1.0, 1.0, 0.0)), ..MachinePlan::quick(NODES) };
    let scene = MeshScene::of(plan, |_| {}).await;
    let ids = scene.upstreams.ids();
    let (running, off) = ids.split_at(4);
    scene.succeeds(&scene.begin("boot", running).await).await;
    scene.upstreams.reset_counts();
    scene.upstreams.trouble(ServiceTrouble::new(Pcs, TroubleEffect::Swap).only(POST).times(2));
    let (shutdown, boot) = tokio::join!(scene.begin("shutdown", running), scene.begin("boot", off));
    scene.succeeds(&shutdown).await;
    scene.succeeds(&boot).await;
    scene.were_asked(running, &["On", "Soft-Off"]);
    scene.were_asked(off, &["On"]);
    assert_eq!(scene.upstreams.requests(Pcs, ABORT), 0, "nothing was to be called off");
    scene.was_orderly();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_answer_is_not_believed() {
    let plan = MachinePlan { pace: Some(paced(0.5, 0.5, 0.0)), ..MachinePlan::quick(NODES) };
    let scene = MeshScene::of(plan, |_| {}).await;
    let ids = scene.upstreams.ids();
    let (first, second) = ids.split_at(4);
    scene.upstreams.trouble(ServiceTrouble::new(Pcs, TroubleEffect::Repeat).only(POST).times(2));
    let one = scene.begin("boot", first).await;
    scene.asked_at_least(Pcs, POST, 1).await;
    let other = scene.begin("boot", second).await;
    scene.succeeds(&one).await;
    scene.succeeds(&other).await;
    scene.were_asked(&ids, &["On"]);
    scene.was_orderly();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_transition_is_neither_adopted_nor_aborted() {
    let mut plan = MachinePlan { pace: Some(paced(0.5, 3.0, 0.0)), ..MachinePlan::quick(NODES) };
    plan.power.minute = Duration::from_secs(60);
    let scene = MeshScene::of(plan, brisk).await;
    let ids = scene.upstreams.ids();
    let foreign = scene.upstreams.foreign_transition("On", &ids).unwrap();
    scene.upstreams.trouble(ServiceTrouble::new(Pcs, TroubleEffect::DropAfter).only(POST).times(1));
    let name = scene.begin("boot", &ids).await;
    scene.succeeds(&name).await;
    let ours = scene.transitions().await;
    assert!(ours.iter().all(|one| one.upstream_id != foreign), "{ours:?}");
    assert_eq!(scene.upstreams.requests(Pcs, ABORT), 0);
    let all = scene.upstreams.transitions();
    let theirs = all.as_array().unwrap().iter().find(|one| one["transitionID"] == *foreign).unwrap();
    assert_eq!(theirs["taskCounts"]["succeeded"], NODES, "{theirs}");
    scene.end().await;
}

/// After `trouble`, a refusal of all calls, every node boots at its first attempt and soon.
async fn passes_without_a_failure(trouble: ServiceTrouble) -> MeshScene {
    let scene = MeshScene::new(40).await;
    scene.mesh.bos.options(&json!({"default_retry_policy": 1})).await;
    let ids = scene.upstreams.ids();
    scene.upstreams.trouble(trouble.lasting(REFUSAL));
    let began = Instant::now();
    let name = scene.begin("boot", &ids).await;
    scene.succeeds(&name).await;
    assert!(began.elapsed() < REFUSAL + SOON, "{:?}", began.elapsed());
    scene.were_asked(&ids, &["On"]);
    assert_eq!(scene.most_attempts().await, 1);
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn power_service_that_refuses_everybody_costs_no_node() {
    let scene = passes_without_a_failure(ServiceTrouble::status(Pcs, 400).only(POST)).await;
    let posts = scene.upstreams.requests(Pcs, POST);
    assert!(posts <= 40, "{posts} calls for one batch");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_that_refuses_everybody_costs_no_node() {
    let scene = passes_without_a_failure(ServiceTrouble::status(Cfs, 400).only(PATCH)).await;
    let patches = scene.upstreams.requests(Cfs, PATCH);
    assert!(patches <= 40, "{patches} calls for one batch");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn boot_data_are_given_once_while_configuration_is_away() {
    let scene = MeshScene::of(MachinePlan::quick(NODES), brisk).await;
    scene.upstreams.trouble(ServiceTrouble::status(Cfs, 503).only(PATCH));
    let name = scene.boot().await;
    scene.asked_at_least(Cfs, PATCH, 6).await;
    scene.upstreams.clear_troubles(None);
    scene.succeeds(&name).await;
    let puts = scene.upstreams.requests(Bss, PUT);
    assert!(puts <= 2, "{puts} times the same boot data");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_without_nodes_for_a_moment_completes_no_session() {
    let no_such_page = TroubleEffect::Status { code: 404, body: "<html>".to_owned(), retry_after: None };
    for effect in [TroubleEffect::Omit { fraction: 1.0 }, TroubleEffect::Omit { fraction: 0.5 }, no_such_page]
    {
        let plan = MachinePlan { pace: Some(paced(0.1, 0.1, 3.0)), ..MachinePlan::quick(NODES) };
        let ids: Vec<_> = plan.hardware.iter().map(|piece| piece.id.clone()).collect();
        let tenants = BTreeMap::from([("blue".to_owned(), ids)]);
        let scene = MeshScene::of(MachinePlan { tenants, ..plan }, |_| {}).await;
        let ids = scene.upstreams.ids();
        let blue = scene.mesh.bos.of_tenant("blue");
        blue.template(TEMPLATE).await;
        let name = blue.session_of(TEMPLATE, "boot", &ids).await;
        scene.are(&ids, "configuring").await;
        let moment = scene.upstreams.trouble(ServiceTrouble::new(Tapms, effect).only(TENANT));
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until {
            let session = blue.get(&format!("/v2/sessions/{name}")).await;
            assert_eq!(session["status"]["status"], "running", "{session}");
            assert_eq!(session["status"]["end_time"], json!(null), "{session}");
        }
        scene.upstreams.clear_trouble(moment);
        let complete = blue.complete(&name).await;
        let members = complete["components"].as_str().unwrap().split(',').count();
        assert_eq!(members, ids.len(), "{complete}");
        let status = blue.get(&format!("/v2/sessions/{name}/status")).await;
        assert_eq!(status["managed_components_count"], ids.len(), "{status}");
        scene.were_asked(&ids, &["On"]);
        scene.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_power_off_is_asked_again_before_force() {
    let scene = MeshScene::of(MachinePlan { up: true, ..MachinePlan::quick(NODES) }, |_| {}).await;
    let ids = scene.upstreams.ids();
    let (held, free) = ids.split_at(1);
    let change = NodeChange { reserved_seconds: Some(2.0), ..NodeChange::default() };
    scene.upstreams.change(held, &change).unwrap();
    let name = scene.begin("shutdown", &ids).await;
    scene.succeeds(&name).await;
    let asked = scene.asked(&held[0]);
    assert!(asked.len() >= 2 && asked.iter().all(|operation| *operation == "Soft-Off"), "{asked:?}");
    scene.were_asked(free, &["Soft-Off"]);
    scene.end().await;
}
