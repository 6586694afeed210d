//! Sessions through the whole mesh in one process, over REST.

use std::time::Duration;

use integration_tests::{eventually, mesh::Mesh, places};
use proto::{
    power::PowerReading,
    simulation::{GetPowerRequest, WatchPowerRequest, fleet_service_client::FleetServiceClient},
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_boots_reboots_and_shuts_down() {
    let mesh = Mesh::start(async |_| {}).await;
    whole_life(&mesh).await;
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_on_postgresql() {
    let mut on_postgres = false;
    let mesh = Mesh::start(async |settings| on_postgres = places::on_postgres(settings).await).await;
    if on_postgres {
        whole_life(&mesh).await;
    } else {
        eprintln!("not tested on PostgreSQL: {} is not set", test_databases::POSTGRES);
    }
    mesh.stop().await;
}

async fn whole_life(mesh: &Mesh) {
    mesh.bos.template("image-1").await;
    mesh.bos.template("image-2").await;
    for (template, operation, kernel) in [
        ("image-1", "boot", "s3://boot-images/image-1/kernel"),
        ("image-2", "boot", "s3://boot-images/image-2/kernel"),
        ("image-2", "reboot", "s3://boot-images/image-2/kernel"),
        ("image-2", "shutdown", ""),
    ] {
        let name = mesh.bos.session(template, operation).await;
        let session = mesh.bos.complete(&name).await;
        assert_eq!(session["status"]["error"], Value::Null, "{operation}");
        let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
        assert_eq!(status["percent_successful"], json!(100.0), "{operation}: {status}");
        for component in mesh.bos.get("/v2/components").await.as_array().unwrap() {
            assert_eq!(component["status"]["status"], "stable", "{operation}: {component}");
            assert_eq!(component["enabled"], false, "{operation}: {component}");
            assert_eq!(component["session"], name.as_str(), "{operation}: {component}");
            assert_eq!(
                component["actual_state"]["boot_artifacts"]["kernel"], kernel,
                "{operation}: {component}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_boot_leaves_its_story() {
    let mesh = Mesh::start(async |_| {}).await;
    mesh.bos.template("image-1").await;
    let id = mesh.bos.get("/v2/components").await[0]["id"].as_str().unwrap().to_owned();
    let name = mesh.bos.session_of("image-1", "boot", std::slice::from_ref(&id)).await;
    mesh.bos.complete(&name).await;
    let patch = json!({"retry_policy": 5});
    mesh.bos.expect(Method::PATCH, &format!("/v2/components/{id}"), Some(&patch)).await;
    let story = story(&mesh, &format!("component={id}&session={name}")).await.replace(&name, "NAME");
    let limited = self::story(&mesh, &format!("component={id}&kind=boot_reported,created&limit=1")).await;
    let refused = mesh.bos.of_tenant("blue").send(Method::GET, "/reveille/v1/events", None).await;
    mesh.stop().await;
    assert_eq!(refused.status, 403);
    let mut rest = story.as_str();
    for step in ["desired_state_set", "power_action_began", "boot_reported", "disabled", "written"] {
        rest = rest.split_once(step).unwrap_or_else(|| panic!("no {step} in its place:\n{story}")).1;
    }
    assert_eq!(limited.lines().count(), 1, "{limited}");
}

/// The events that `query` selects, without their times and ids.
async fn story(mesh: &Mesh, query: &str) -> String {
    let answer = mesh.bos.get(&format!("/reveille/v1/events?{query}")).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lines = answer["events"].as_array().unwrap().iter().map(|event| {
        assert!(!text(&event["time"]).is_empty() && !text(&event["name"]).is_empty(), "{event}");
        let has_request = if event["request_id"].is_string() { " (request)" } else { "" };
        let details = event["details"].as_object().into_iter().flatten();
        let details: String = details.map(|(name, value)| format!(" {name}={}", text(value))).collect();
        let words = ["resource", "actor", "kind", "reason", "text"].map(|name| text(&event[name]));
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        format!("{}{details}{has_request}\n", words.join(" "))
    });
    lines.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn faulty_nodes_fail_with_a_reason_without_delaying_others() {
    let mesh = Mesh::start(async |settings| {
        settings.simulator.nodes = 40;
        settings.simulator.faults = "stuck-off=2,never-reports=2,configuration-fails=2".into();
    })
    .await;
    let impatient = json!({"max_power_on_wait_time": 1, "max_power_off_wait_time": 1, "max_boot_wait_time": 1,
        "default_retry_policy": 2});
    mesh.bos.expect(Method::PATCH, "/v2/options", Some(&impatient)).await;
    mesh.bos.template("image-1").await;
    let name = mesh.bos.session("image-1", "boot").await;
    mesh.bos.complete(&name).await;
    let components = mesh.bos.get("/v2/components").await;
    let (failed, fine): (Vec<_>, Vec<_>) = components
        .as_array()
        .unwrap()
        .iter()
        .partition(|component| component["status"]["status"] == "failed");
    assert_eq!((failed.len(), fine.len()), (6, 34), "{failed:#?}");
    for component in failed {
        assert_ne!(component["error"], "", "{component}");
        assert_eq!(component["enabled"], false, "{component}");
    }
    let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(
        (&status["percent_failed"], &status["percent_successful"]),
        (&json!(15.0), &json!(85.0)),
        "{status}"
    );
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_ignore_a_shutdown_are_forced_off() {
    let mesh = Mesh::start(async |settings| {
        settings.simulator.faults = "ignores-graceful-off=3".into();
        settings.simulator.initial_power = "on".into();
    })
    .await;
    mesh.bos.expect(Method::PATCH, "/v2/options", Some(&json!({"max_power_off_wait_time": 1}))).await;
    mesh.bos.template("image-1").await;
    let name = mesh.bos.session("image-1", "shutdown").await;
    mesh.bos.complete(&name).await;
    let forced = mesh.bos.get("/v2/components").await;
    let forced = forced.as_array().unwrap().iter();
    let forced = forced.filter(|component| component["last_action"]["action"] == "powering_off_forcefully");
    assert_eq!(forced.count(), 3);
    let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_successful"], json!(100.0), "{status}");
    mesh.stop().await;
}

/// Time of the slowest node to come on at [`SLOW`], with some margin.
const SLOWEST_POWER_ON: Duration = Duration::from_millis(1_500);

/// Slow enough for a session to overtake the power-on of the one before.
const SLOW: f64 = 0.05;

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_that_overtakes_a_power_on_leaves_no_node_on() {
    let mesh = Mesh::start(async |settings| settings.simulator.speed = SLOW).await;
    mesh.bos.template("image-1").await;
    mesh.bos.session("image-1", "boot").await;
    let called = async || {
        let components = mesh.bos.get("/v2/components?status=power_on_called").await;
        components.as_array().is_some_and(|called| !called.is_empty()).then_some(())
    };
    eventually("a power-on", called).await;
    let name = mesh.bos.session("image-1", "shutdown").await;
    mesh.bos.complete(&name).await;

    let mut fleet = FleetServiceClient::new(chassis::plain_channel(&mesh.settings.simulator.url).unwrap());
    let mut changes = fleet.watch_power(WatchPowerRequest {}).await.unwrap().into_inner();
    let power = fleet.get_power(GetPowerRequest::default()).await.unwrap().into_inner().nodes;
    let on: Vec<_> = power.iter().filter(|node| node.reading() != PowerReading::Off).collect();
    assert!(on.is_empty(), "{on:?}");
    let change = timeout(SLOWEST_POWER_ON, changes.message()).await;
    assert!(change.is_err(), "{change:?}");
    let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_successful"], json!(100.0), "{status}");
    mesh.stop().await;
}
