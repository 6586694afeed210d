//! Power states that are missing, not known, or old.

use std::time::Duration;

use domain::boot::evaluation::ERROR_POWER_MISSING;
use serde_json::Value;
use upstreams::{MachinePlan, NodeFaults, NodePace, Service::Pcs, ServiceTrouble, TroubleEffect};

use crate::scene::MeshScene;

const STATUS: &str = "POST /power-status";

/// Error of a node whose BMC the power service cannot reach.
const UNREACHABLE: &str = "PCS cannot reach the node's BMC";

/// Checks that each of `ids` is as before the session, though enabled, and was not touched.
async fn were_left_alone(scene: &MeshScene, ids: &[String]) {
    for id in ids {
        let component = scene.mesh.bos.component(id).await;
        assert_eq!(component["enabled"], true, "{component}");
        let action = &component["last_action"]["action"];
        assert_eq!(*action, "session_setup", "{component}");
        assert_ne!(component["status"]["status"], "failed", "{component}");
    }
    scene.were_asked(ids, &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_missing_in_an_answer_wait_while_others_continue() {
    let scene = MeshScene::new(40).await;
    scene.upstreams.trouble(ServiceTrouble::new(Pcs, TroubleEffect::Omit { fraction: 0.3 }).only(STATUS));
    scene.boot().await;
    let ids = scene.upstreams.ids();
    scene
        .until("all nodes to be done or held", &ids, |component| {
            component["error"] == ERROR_POWER_MISSING || component["enabled"] == false
        })
        .await;
    let (mut held, mut done) = (Vec::new(), Vec::new());
    for id in ids {
        let component = scene.mesh.bos.component(&id).await;
        if component["enabled"] == true { held.push(id) } else { done.push(id) }
    }
    assert!((5..20).contains(&held.len()), "{held:?}");
    were_left_alone(&scene, &held).await;
    scene.are(&done, "stable").await;
    scene.were_asked(&done, &["On"]);
    // A new session gets a new answer.
    scene.upstreams.clear_troubles(None);
    let name = scene.begin("boot", &held).await;
    scene.succeeds(&name).await;
    scene.were_asked(&held, &["On"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_power_is_neither_on_nor_off() {
    for operation in ["boot", "shutdown"] {
        let scene = MeshScene::of(MachinePlan { up: true, ..MachinePlan::quick(6) }, |_| {}).await;
        let ids = scene.upstreams.ids();
        let [silent, broken, fine] = [&ids[..2], &ids[2..4], &ids[4..]];
        let words = "the BMC has lost its mind";
        scene.faults(silent, NodeFaults { pcs_undefined: true, ..NodeFaults::default() });
        scene.faults(broken, NodeFaults { pcs_error: Some(words.into()), ..NodeFaults::default() });
        scene.begin(operation, &ids).await;
        scene.show(silent, &[UNREACHABLE]).await;
        scene.show(broken, &[words]).await;
        scene.until("the other nodes to be done", fine, |component| component["enabled"] == false).await;
        were_left_alone(&scene, silent).await;
        were_left_alone(&scene, broken).await;
        let first = scene.asked(&fine[0]);
        assert_eq!(first.first(), Some(&"Soft-Off"), "{operation}");

        scene.faults(&ids, NodeFaults::default());
        let name = scene.begin(operation, &ids[..4]).await;
        scene.succeeds(&name).await;
        scene.were_asked(&ids[..4], &first);
        scene.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readings_from_before_an_action_do_not_repeat_it() {
    let sampling = Duration::from_millis(1500);
    let mut plan = MachinePlan { up: true, ..MachinePlan::quick(8) };
    plan.pace = Some(NodePace { soft_off: Duration::from_millis(100), ..NodePace::default() });
    plan.power.sampling_period = sampling;
    let scene = MeshScene::of(plan, |_| {}).await;
    let ids = scene.upstreams.ids();
    for (operation, asked) in
        [("reboot", &["Soft-Off", "On"][..]), ("shutdown", &["Soft-Off", "On", "Soft-Off"])]
    {
        let name = scene.begin(operation, &ids).await;
        scene.succeeds(&name).await;
        scene.were_asked(&ids, asked);
    }
    scene.was_orderly();
    assert_eq!(scene.mesh.bos.component(&ids[0]).await["error"], Value::from(""));
    scene.end().await;
}
