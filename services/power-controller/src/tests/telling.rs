//! An upstream that pushes changes, or should.

use domain::boot::component::Action;

use super::*;
use crate::testing::fleet::SilentFleet;

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_which_nobody_tells_is_found_after_a_while() {
    let mut mesh = ControllerMesh::new(Options::default()).await;
    let (fleet, url) = SilentFleet::start(&mesh.around).await;
    mesh.settings.power.driver = PowerDriver::Simulated;
    mesh.settings.simulator.url = url;
    mesh.start().await;
    fleet.set_power("x1", PowerReading::On);
    mesh.assign(&["x1"], Phase::Configuring).await;
    mesh.until_read("x1", PowerReading::On).await;
    fleet.set_power("x1", PowerReading::Off);
    mesh.until_read("x1", PowerReading::Off).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn overdue_transition_without_a_record_shows_that_it_is_waited_for() {
    let mut mesh = ControllerMesh::new(Options::default()).await;
    let (fleet, url) = SilentFleet::start(&mesh.around).await;
    mesh.settings.power.driver = PowerDriver::Simulated;
    mesh.settings.simulator.url = url;
    mesh.settings.simulator.results = true;
    mesh.start().await;
    fleet.set_power("x1", PowerReading::On);
    mesh.assign(&["x1"], Phase::PoweringOff).await;
    let accepted = mesh.until_delivery(Delivery::Accepted).await;
    mesh.stop().await;
    mesh.age(&accepted, Duration::from_secs(91)).await;
    mesh.start().await;
    mesh.until_shown_as_endless("x1", "f-1").await;
    assert_eq!(fleet.count_taken(), 1);

    mesh.abandon_open_transition().await;
    assert_eq!(mesh.until_delivery(Delivery::Finished).await.error, "an operator gave it up");
    mesh.until_component("x1", "waits no more", |one| one.power_error().is_empty()).await;
    assert_eq!(attempts(&mesh.registry.get("x1").await, Action::PoweringOffGracefully), 1);
}
