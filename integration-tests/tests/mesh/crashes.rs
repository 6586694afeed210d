//! Parts that vanish while they are needed.

use std::{collections::BTreeMap, time::Duration};

use integration_tests::{
    eventually,
    processes::{PARTS, Processes},
};
use proto::{
    power::{ListPowerStatesRequest, PowerReading, PowerState, power_service_client::PowerServiceClient},
    session::{GetSessionRequest, Session, session_service_client::SessionServiceClient},
    simulation::{ListTransitionsRequest, TransitionOperation, fleet_service_client::FleetServiceClient},
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

/// Hardware slow enough that every part is killed while nodes are under way: a boot takes several seconds.
const SPEED: f64 = 0.01;

#[tokio::test(flavor = "multi_thread")]
async fn crashes_of_every_part_switch_no_node_on_twice() {
    let mut mesh = Processes::start(200, SPEED).await;
    mesh.bos.template("image-1").await;
    let name = mesh.bos.session("image-1", "boot").await;
    let parts = PARTS.map(|(part, _)| part).into_iter().filter(|part| *part != "simulator");
    // At once while all nodes are being switched on, and again while more and more of them are done.
    for part in parts.clone() {
        crash(&mut mesh, part).await;
    }
    for (index, part) in parts.enumerate() {
        stable(&mesh, &name, 20 * (index + 1)).await;
        crash(&mut mesh, part).await;
    }
    mesh.bos.complete(&name).await;
    let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_successful"], json!(100.0), "{status}");
    let switched_on = switched_on(&mesh).await;
    assert_eq!(json!(switched_on.len()), status["managed_components_count"]);
    let twice: Vec<_> = switched_on.into_iter().filter(|(_, times)| *times != 1).collect();
    assert!(twice.is_empty(), "switched on more than once: {twice:?}");
}

/// Kills a part and waits until the next one in its place can do its work.
pub(crate) async fn crash(mesh: &mut Processes, part: &'static str) {
    mesh.kill_part(part).await;
    mesh.start_part(part);
    serving(mesh, part).await;
}

/// Waits until that many nodes of a session are stable.
async fn stable(mesh: &Processes, session: &str, nodes: usize) {
    let path = format!("/v2/components?session={session}&status=stable");
    let enough = async || {
        let stable = mesh.bos.try_send(Method::GET, &path, None).await.ok()?;
        (stable.body.as_array()?.len() >= nodes).then_some(())
    };
    eventually(&format!("{nodes} stable nodes"), enough).await;
}

/// Waits until a part can do its work.
async fn serving(mesh: &Processes, part: &str) {
    if part == "gateway" {
        return mesh.bos.ready().await;
    }
    let client = HealthClient::new(chassis::plain_channel(&mesh.url(part)).unwrap());
    let serving = async || {
        let answer = client.clone().check(HealthCheckRequest::default()).await.ok()?;
        (answer.into_inner().status() == ServingStatus::Serving).then_some(())
    };
    eventually(&format!("a serving {part}"), serving).await;
}

/// Power-ons of the simulated hardware, by node.
pub(crate) async fn switched_on(mesh: &Processes) -> BTreeMap<String, usize> {
    let mut fleet = FleetServiceClient::new(chassis::plain_channel(&mesh.url("simulator")).unwrap());
    let transitions = fleet.list_transitions(ListTransitionsRequest { since: None }).await.unwrap();
    let mut times = BTreeMap::new();
    for transition in transitions.into_inner().transitions {
        if transition.operation() == TransitionOperation::On {
            transition.ids.into_iter().for_each(|id| *times.entry(id).or_default() += 1);
        }
    }
    times
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_waits_for_upstreams_that_are_away() {
    let mut mesh = Processes::start(8, 0.0).await;
    mesh.bos.template("image-1").await;
    mesh.stop_part("simulator").await;
    // A session is refused at once while its image cannot be checked.
    let boot = json!({"template_name": "image-1", "operation": "boot"});
    let refused = mesh.bos.send(Method::POST, "/v2/sessions", Some(&boot)).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body["detail"].as_str().unwrap().contains("image store: "), "{refused:?}");
    let name = mesh.bos.session("image-1", "shutdown").await;
    let sessions = SessionServiceClient::new(chassis::plain_channel(&mesh.url("session_manager")).unwrap());
    let request = GetSessionRequest { name: name.clone(), tenant: String::new() };
    let waits = async || {
        let answer = sessions.clone().get_session(request.clone()).await.ok()?;
        let Session { waiting_for, .. } = answer.into_inner().session?;
        (!waiting_for.is_empty()).then_some(waiting_for)
    };
    let waiting_for = eventually("a session that says what it waits for", waits).await;
    assert!(waiting_for.starts_with("inventory: "), "{waiting_for}");
    let pending = mesh.bos.get(&format!("/v2/sessions/{name}")).await;
    assert_eq!(pending["status"]["status"], "pending", "{pending}");
    mesh.start_part("simulator");
    let complete = mesh.bos.complete(&name).await;
    assert_eq!(complete["status"]["error"], json!(null), "{complete}");
    let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_successful"], json!(100.0), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_is_away_spends_no_attempts() {
    let mut mesh = Processes::start(8, 1.0).await;
    let impatient = json!({"max_power_on_wait_time": 8, "default_retry_policy": 2});
    mesh.bos.expect(Method::PATCH, "/v2/options", Some(&impatient)).await;
    mesh.bos.template("image-1").await;
    let name = mesh.bos.session("image-1", "boot").await;
    eventually("every node to be switched on", async || {
        let components = mesh.bos.get("/v2/components?status=power_on_called").await;
        (components.as_array().unwrap().len() == 8).then_some(())
    })
    .await;
    mesh.kill_part("simulator").await;
    eventually("the power states to be unknown", async || {
        (power_readings(&mesh).await.iter().all(|reading| *reading == PowerReading::Unspecified))
            .then_some(())
    })
    .await;
    let attempts = attempts(&mesh).await;
    // Longer than the wait: another attempt would be made if the last reading before the silence still counted.
    let until = Instant::now() + Duration::from_secs(12);
    while Instant::now() < until {
        assert_eq!(self::attempts(&mesh).await, attempts);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let failed = mesh.bos.get("/v2/components?status=failed").await;
    assert_eq!(failed, json!([]));
    assert_eq!(mesh.bos.get(&format!("/v2/sessions/{name}")).await["status"]["status"], "running");
}

async fn power_readings(mesh: &Processes) -> Vec<PowerReading> {
    let mut power = PowerServiceClient::new(chassis::plain_channel(&mesh.url("power_controller")).unwrap());
    let mut states = power.list_power_states(ListPowerStatesRequest::default()).await.unwrap().into_inner();
    let mut readings = Vec::new();
    while let Some(page) = states.message().await.unwrap() {
        readings.extend(page.power_states.iter().map(PowerState::reading));
    }
    readings
}

async fn attempts(mesh: &Processes) -> Vec<Value> {
    let components = mesh.bos.get("/v2/components").await;
    components.as_array().unwrap().iter().map(|one| one["event_stats"].clone()).collect()
}

/// Nodes of [`paused_session_begins_nothing_through_crashes`] that shut down only by force.
const STUBBORN: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn paused_session_begins_nothing_through_crashes() {
    let mut mesh = Processes::prepare();
    mesh.set(&format!(
        "[simulator]\nnodes = 8\nspeed = 0.02\ninitial_power = \"on\"\nfaults = \"ignores-graceful-off={STUBBORN}\"\n"
    ));
    mesh.begin().await;
    mesh.bos.discovered(8).await;
    mesh.bos.template("image-1").await;
    let name = mesh.bos.session("image-1", "reboot").await;
    // Some nodes are being switched on, or have booted; others are asked to shut down, and do not.
    eventually("power-ons and shutdowns", async || {
        let components = mesh.bos.get(&format!("/v2/components?session={name}")).await;
        let last = |action: &str| {
            let all = components.as_array().into_iter().flatten();
            all.filter(|one| one["last_action"]["action"] == action).count()
        };
        (last("powering_on") > 0 && last("powering_off_gracefully") >= STUBBORN).then_some(())
    })
    .await;
    let steer = |verb: &str| format!("/reveille/v1/sessions/{name}/{verb}");
    let paused = mesh.bos.expect(Method::POST, &steer("pause?reason=power+cap"), None).await;
    assert_eq!((&paused["pause"]["by"], &paused["pause"]["reason"]), (&json!("client"), &json!("power cap")));
    // The stubborn nodes are to be forced off now, and are not.
    mesh.bos.options(&json!({"max_power_off_wait_time": 1})).await;
    let held = held(&mesh, &name).await;
    assert!(held.len() >= STUBBORN && held.len() < 8, "{held:?}");
    let switched = transitions(&mesh).await;
    for part in ["session_manager", "component_registry", "status_evaluator", "power_controller"] {
        crash(&mut mesh, part).await;
    }
    assert_eq!(self::held(&mesh, &name).await, held);
    assert_eq!(transitions(&mesh).await, switched);
    // Until a power controller that has just begun has read the node, that is why nothing happens.
    let explained = eventually("the pause to be the reason", async || {
        let path = format!("/reveille/v1/explain/components/{}", held[0]);
        Some(mesh.bos.get(&path).await).filter(|explained| explained["reason"] == "session_paused")
    })
    .await;
    assert_eq!(explained["next_step"]["command"], format!("reveille session resume {name}"), "{explained:#}");

    mesh.bos.expect(Method::POST, &steer("resume"), None).await;
    mesh.bos.complete(&name).await;
    let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_successful"], json!(100.0), "{status}");
    let switched_on = switched_on(&mesh).await;
    assert_eq!(switched_on.len(), 8);
    assert!(switched_on.values().all(|times| *times == 1), "{switched_on:?}");
    let story = mesh.bos.get(&format!("/reveille/v1/events?resource=session&session={name}")).await;
    let kinds: Vec<_> = story["events"].as_array().unwrap().iter().map(|one| one["kind"].clone()).collect();
    assert_eq!(kinds, ["created", "running", "paused", "resumed", "complete"]);
}

/// Waits until every node of a paused session is done or held, and returns those that are held.
async fn held(mesh: &Processes, session: &str) -> Vec<String> {
    let words = format!("session {session} is paused by client since ");
    let path = format!("/v2/components?session={session}");
    let settled = async || {
        let answer = mesh.bos.try_send(Method::GET, &path, None).await.ok()?;
        let components = answer.body.as_array()?.clone();
        let is_held = |one: &&Value| one["error"].as_str().is_some_and(|error| error.starts_with(&words));
        let held = components.iter().filter(is_held).map(|one| one["id"].as_str().unwrap().to_owned());
        let held: Vec<_> = held.collect();
        let done = components.iter().filter(|one| one["status"]["status"] == "stable").count();
        (held.len() + done == 8).then_some(held)
    };
    eventually("nodes that are done or held", settled).await
}

/// Number of transitions that the simulated hardware was asked for.
async fn transitions(mesh: &Processes) -> usize {
    let mut fleet = FleetServiceClient::new(chassis::plain_channel(&mesh.url("simulator")).unwrap());
    let transitions = fleet.list_transitions(ListTransitionsRequest { since: None }).await.unwrap();
    transitions.into_inner().transitions.len()
}
