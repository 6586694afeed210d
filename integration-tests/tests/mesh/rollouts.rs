//! Sessions that roll out in batches.

use integration_tests::{eventually, processes::Processes};
use reqwest::Method;
use serde_json::{Value, json};

use crate::crashes::{crash, switched_on};

/// Starts a mesh with that many nodes, of which some have a fault; `speed` is a factor on all durations of the hardware.
async fn mesh(nodes: usize, speed: f64, faults: &str) -> Processes {
    let mut mesh = Processes::prepare();
    mesh.set(&format!("[simulator]\nnodes = {nodes}\nspeed = {speed}\nfaults = \"{faults}\"\n"));
    mesh.begin().await;
    mesh.bos.discovered(nodes).await;
    mesh.bos.template("image-1").await;
    mesh
}

/// Creates a boot session that rolls out, and returns its name.
async fn create(mesh: &Processes, rollout: Value) -> String {
    let body = json!({"operation": "boot", "template_name": "image-1", "rollout": rollout});
    let session = mesh.bos.expect(Method::POST, "/reveille/v1/sessions", Some(&body)).await;
    session["name"].as_str().unwrap().to_owned()
}

async fn shown(mesh: &Processes, name: &str) -> Value {
    mesh.bos.get(&format!("/reveille/v1/sessions/{name}")).await
}

fn batch(session: &Value) -> u64 {
    session["rollout"]["batch"].as_u64().unwrap()
}

async fn until(mesh: &Processes, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    eventually(what, async || Some(shown(mesh, name).await).filter(&wanted)).await
}

async fn kinds(mesh: &Processes, name: &str) -> Vec<String> {
    let story = mesh.bos.get(&format!("/reveille/v1/events?resource=session&session={name}")).await;
    let events = story["events"].as_array().unwrap();
    events.iter().map(|one| one["kind"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_open_in_order_through_crashes() {
    let mut mesh = mesh(6, 0.01, "").await;
    let name = create(&mesh, json!({"canary_count": 1, "batch_count": 3, "soak": 1})).await;
    until(&mesh, &name, "the canary", |session| batch(session) == 1).await;
    let waiting = mesh.bos.get(&format!("/v2/components?session={name}&enabled=true")).await;
    let last = waiting.as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
    let explain = format!("/reveille/v1/explain/components/{last}");
    let explained = eventually("an explanation", async || {
        // Insight may be about to start.
        let answer = mesh.bos.try_send(Method::GET, &explain, None).await.ok()?;
        Some(answer.body).filter(|explained| explained["reason"] == "batch_awaited")
    })
    .await;
    let sentence = explained["sentence"].as_str().unwrap();
    assert!(sentence.starts_with(&format!("{last} waits for batch 3 of 3 of session {name}")), "{sentence}");
    for part in ["session_manager", "component_registry", "power_controller"] {
        crash(&mut mesh, part).await;
    }
    for (opened, most) in [(1, 1), (2, 4)] {
        // Read before the session: no more nodes were switched on than batches were open later.
        eventually("the next batch", async || {
            let switched = switched_on(&mesh).await.len();
            let session =
                mesh.bos.try_send(Method::GET, &format!("/reveille/v1/sessions/{name}"), None).await.ok()?;
            if batch(&session.body) > opened {
                return Some(());
            }
            assert!(switched <= most, "{switched} nodes are switched on: {:#}", session.body);
            None
        })
        .await;
    }
    mesh.bos.complete(&name).await;
    let switched = switched_on(&mesh).await;
    assert_eq!(switched.len(), 6);
    assert!(switched.values().all(|times| *times == 1), "{switched:?}");
    let opened = ["batch_opened"; 3];
    let story = [&["created", "running"][..], &opened, &["rollout_finished", "complete"]].concat();
    assert_eq!(kinds(&mesh, &name).await, story);
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_canary_holds_the_others_until_somebody_resumes() {
    // Of any four nodes at least one never comes on.
    let mesh = mesh(6, 0.0, "stuck-off=3").await;
    mesh.bos.options(&json!({"max_power_on_wait_time": 2, "default_retry_policy": 1})).await;
    let name = create(&mesh, json!({"canary_count": 4, "batch_count": 1})).await;
    let held = until(&mesh, &name, "the hold", |session| session["pause"].is_object()).await;
    assert_eq!((&held["pause"]["by"], batch(&held)), (&json!("rollout"), 1), "{held:#}");
    assert_eq!(held["rollout"]["standing"]["waits_for"], "decision", "{held:#}");
    assert!(switched_on(&mesh).await.len() <= 4);
    let explained = mesh.bos.get(&format!("/reveille/v1/explain/sessions/{name}")).await;
    assert_eq!(explained["reason"], "session_paused", "{explained:#}");
    assert_eq!(explained["next_step"]["command"], format!("reveille session resume {name}"), "{explained:#}");

    let resume = format!("/reveille/v1/sessions/{name}/resume");
    eventually("the end", async || {
        let session = shown(&mesh, &name).await;
        if session["pause"].is_object() {
            mesh.bos.expect(Method::POST, &resume, None).await;
        }
        (session["progress"] == "complete").then_some(())
    })
    .await;
    let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_successful"], json!(50.0), "{status}");
    assert_eq!(shown(&mesh, &name).await["result"], "partial");
    let kinds = kinds(&mesh, &name).await;
    assert!(kinds.contains(&"rollout_held".to_owned()), "{kinds:?}");
}
