//! Operations on bare-metal hosts that change hands while they are under way.

use std::time::Duration;

use futures_util::future::join_all;
use integration_tests::{eventually_shown, hosts::RackHosts, replicas::Replicas};
use proto::simulation::RackOperation::{Adopt, Inspect, PowerOn, Register};
use tokio::time::sleep;

use crate::handover::no_postgres;

const HOSTS: u32 = 6;

/// Slow enough for a replica to go away in the middle of an inspection, which takes two to four seconds.
const SPEED: f64 = 0.01;

/// Longer than a lease lasts that nobody renews.
const SLEEP: Duration = Duration::from_secs(9);

const PART: &str = "host_provisioner";

/// Fault of the replica that acts.
#[derive(Debug, Clone, Copy)]
enum ReplicaFault {
    Dies,
    Sleeps,
    Leaves,
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_go_on_when_a_host_provisioner_dies_sleeps_or_leaves() {
    let Some(mut mesh) = Replicas::start(2, 2, 1, SPEED).await else { return no_postgres() };
    let hosts = RackHosts::at(&mesh.url("component_registry", 0), &mesh.url("simulator", 0));
    hosts.log_in().await;
    for fault in [ReplicaFault::Dies, ReplicaFault::Sleeps, ReplicaFault::Leaves] {
        survives(&mut mesh, &hosts, fault).await;
    }
}

/// Lets hosts become available while the acting replica has the fault.
async fn survives(mesh: &mut Replicas, hosts: &RackHosts, fault: ReplicaFault) {
    let names: Vec<_> = (0..HOSTS).map(|index| format!("{fault:?}-{index}").to_lowercase()).collect();
    let holder = mesh.holder(PART).await;
    for name in &names {
        hosts.create(name).await;
    }
    join_all(names.iter().map(|name| is_inspecting(hosts, name))).await;
    match fault {
        ReplicaFault::Dies => mesh.kill(PART, holder).await,
        ReplicaFault::Sleeps => mesh.signal(PART, holder, "STOP").await,
        ReplicaFault::Leaves => mesh.stop(PART, holder).await,
    }
    join_all(names.iter().map(|name| hosts.is_available(name))).await;
    match fault {
        ReplicaFault::Dies => mesh.start_replica(PART, holder),
        ReplicaFault::Sleeps => {
            mesh.signal(PART, holder, "CONT").await;
            // What the woken one was about to do comes now.
            sleep(SLEEP).await;
        }
        ReplicaFault::Leaves => {}
    }
    assert_ne!(mesh.holder(PART).await, holder, "{fault:?}");
    for name in &names {
        let mut begun = hosts.begun(name).await;
        begun.retain(|operation| *operation != Adopt);
        assert_eq!(begun, [Register, Inspect, PowerOn], "{name}");
    }
}

async fn is_inspecting(hosts: &RackHosts, name: &str) {
    eventually_shown(&format!("an inspection of {name}"), async || {
        let begun = hosts.begun(name).await;
        if begun.contains(&Inspect) { Ok(()) } else { Err(begun) }
    })
    .await;
}
