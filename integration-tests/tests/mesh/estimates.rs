//! Expected ends of sessions, learned from earlier ones.

use integration_tests::{eventually, mesh::Mesh};
use reqwest::Method;
use serde_json::{Value, json};

/// Nodes of a session: enough to learn from.
const NODES: u32 = 24;

/// Template of the sessions.
const TEMPLATE: &str = "image-1";

async fn shown(mesh: &Mesh, session: &str) -> Value {
    mesh.bos.get(&format!("/reveille/v1/sessions/{session}")).await
}

async fn plan(mesh: &Mesh) -> Value {
    let body = json!({"operation": "reboot", "template_name": TEMPLATE});
    mesh.bos.expect(Method::POST, "/reveille/v1/plans", Some(&body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn second_session_of_a_template_has_an_expected_end() {
    let mesh = Mesh::start(async |settings| {
        settings.simulator.nodes = NODES;
        settings.simulator.speed = 0.005;
    })
    .await;
    mesh.bos.template(TEMPLATE).await;
    mesh.bos.complete(&mesh.bos.session(TEMPLATE, "boot").await).await;
    assert_eq!(plan(&mesh).await["expected"], Value::Null, "boots tell nothing about reboots");
    let first = mesh.bos.session(TEMPLATE, "reboot").await;
    let running = eventually("the first session to run", async || {
        Some(shown(&mesh, &first).await).filter(|session| session["progress"] != "pending")
    })
    .await;
    assert_eq!(running["estimate"], Value::Null, "nothing was learned yet");
    mesh.bos.complete(&first).await;

    let expected = eventually("the durations to be learned", async || {
        Some(plan(&mesh).await["expected"].clone()).filter(|expected| !expected.is_null())
    })
    .await;
    let [likely, late] = ["likely", "late"].map(|name| expected[name].as_f64().unwrap());
    assert!(0.0 < likely && likely <= late, "{expected}");
    assert!(expected["learned_from"].as_u64() >= Some(10), "{expected}");

    let second = mesh.bos.session(TEMPLATE, "reboot").await;
    let running = eventually("an estimate", async || {
        Some(shown(&mesh, &second).await).filter(|session| session["estimate"].is_object())
    })
    .await;
    assert_eq!(running["estimate"]["learned_from"], expected["learned_from"], "{running}");
    assert!(running["estimate"]["slow_count"].is_u64(), "{running}");
    mesh.bos.complete(&second).await;
    assert_eq!(shown(&mesh, &second).await["estimate"], Value::Null, "it is over");
    eventually("more to be learned", async || {
        let learned_from = plan(&mesh).await["expected"]["learned_from"].as_u64();
        (learned_from > expected["learned_from"].as_u64()).then_some(())
    })
    .await;
    mesh.stop().await;
}
