//! An upstream that tells of changes by itself, or should.

use super::*;
use crate::testing::fleet::SilentFleet;

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_which_nobody_tells_is_found_after_a_while() {
    let mut mesh = Mesh::new(Options::default()).await;
    let (fleet, url) = SilentFleet::start(&mesh.around).await;
    mesh.settings.power.driver = PowerDriver::Simulated;
    mesh.settings.simulator.url = url;
    mesh.start().await;
    fleet.set_power("x1", PowerReading::On);
    mesh.registry.put([node("x1", Phase::Configuring)]);
    mesh.until_read("x1", PowerReading::On).await;
    fleet.set_power("x1", PowerReading::Off);
    mesh.until_read("x1", PowerReading::Off).await;
}
