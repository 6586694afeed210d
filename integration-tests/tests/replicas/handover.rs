//! Work that changes hands in the middle of a session.

use std::time::Duration;

use integration_tests::{
    eventually_shown,
    replicas::{ACTING, Replicas},
};
use proto::simulation::TransitionOperation::{On, SoftOff};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::fleet::Told;

const NODES: u32 = 48;

/// Slow enough for a replica to go away in the middle of a boot.
pub const SPEED: f64 = 0.03;

/// Default duration of a lease.
const TTL: Duration = Duration::from_secs(6);

const POWER: &str = "power_controller";

#[tokio::test(flavor = "multi_thread")]
async fn work_goes_on_when_a_power_controller_dies_sleeps_or_leaves() {
    let Some(mut mesh) = Replicas::start(2, 2, NODES, SPEED).await else { return no_postgres() };
    mesh.bos().template("image-1").await;
    a_killed_one_is_replaced(&mut mesh).await;
    one_that_slept_does_no_harm(&mut mesh).await;
    one_that_leaves_hands_over(&mut mesh).await;
    let accepted = [0, 1].map(|index| mesh.logged(POWER, index, "transition accepted"));
    assert!(accepted.iter().all(|count| *count > 0), "transitions by replica: {accepted:?}");
}

async fn a_killed_one_is_replaced(mesh: &mut Replicas) {
    let told = Told::until_now(mesh).await;
    let holder = mesh.holder(POWER).await;
    let session = mesh.bos().session("image-1", "boot").await;
    mesh.logs(POWER, holder, "transition accepted", 0).await;
    let killed = Instant::now();
    mesh.kill(POWER, holder).await;
    mesh.holder(POWER).await;
    show("kill -9 to takeover", killed.elapsed(), TTL + Duration::from_secs(4));
    let nodes = whole(mesh, &session).await;
    told.then_exactly(mesh, nodes, &[On]).await;
    mesh.start_replica(POWER, holder);
    mesh.holder(POWER).await;
}

async fn one_that_slept_does_no_harm(mesh: &mut Replicas) {
    let told = Told::until_now(mesh).await;
    let holder = mesh.holder(POWER).await;
    let before = mesh.logged(POWER, holder, "transition accepted");
    let session = mesh.bos().session("image-1", "reboot").await;
    mesh.logs(POWER, holder, "transition accepted", before).await;
    mesh.signal(POWER, holder, "STOP").await;
    sleep(3 * TTL).await;
    mesh.signal(POWER, holder, "CONT").await;
    let nodes = whole(mesh, &session).await;
    told.then_exactly(mesh, nodes, &[SoftOff, On]).await;
    assert_ne!(mesh.holder(POWER).await, holder);
}

async fn one_that_leaves_hands_over(mesh: &mut Replicas) {
    let told = Told::until_now(mesh).await;
    let holder = mesh.holder(POWER).await;
    let before = mesh.logged(POWER, holder, "transition accepted");
    let session = mesh.bos().session("image-1", "reboot").await;
    mesh.logs(POWER, holder, "transition accepted", before).await;
    let asked = Instant::now();
    mesh.signal(POWER, holder, "TERM").await;
    eventually_shown("the other one to hold the role", async || {
        let held = mesh.holds(POWER, 1 - holder).await;
        (held == Some(true)).then_some(()).ok_or(held)
    })
    .await;
    show("SIGTERM to takeover", asked.elapsed(), Duration::from_secs(1));
    mesh.ended(POWER, holder).await;
    let nodes = whole(mesh, &session).await;
    told.then_exactly(mesh, nodes, &[SoftOff, On]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mesh_grows_and_shrinks_during_a_boot() {
    let Some(mut mesh) = Replicas::start(1, 3, NODES, SPEED).await else { return no_postgres() };
    mesh.bos().template("image-1").await;
    let told = Told::until_now(&mesh).await;
    let session = mesh.bos().session("image-1", "boot").await;
    mesh.logs(POWER, 0, "transition accepted", 0).await;
    mesh.start_all(1);
    mesh.start_all(2);
    for part in ACTING {
        assert_eq!(mesh.holder(part).await, 0, "{part}: a role stays where it is");
    }
    for part in ACTING {
        mesh.stop(part, 0).await;
    }
    for part in ACTING {
        assert_ne!(mesh.holder(part).await, 0);
    }
    let nodes = whole(&mesh, &session).await;
    told.then_exactly(&mesh, nodes, &[On]).await;
    let told = Told::until_now(&mesh).await;
    let session = mesh.bos().session("image-1", "reboot").await;
    let nodes = whole(&mesh, &session).await;
    told.then_exactly(&mesh, nodes, &[SoftOff, On]).await;
}

/// Waits until a session is complete, with every node as it should be. Gives how many it had.
pub async fn whole(mesh: &Replicas, session: &str) -> usize {
    let complete = mesh.bos().complete(session).await;
    assert_eq!(complete["status"]["error"], Value::Null, "{complete}");
    let status = mesh.bos().get(&format!("/v2/sessions/{session}/status")).await;
    assert_eq!(status["percent_successful"], json!(100.0), "{status}");
    let managed = status["managed_components_count"].as_u64().expect("a count");
    assert!(managed > u64::from(NODES) / 2, "{status}");
    usize::try_from(managed).expect("a small count")
}

/// Prints a duration without judging it: a machine may be slow.
fn show(what: &str, took: Duration, target: Duration) {
    println!("{what}: {} ms (target {} ms)", took.as_millis(), target.as_millis());
}

pub fn no_postgres() {
    println!("there is no PostgreSQL to share: nothing is tested");
}
