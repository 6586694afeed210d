//! SQLite on a disk that is full, which takes the logs with it.

use std::time::Duration;

use integration_tests::{eventually_shown, processes::Processes};
use upstreams::{MachinePlan, NodePace};

use crate::{
    history::{HistoryMark, is_safe},
    stage::{SteadyWriter, attempted_once, change_an_option, create, furnish, see_through, until_written},
};

const NODES: u32 = 10;

/// Duration of each step of a node, so that the disk fills up while they are under way.
const STEP: Duration = Duration::from_millis(500);

/// The parts that keep something.
const OWNERS: [&str; 4] = ["component_registry", "session_manager", "power_controller", "config_coordinator"];

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_refuses_writes_until_there_is_room() {
    let mut mesh = Processes::prepare();
    mesh.survive_full_disks();
    let pace =
        NodePace { soft_off: STEP, power_on: STEP, boot: STEP, configuration: STEP, ..NodePace::default() };
    let plan = MachinePlan { up: true, pace: Some(pace), ..MachinePlan::quick(NODES) };
    let upstreams = mesh.among(plan).await;
    mesh.begin().await;
    furnish(&mesh.bos, NODES as usize).await;
    let (mark, writer) = (HistoryMark::now(&upstreams), SteadyWriter::start(&mesh.bos));
    create(&mesh.bos, "reboot", "short-of-room").await;
    for part in OWNERS {
        mesh.fill_disk(part, true).await;
    }
    eventually_shown("a refusal", async || match change_an_option(&mesh.bos).await {
        Ok(503) => Ok(()),
        other => Err(other),
    })
    .await;
    tokio::time::sleep(STEP * 2).await;
    mesh.bos.get("/v2/components").await;
    for part in OWNERS {
        mesh.fill_disk(part, false).await;
    }
    eprintln!("written to {:.1?} after there was room again", until_written(&mesh.bos).await);
    see_through(&mesh.bos, "reboot", "short-of-room").await;
    let written = writer.stop().await;
    for part in OWNERS {
        mesh.kill_part(part).await;
        mesh.start_part(part);
    }
    mesh.bos.ready().await;
    written.is_kept(&mesh.bos).await;
    is_safe(&upstreams, &mark, &["Soft-Off", "On"]);
    attempted_once(&mesh).await;
}
