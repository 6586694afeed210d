//! Work that resumes after a restart.

use proto::session::Progress;

use crate::{
    peers::Assigning,
    world::{World, template},
};

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

/// A world where a session of the group `blue` was cut off while its members were being assigned, and where
/// that group, the template and the images are different afterwards.
async fn cut_off(assigning: Assigning) -> World {
    let world = World::start().await;
    let mut blue = template("", "t", &["n0"]);
    let group = proto::template::StringList { values: vec!["blue".to_owned()] };
    blue.boot_sets.values_mut().for_each(|set| set.node_groups = Some(group.clone()));
    world.put_template(blue).await.unwrap();
    world.peers.assigning(assigning);
    world.boot("s", "t").await.unwrap();
    world.peers.assignments_asked(1).await;
    let gone = proto::template::DeleteSessionTemplateRequest { name: "t".to_owned(), tenant: String::new() };
    world.templates.clone().delete_session_template(gone).await.unwrap();
    world.peers.paint_blue(&["n1", "n2"]);
    world.peers.images_answer(false);
    world
}

#[tokio::test]
async fn an_interrupted_setup_resumes_with_the_same_members() {
    for assigning in [Assigning::Ignores, Assigning::FallsSilent] {
        let world = cut_off(assigning).await;
        let world = world.restart(|peers| peers.assigning(Assigning::Answers)).await;
        let running = world.running("s").await;
        assert_eq!(running.components, ["n0", "n1"], "{assigning:?}");
        let [first, second] = <[_; 2]>::try_from(world.peers.assignments()).unwrap();
        assert_eq!(first, second);
        assert_eq!(first.assignment_id, running.id);
        world.peers.settle("n0");
        world.peers.settle("n1");
        world.complete("s").await;
    }
}

#[tokio::test]
async fn a_session_made_pending_again_selects_its_members_again() {
    let world = cut_off(Assigning::Ignores).await;
    world.template("t", &["n3"]).await;
    let change = |progress: Progress| proto::session::UpdateSessionRequest {
        name: "s".to_owned(),
        progress: progress.into(),
        ..Default::default()
    };
    world.update(change(Progress::Complete)).await.unwrap();
    let world = world.restart(|peers| peers.assigning(Assigning::Answers)).await;
    world.peers.images_answer(true);
    world.update(change(Progress::Pending)).await.unwrap();
    assert_eq!(world.running("s").await.components, ["n3"]);
}
