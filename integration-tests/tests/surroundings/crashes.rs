//! A mesh that is killed while the systems around it are at work for it.

use std::time::Duration;

use integration_tests::eventually;
use serde_json::json;
use upstreams::{
    EventKind, MachinePlan, NodePace,
    Service::{self, Bss, Cfs, Pcs},
    ServiceTrouble, TroubleEffect,
};

use crate::served::MeshProcess;

const NODES: u32 = 8;

/// Long enough to be killed meanwhile.
const SLOW: Duration = Duration::from_secs(2);

/// Long enough for a step to be under way when the mesh is killed.
const STEP: Duration = Duration::from_millis(600);

/// Seconds that a node has to turn on before it is asked again.
const POWER_ON_WAIT: u64 = 2;

/// Milliseconds that each life of the mesh lasts after it has become ready.
const LIVES: [u64; 8] = [20, 60, 100, 30, 5, 200, 50, 10];

/// Kills the mesh as soon as `service` was asked for `operation`, which `trouble` may befall, and starts it again;
/// then each node boots with one power-on.
async fn is_survived(service: Service, operation: &str, trouble: Option<TroubleEffect>) {
    let pace = NodePace { power_on: SLOW, ..NodePace::default() };
    let plan = MachinePlan { pace: Some(pace), ..MachinePlan::quick(NODES) };
    let mut mesh = MeshProcess::prepare(plan, "t", "s").await;
    mesh.start().await;
    mesh.bos.options(&json!({"default_retry_policy": 1})).await;
    mesh.bos.template("image-1").await;
    if let Some(effect) = trouble {
        mesh.upstreams.trouble(ServiceTrouble::new(service, effect).only(operation).times(1));
    }
    let name = mesh.bos.session("image-1", "boot").await;
    eventually(operation, async || (mesh.upstreams.requests(service, operation) > 0).then_some(())).await;
    mesh.kill().await;
    mesh.start().await;
    let session = mesh.bos.complete(&name).await;
    let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_successful"], json!(100.0), "{status} {session}");
    for id in mesh.upstreams.ids() {
        booted_once(&mesh, &id);
    }
    let power = mesh.upstreams.summary().power;
    assert_eq!((power.crossings, power.overlaps, power.refused_reservations), (0, 0, 0));
    mesh.kill().await;
    drop(mesh);
}

/// Checks that a node was asked to turn on once, and booted the data that it was given last.
fn booted_once(mesh: &MeshProcess, id: &str) {
    let (mut asked, mut given, mut booted) = (0, None, None);
    for event in mesh.upstreams.history(id).unwrap() {
        match event.what {
            EventKind::Asked { operation, .. } => {
                assert_eq!(operation, "On", "{id}");
                asked += 1;
            }
            EventKind::BootData { token } => given = Some(token),
            EventKind::Booted { token } => booted = Some(token),
            _ => {}
        }
    }
    assert_eq!(asked, 1, "{id}");
    assert!(booted.is_some() && booted == given, "{id}: {booted:?} {given:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transition_is_followed_again_after_a_crash() {
    is_survived(Pcs, "GET /transitions/{id}", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transition_with_answer_lost_in_a_crash_is_adopted() {
    is_survived(Pcs, "POST /transitions", Some(TroubleEffect::HangAfter)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transition_lost_in_a_crash_is_sent_again() {
    is_survived(Pcs, "POST /transitions", Some(TroubleEffect::Hang)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn boot_data_with_answer_lost_in_a_crash_are_resent() {
    is_survived(Bss, "PUT /bootparameters", Some(TroubleEffect::HangAfter)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_with_answer_lost_in_a_crash_is_set_again() {
    is_survived(Cfs, "PATCH /components", Some(TroubleEffect::HangAfter)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_booting_while_the_mesh_is_down_are_not_reprepared() {
    let pace = NodePace { power_on: STEP, ..NodePace::default() };
    let mut mesh =
        MeshProcess::prepare(MachinePlan { pace: Some(pace), ..MachinePlan::quick(NODES) }, "t", "s").await;
    mesh.start().await;
    mesh.bos.options(&json!({"max_power_on_wait_time": POWER_ON_WAIT})).await;
    mesh.bos.template("image-1").await;
    let name = mesh.bos.session("image-1", "boot").await;
    let asked_for = |mesh: &MeshProcess, operation| mesh.upstreams.requests(Pcs, operation);
    eventually("a transition to be followed", async || {
        (asked_for(&mesh, "GET /transitions/{id}") > 0).then_some(())
    })
    .await;
    mesh.kill().await;
    eventually("nodes to be configured", async || {
        let ids = mesh.upstreams.ids();
        ids.iter().all(|id| is_configured(&mesh, id)).then_some(())
    })
    .await;
    // The time to turn on ends without a sign.
    tokio::time::sleep(Duration::from_secs(POWER_ON_WAIT)).await;

    // No power is read before the upstream has listed what it works on.
    mesh.upstreams.trouble(ServiceTrouble::status(Pcs, 503));
    let before = asked_for(&mesh, "GET /transitions");
    mesh.start().await;
    eventually("questions that are not answered", async || {
        (asked_for(&mesh, "GET /transitions") >= before + 2).then_some(())
    })
    .await;
    mesh.upstreams.clear_troubles(None);
    mesh.bos.complete(&name).await;
    let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_successful"], json!(100.0), "{status}");
    for id in mesh.upstreams.ids() {
        booted_once(&mesh, &id);
        prepared_once(&mesh, &id);
    }
    mesh.kill().await;
}

/// Returns whether the configuration service reports a node that has booted as configured.
fn is_configured(mesh: &MeshProcess, id: &str) -> bool {
    let history = mesh.upstreams.history(id).unwrap();
    let after_boot = history.iter().skip_while(|event| !matches!(event.what, EventKind::Booted { .. }));
    after_boot.into_iter().any(|event| matches!(event.what, EventKind::Configured { status: "configured" }))
}

/// A node was prepared for one boot, before it.
fn prepared_once(mesh: &MeshProcess, id: &str) {
    let history = mesh.upstreams.history(id).unwrap();
    let is_prepared = |what: &EventKind| {
        matches!(what, EventKind::BootData { .. } | EventKind::Configuration { cleared: true, .. })
    };
    let prepared: Vec<_> = history.iter().map(|event| &event.what).filter(|what| is_prepared(what)).collect();
    assert_eq!(prepared.len(), 2, "{id}: {prepared:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_survives_one_crash_after_another() {
    let pace =
        NodePace { soft_off: STEP, power_on: STEP, boot: STEP, configuration: STEP, ..NodePace::default() };
    let plan = MachinePlan { up: true, pace: Some(pace), ..MachinePlan::quick(40) };
    let mut mesh = MeshProcess::prepare(plan, "t", "s").await;
    mesh.start().await;
    mesh.bos.options(&json!({"default_retry_policy": 1})).await;
    mesh.bos.template("image-1").await;
    let name = mesh.bos.session("image-1", "reboot").await;
    for lives in LIVES {
        tokio::time::sleep(Duration::from_millis(lives)).await;
        mesh.kill().await;
        mesh.start().await;
    }
    mesh.bos.complete(&name).await;
    let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_successful"], json!(100.0), "{status}");
    let power = mesh.upstreams.summary().power;
    assert_eq!((power.soft_off, power.on, power.force_off), (40, 40, 0), "{power:?}");
    assert_eq!((power.crossings, power.overlaps, power.refused_reservations), (0, 0, 0));
    mesh.kill().await;
}
