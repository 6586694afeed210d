//! Nodes and sessions that went wrong, as the explanations name them.

use integration_tests::{bos::Bos, eventually, mesh::Mesh};
use proto::simulation::{ListFaultsRequest, fleet_service_client::FleetServiceClient};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn failed_nodes_keep_causes_of_their_own() {
    let mesh = Mesh::start(async |settings| {
        settings.simulator.faults = "stuck-off=1,never-reports=1,configuration-fails=1".into();
    })
    .await;
    let bos = &mesh.bos;
    bos.options(&json!({ "max_power_on_wait_time": 1, "max_boot_wait_time": 1, "max_power_off_wait_time": 1,
        "default_retry_policy": 2 }))
        .await;
    bos.template("image-1").await;
    let session = bos.session("image-1", "boot").await;
    bos.complete(&session).await;

    let mut fleet = FleetServiceClient::new(chassis::plain_channel(&mesh.settings.simulator.url).unwrap());
    let faults = fleet.list_faults(ListFaultsRequest {}).await.unwrap().into_inner().faults;
    assert_eq!(faults.len(), 3);
    for fault in &faults {
        let expected = match fault.fault.as_str() {
            "stuck-off" => ("power_on_timed_out", "hardware", "power_on"),
            "never-reports" => ("boot_unreported", "boot_service", "reported"),
            _ => ("configuration_failed", "configuration", "configured"),
        };
        let explained = explained(bos, &format!("components/{}", fault.id), expected.0).await;
        let told = [&explained["reason"], &explained["class"], &explained["missing_stage"]];
        assert_eq!(told, [expected.0, expected.1, expected.2], "{explained:#}");
        assert_eq!(explained["outcome"], "failed", "{explained:#}");
        assert!(explained["sentence"].as_str().unwrap().starts_with(&fault.id), "{explained:#}");
        assert!(explained["next_step"]["command"].as_str().unwrap().contains(&fault.id), "{explained:#}");
    }

    let explained = explained(bos, &format!("sessions/{session}"), "members_failed").await;
    let of_members = explained["causes"].as_array().unwrap().iter().skip(1);
    let mut reasons: Vec<_> = of_members.map(|cause| cause["reason"].as_str().unwrap()).collect();
    reasons.sort_unstable();
    assert_eq!(reasons, ["boot_unreported", "configuration_failed", "power_on_timed_out"], "{explained:#}");
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_at_rest_and_unknown_ones_are_explained() {
    let mesh = Mesh::start(async |_| {}).await;
    let bos = &mesh.bos;
    let components = bos.get("/v2/components").await;
    let id = components[0]["id"].as_str().unwrap();
    let idle = explained(bos, &format!("components/{id}"), "nothing_wanted").await;
    assert_eq!((&idle["outcome"], &idle["class"]), (&json!("held"), &json!("operator")));
    for (path, status) in [("components/x9999", 404), ("sessions/none", 404)] {
        let answer = bos.send(Method::GET, &format!("/reveille/v1/explain/{path}"), None).await;
        assert_eq!(answer.status, status, "{path}");
    }
    let path = format!("/reveille/v1/explain/components/{id}");
    let of_tenant = bos.of_tenant("blue").send(Method::GET, &path, None).await;
    assert_eq!(of_tenant.status, 403);
    mesh.stop().await;
}

/// Waits for the explanation with that reason.
async fn explained(bos: &Bos, what: &str, reason: &str) -> Value {
    let told = async || {
        let answer = bos.send(Method::GET, &format!("/reveille/v1/explain/{what}"), None).await;
        (answer.status == 200).then_some(answer.body).filter(|body| body["reason"] == reason)
    };
    eventually(&format!("{reason} of {what}"), told).await
}
