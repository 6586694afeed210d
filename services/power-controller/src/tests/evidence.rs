//! Readings count from their time until the task that reads power stops.

use chassis::kinds::component::action_to_wire;

use super::*;
use crate::testing::pcs::PcsTrouble;

#[tokio::test(flavor = "multi_thread")]
async fn a_reading_of_before_a_start_is_history() {
    let mut mesh = ControllerMesh::started().await;
    mesh.pcs.set_power(&["x1"], "off", LONG_AGO);
    mesh.assign(&["x1"], Phase::Configuring).await;
    mesh.until_read("x1", PowerReading::Off).await;
    mesh.stop().await;

    mesh.pcs.trouble("status", Some(PcsTrouble::Hangs));
    mesh.registry.report_phase(["x1"], Phase::PoweringOn).await;
    mesh.start().await;
    let request = WatchPowerStatesRequest { resume_revision: 0 };
    let mut watch = mesh.client().watch_power_states(request).await.unwrap().into_inner();
    let told = watch.next().await.unwrap().unwrap().power_states;
    let told: Vec<_> = told.iter().map(|state| (state.id.as_str(), state.reading())).collect();
    assert_eq!(told, [("x1", PowerReading::Unspecified)]);
    mesh.until_called("POST /power-status", 1).await;
    assert_eq!(mesh.pcs.taken(), [""; 0], "nothing is done by what was read before");

    mesh.pcs.trouble("status", None);
    assert_eq!(mesh.until_taken(1).await, ["On x1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn power_is_read_again_when_a_power_on_is_over() {
    let mesh = ControllerMesh::started().await;
    mesh.pcs.set_power(&["x1"], "off", LONG_AGO);
    // Without a preparation nothing switches the node on but the test.
    mesh.registry.assign(["x1"], &SessionWish::default()).await;
    mesh.registry.report_phase(["x1"], Phase::PoweringOn).await;
    assert_eq!(mesh.until_read("x1", PowerReading::Off).await.spent_power_ons, 0);
    let begun = ActionReport {
        id: "x1".to_owned(),
        generation: mesh.registry.get("x1").await.generation,
        action: action_to_wire(Action::PoweringOn).into(),
        attempt: 1,
        ..ActionReport::default()
    };
    let report = async |report: &ActionReport| {
        let request = ReportActionsRequest { reports: vec![report.clone()] };
        let answer = mesh.registry.reports().report_actions(request).await.unwrap().into_inner();
        assert!(answer.stale_ids.is_empty());
    };
    report(&begun).await;
    mesh.until_called("POST /power-status", 2).await;
    assert_eq!(mesh.state("x1").await.unwrap().spent_power_ons, 0, "it may still have its effect");
    report(&ActionReport { failed: true, ..begun }).await;
    let read = || async { mesh.state("x1").await.filter(|state| state.spent_power_ons == 1) };
    assert_eq!(until("another reading", read).await.reading(), PowerReading::Off);
}
