//! Every process dies on either side of every external effect in the lives of bare-metal hosts, and the rack is asked for
//! each operation once.

use futures_util::future::join_all;
use integration_tests::hosts::RackHosts;
use proto::simulation::RackOperation::{self, Adopt, Delete, HardPowerOff, Inspect, PowerOn, Register};
use tokio::time::Instant;

use crate::{
    failpoints::{CrashPlan, FailpointScene, PlannedCrash, shown},
    stage::replacing,
};

/// Hosts that live at the same time, so that writes and reports of several are under way together.
const HOSTS: u32 = 3;

/// Operations on a host that becomes available and is deleted.
const LIFE: [RackOperation; 5] = [Register, Inspect, PowerOn, HardPowerOff, Delete];

/// Points of the parts that work on hosts; other parts of the mesh have a test of their own.
const OF_HOSTS: [&str; 6] =
    ["RackService.", "HostReportService.", "HostSecretService.", "commit.host", "HostSight", "HostPower"];

/// Shards, each with a mesh of its own.
const SHARDS: usize = 2;

/// Survives the crashes of one of the shards.
async fn survives(shard: usize) {
    let mut scene = FailpointScene::with_every_part();
    scene.mesh.set("[simulator]\nnodes = 1\nspeed = 0.0\n[host_operations]\nlisting_seconds = 0.2\n");
    scene.mesh.begin().await;
    let hosts = RackHosts::at(&scene.mesh.url("component_registry"), &scene.mesh.url("simulator"));
    hosts.log_in().await;
    let start = scene.passed();
    round(&mut scene, &hosts, 0, &[]).await;
    let mut end = scene.passed();
    end.retain(|point, _| OF_HOSTS.iter().any(|begin| point.starts_with(begin)));
    for point in ["RackService.OperateRackHost.after", "commit.host_power.after"] {
        assert!(end.contains_key(point), "{point}: {end:?}");
    }
    let plan = CrashPlan::new(&start, &end, |index| index % SHARDS == shard);
    eprintln!("{} points, {} crashes here", plan.known.len(), plan.due.len());
    for (number, crash) in (1..).zip(plan.due) {
        eprintln!("crash at {}", shown(&crash));
        let began = Instant::now();
        round(&mut scene, &hosts, number, &crash).await;
        eprintln!("{:6.2} s", began.elapsed().as_secs_f64());
    }
    scene.met_its_crashes();
}

/// Lets hosts live from creation to deletion under these crashes.
async fn round(scene: &mut FailpointScene, hosts: &RackHosts, number: u32, crashes: &[PlannedCrash]) {
    let names: Vec<_> = (0..HOSTS).map(|index| format!("host-{number}-{index}")).collect();
    scene.survive(crashes, async { drop(join_all(names.iter().map(|name| live(hosts, name))).await) }).await;
    for name in &names {
        let mut begun = replacing(&mut scene.mesh, hosts.begun(name)).await;
        begun.retain(|operation| *operation != Adopt);
        assert_eq!(begun, LIFE, "{name} after {}", shown(crashes));
    }
}

async fn live(hosts: &RackHosts, name: &str) {
    hosts.create(name).await;
    hosts.is_available(name).await;
    hosts.delete(name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_begins_no_operation_on_a_host_twice_first_half() {
    survives(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_begins_no_operation_on_a_host_twice_second_half() {
    survives(1).await;
}
