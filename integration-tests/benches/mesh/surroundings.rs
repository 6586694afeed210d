//! Sessions through the systems of a real site: how long they take and what they ask of each system.

use std::time::{Duration, Instant};

use integration_tests::mesh::Mesh;
use upstreams::{Plan, Upstreams};

use crate::figures::Figures;

const FLEET: u32 = 10_000;
const RUNS: usize = 3;

/// Measures reboots of 10,000 nodes whose hardware takes no time, with the periods of looking that come as
/// defaults, and prints what was asked of each system in the last of them.
pub async fn measure(figures: &Figures) {
    if !figures.wants("surroundings") {
        return;
    }
    let plan = Plan { up: true, ..Plan::generated(FLEET) };
    let (mesh, upstreams) = Mesh::among(plan, async |settings| {
        let defaults = chassis::Settings::default();
        settings.power.follow_seconds = defaults.power.follow_seconds;
        settings.power.poll_seconds = defaults.power.poll_seconds;
        settings.configuration.poll_seconds = defaults.configuration.poll_seconds;
        settings.inventory.lock_poll_seconds = defaults.inventory.lock_poll_seconds;
    })
    .await;
    mesh.bos.template("image").await;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        upstreams.reset_counts();
        runs.push(reboot(&mesh).await);
    }
    figures.times("surroundings: reboot of 10,000, create to complete", runs);
    print_requests(&upstreams);
    mesh.stop().await;
}

async fn reboot(mesh: &Mesh) -> Duration {
    let began = Instant::now();
    let name = mesh.bos.session("image", "reboot").await;
    mesh.bos.complete(&name).await;
    let took = began.elapsed();
    let status = mesh.bos.get(&format!("/v2/sessions/{name}/status")).await;
    assert_eq!(status["percent_successful"], 100.0, "{status}");
    took
}

fn print_requests(upstreams: &Upstreams) {
    let mut counts = upstreams.counts();
    counts.sort_by_key(|count| (count.service, count.operation));
    for count in counts {
        println!("    {:6} {:32} {:5} requests", count.service.word(), count.operation, count.requests);
    }
}
