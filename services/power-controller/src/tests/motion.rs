//! Transitions of other clients that begin while the service runs.

use super::{
    crossing::{foreign, later},
    *,
};
use crate::testing::pcs::PcsTrouble;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_requested_for_a_node_that_another_client_switches() {
    let mesh = ControllerMesh::started().await;
    mesh.power_off(&["x1"]).await;
    mesh.until_taken(1).await;
    mesh.pcs.set_power(&["x1"], "off", &now());
    mesh.pcs.complete_all();
    mesh.until_read("x1", PowerReading::Off).await;
    // It begins after the last look, and the next action is due.
    mesh.pcs.add_transition(foreign("admin", "Soft-Off", "x1"));
    mesh.registry.report_phase(["x1"], Phase::PoweringOn).await;
    mesh.until_waiting_for("x1", "admin").await;
    mesh.until_called("GET /transitions/admin", 2).await;
    assert_eq!(mesh.pcs.taken(), ["Soft-Off x1", "Soft-Off x1"]);
    mesh.pcs.set_power(&["x1"], "off", &later());
    mesh.pcs.set_status_of("admin", "completed");
    assert_eq!(mesh.until_taken(3).await[2], "On x1");
    assert_eq!(attempts(&mesh.registry.get("x1").await, Action::PoweringOn), 1);
    let looked_before = |calls: &[String]| {
        let sent = calls.iter().rposition(|call| call == "POST /transitions").unwrap();
        calls[..sent].iter().rev().take(3).any(|call| call == "GET /transitions")
    };
    assert!(looked_before(&mesh.pcs.calls()), "{:?}", mesh.pcs.calls());
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_during_a_restart_by_another_client_is_no_evidence() {
    let mesh = ControllerMesh::started().await;
    for operation in ["Hard-Restart", "Force-Off", "On"] {
        let admin = format!("admin-{operation}");
        mesh.pcs.add_transition(foreign(&admin, operation, "x1"));
        mesh.pcs.set_power(&["x1"], "off", &now());
        mesh.assign(&["x1"], Phase::None).await;
        mesh.until_waiting_for("x1", &admin).await;
        mesh.until_called("POST /power-status", 2).await;
        let state = mesh.state("x1").await.unwrap();
        assert_eq!(state.reading(), PowerReading::Unspecified, "{operation}: {state:?}");
        mesh.pcs.set_power(&["x1"], "on", LONG_AGO);
        mesh.pcs.set_status_of(&admin, "completed");
        mesh.until_called("POST /power-status", 3).await;
        assert_ne!(
            mesh.state("x1").await.unwrap().reading(),
            PowerReading::On,
            "{operation}: from before its end"
        );
        let wanted = if operation == "Force-Off" { "off" } else { "on" };
        mesh.pcs.set_power(&["x1"], wanted, &later());
        let reading = if wanted == "on" { PowerReading::On } else { PowerReading::Off };
        mesh.until_read("x1", reading).await;
        mesh.pcs.end_all();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_requested_while_transitions_cannot_be_listed() {
    let mesh = ControllerMesh::started().await;
    mesh.power_off(&["x1"]).await;
    mesh.until_taken(1).await;
    mesh.pcs.complete_all();
    mesh.pcs.set_power(&["x1"], "off", &now());
    mesh.until_read("x1", PowerReading::Off).await;
    mesh.pcs.trouble("list", Some(PcsTrouble::Answers(503, String::new())));
    mesh.registry.report_phase(["x1"], Phase::PoweringOn).await;
    let waits = |one: &Component| one.power_error().starts_with("waiting for PCS at ");
    mesh.until_component("x1", "waits for the list", waits).await;
    assert_eq!(mesh.pcs.taken().len(), 1);
    mesh.pcs.trouble("list", None);
    assert_eq!(mesh.until_taken(2).await[1], "On x1");
    let node = mesh.until_component("x1", "waits no more", |one| one.power_error().is_empty()).await;
    assert_eq!(attempts(&node, Action::PoweringOn), 1);
}
