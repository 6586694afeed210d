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
async fn crash(mesh: &mut Processes, part: &'static str) {
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
async fn switched_on(mesh: &Processes) -> BTreeMap<String, usize> {
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
