//! What a new process makes of what the last one left.

use proto::session::Progress;

use crate::world::World;

#[tokio::test]
async fn a_running_session_completes_after_a_restart() {
    let world = World::start().await;
    world.template("t", &["n1", "n2"]).await;
    world.boot("s", "t").await.unwrap();
    world.running("s").await;
    let world = world.restart(|peers| peers.settle("n1")).await;
    assert_eq!(world.status("s").await.progress(), Progress::Running);
    world.peers.settle("n2");
    world.complete("s").await;
    let saved = world.status("s").await;
    let world = world.restart(|_| {}).await;
    assert_eq!(world.status("s").await, saved);
}

#[tokio::test]
async fn a_session_whose_members_settled_meanwhile_completes_at_the_start() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.boot("s", "t").await.unwrap();
    world.running("s").await;
    let world = world.restart(|peers| peers.settle("n1")).await;
    world.complete("s").await;
}

#[tokio::test]
async fn a_waiting_session_is_set_up_after_a_restart() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.peers.inventory_answers(false);
    let created = world.boot("s", "t").await.unwrap();
    world.waiting("s").await;
    let world = world.restart(|peers| peers.inventory_answers(true)).await;
    let running = world.running("s").await;
    assert_eq!((running.id, running.components), (created.id, vec!["n1".to_owned()]));
    assert_eq!(world.peers.assignments().len(), 1);
}
