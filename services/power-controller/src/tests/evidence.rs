//! Readings count from their time until the task that reads power stops.

use super::*;
use crate::testing::pcs::PcsTrouble;

#[tokio::test(flavor = "multi_thread")]
async fn a_reading_of_before_a_start_is_history() {
    let mut mesh = ControllerMesh::started().await;
    mesh.pcs.set_power(&["x1"], "off", LONG_AGO);
    mesh.registry.put([node("x1", Phase::Configuring)]);
    mesh.until_read("x1", PowerReading::Off).await;
    mesh.stop().await;

    mesh.pcs.trouble("status", Some(PcsTrouble::Hangs));
    mesh.registry.change("x1", wants_power_on);
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
    mesh.registry.put([node("x1", Phase::Configuring)]);
    assert_eq!(mesh.until_read("x1", PowerReading::Off).await.spent_power_ons, 0);
    mesh.registry.change("x1", |component| {
        let last = component.power.last_action.get_or_insert_default();
        (last.action, last.failed) = (Some(Action::PoweringOn), Some(false));
        component.power.event_stats.get_or_insert_default().power_on_attempts = Some(1);
    });
    mesh.until_called("POST /power-status", 2).await;
    assert_eq!(mesh.state("x1").await.unwrap().spent_power_ons, 0, "it may still have its effect");
    mesh.registry.change("x1", |component| {
        component.power.last_action.get_or_insert_default().failed = Some(true);
    });
    let read = || async { mesh.state("x1").await.filter(|state| state.spent_power_ons == 1) };
    assert_eq!(until("another reading", read).await.reading(), PowerReading::Off);
}
