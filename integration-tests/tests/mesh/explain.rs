//! Nodes, sessions, hosts and devices that went wrong, as the explanations name them.

use integration_tests::{bos::Bos, eventually, hosts::RackHosts, mesh::Mesh, processes::operate};
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
    for path in ["components/x9999", "sessions/none", "hosts/rack/none", "devices/none"] {
        let answer = bos.send(Method::GET, &format!("/reveille/v1/explain/{path}"), None).await;
        assert_eq!(answer.status, 404, "{path}");
    }
    let path = format!("/reveille/v1/explain/components/{id}");
    let of_tenant = bos.of_tenant("blue").send(Method::GET, &path, None).await;
    assert_eq!(of_tenant.status, 403);
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_tell_a_wrong_login_from_work() {
    let mesh = Mesh::start(async |_| {}).await;
    let (bos, settings) = (&mesh.bos, &mesh.settings);
    let hosts = RackHosts::at(&settings.component_registry.url, &settings.simulator.url);
    hosts.create("no-secret-1").await;
    let lacking = explained(bos, "hosts/rack/no-secret-1", "host_credentials_missing").await;
    assert_eq!((&lacking["outcome"], &lacking["class"]), (&json!("held"), &json!("operator")), "{lacking:#}");
    hosts.log_in().await;
    hosts.create("wrong-password-1").await;
    let failed = explained(bos, "hosts/rack/wrong-password-1", "host_login_unproven").await;
    let told = ["subject", "outcome", "class", "peer"].map(|member| &failed[member]);
    assert_eq!(told, ["rack/wrong-password-1", "failed", "hardware", "backend"], "{failed:#}");
    assert_eq!(failed["causes"][0]["words"], "wrong user name or password", "{failed:#}");
    assert!(failed["since"].is_string(), "{failed:#}");
    assert_eq!(evidence(&failed, "credentials"), ["absent"], "{failed:#}");
    assert!(evidence(&failed, "attempt").contains(&"present"), "{failed:#}");
    let step = &failed["next_step"]["command"];
    assert_eq!(*step, "kubectl edit bmh wrong-password-1 --namespace rack", "{failed:#}");
    hosts.is_available("no-secret-1").await;
    let ready = explained(bos, "hosts/rack/no-secret-1", "host_available").await;
    assert_eq!(ready["outcome"], "as_wanted", "{ready:#}");

    let shown = operate(bos, "explain host wrong-password-1 --namespace rack").await;
    let sentence = "The registration of wrong-password-1 fails since ";
    assert!(shown.starts_with(sentence) && shown.contains("host_login_unproven"), "{shown}");
    let listed = operate(bos, "get hosts --namespace rack").await;
    assert!(listed.contains("wrong-password-1") && listed.contains("available"), "{listed}");
    assert_eq!(operate(bos, "get hosts --namespace none -o json").await, "[]\n");
    mesh.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_tell_a_silent_agent_and_a_failed_update() {
    let mesh = Mesh::start(async |_| {}).await;
    let bos = &mesh.bos;
    let path = "/flightctl/api/v1/devices/edge-7";
    let device = json!({
        "apiVersion": "flightctl.io/v1beta1",
        "kind": "Device",
        "metadata": {"name": "edge-7"},
        "spec": {"os": {"image": "registry.example/kiosk:2"}},
    });
    bos.expect(Method::PUT, path, Some(&device)).await;
    let silent = explained(bos, "devices/edge-7", "device_never_seen").await;
    let told = ["subject", "outcome", "class", "peer"].map(|member| &silent[member]);
    assert_eq!(told, ["edge-7", "waiting", "network", "agent"], "{silent:#}");
    assert_eq!(evidence(&silent, "contact"), ["absent"], "{silent:#}");

    let mut device = bos.get(path).await;
    device["status"]["conditions"] = json!([{
        "type": "Updating", "status": "False", "reason": "Error", "message": "no space on the disk",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    bos.expect(Method::PUT, &format!("{path}/status"), Some(&device)).await;
    let is_told = async || {
        let told = explained(bos, "devices/edge-7", "device_never_seen").await;
        (told["causes"][1]["reason"] == "device_update_failed").then_some(told)
    };
    let failed = eventually("the failed update", is_told).await;
    assert_eq!(failed["causes"][1]["words"], "no space on the disk", "{failed:#}");
    assert_eq!(failed["causes"][1]["class"], "configuration", "{failed:#}");

    let shown = operate(bos, "explain device edge-7").await;
    assert!(shown.contains("device_update_failed; class configuration; peer agent"), "{shown}");
    assert_eq!(operate(bos, "get devices -o name").await, "edge-7\n");
    assert_eq!(operate(bos, "get devices --fleet none -o name").await, "");
    mesh.stop().await;
}

/// Verdicts of the evidence from one source.
fn evidence<'a>(explained: &'a Value, source: &str) -> Vec<&'a str> {
    let items = explained["evidence"].as_array().unwrap().iter();
    items.filter(|item| item["source"] == source).filter_map(|item| item["verdict"].as_str()).collect()
}

/// Waits for the explanation with that reason.
async fn explained(bos: &Bos, what: &str, reason: &str) -> Value {
    let told = async || {
        let answer = bos.send(Method::GET, &format!("/reveille/v1/explain/{what}"), None).await;
        (answer.status == 200).then_some(answer.body).filter(|body| body["reason"] == reason)
    };
    eventually(&format!("{reason} of {what}"), told).await
}
