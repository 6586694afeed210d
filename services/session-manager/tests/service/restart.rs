//! Work that resumes after a restart.

use proto::{component::AssignSessionRequest, session::Progress};
use test_registry::CallFault;

use crate::world::{World, template};

#[tokio::test]
async fn a_running_session_completes_after_a_restart() {
    let world = World::start().await;
    world.template("t", &["n1", "n2"]).await;
    world.boot("s", "t").await.unwrap();
    world.running("s").await;
    let world = world.restart(async |world| world.registry.settle(["n1"]).await).await;
    assert_eq!(world.status("s").await.progress(), Progress::Running);
    world.registry.settle(["n2"]).await;
    world.complete("s").await;
    let saved = world.status("s").await;
    let world = world.restart(async |_| {}).await;
    assert_eq!(world.status("s").await, saved);
}

#[tokio::test]
async fn a_session_whose_members_settled_meanwhile_completes_at_the_start() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.boot("s", "t").await.unwrap();
    world.running("s").await;
    let world = world.restart(async |world| world.registry.settle(["n1"]).await).await;
    world.complete("s").await;
}

#[tokio::test]
async fn a_waiting_session_is_set_up_after_a_restart() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.fleet.inventory_answers(false);
    let created = world.boot("s", "t").await.unwrap();
    world.waiting("s").await;
    let world = world.restart(async |world| world.fleet.inventory_answers(true)).await;
    let running = world.running("s").await;
    assert_eq!((running.id, running.components), (created.id, vec!["n1".to_owned()]));
    assert_eq!(world.registry.proxy.requests::<AssignSessionRequest>("AssignSession").len(), 1);
}

/// A world where a session of the group `blue` was cut off while its members were being assigned, and where
/// that group, the template and the images are different afterwards.
async fn cut_off(assigning: CallFault) -> World {
    let world = World::start().await;
    let mut blue = template("", "t", &["n0"]);
    let group = proto::template::StringList { values: vec!["blue".to_owned()] };
    blue.boot_sets.values_mut().for_each(|set| set.node_groups = Some(group.clone()));
    world.put_template(blue).await.unwrap();
    world.registry.proxy.fault("AssignSession", assigning);
    world.boot("s", "t").await.unwrap();
    world.registry.proxy.called("AssignSession", 1).await;
    let gone = proto::template::DeleteSessionTemplateRequest { name: "t".to_owned(), tenant: String::new() };
    world.templates.clone().delete_session_template(gone).await.unwrap();
    world.fleet.paint_blue(&["n1", "n2"]);
    world.fleet.images_answer(false);
    world
}

#[tokio::test]
async fn an_interrupted_setup_resumes_with_the_same_members() {
    for assigning in [CallFault::Lost, CallFault::Unanswered] {
        let world = cut_off(assigning.clone()).await;
        let world = world.restart(async |world| world.registry.proxy.mend("AssignSession")).await;
        let running = world.running("s").await;
        assert_eq!(running.components, ["n0", "n1"], "{assigning:?}");
        let [first, second] =
            <[_; 2]>::try_from(world.registry.proxy.requests::<AssignSessionRequest>("AssignSession"))
                .unwrap();
        assert_eq!(first, second);
        assert_eq!(first.assignment_id, running.id);
        world.registry.settle(["n0"]).await;
        world.registry.settle(["n1"]).await;
        world.complete("s").await;
    }
}

#[tokio::test]
async fn a_session_made_pending_again_selects_its_members_again() {
    let world = cut_off(CallFault::Lost).await;
    world.template("t", &["n3"]).await;
    let change = |progress: Progress| proto::session::UpdateSessionRequest {
        name: "s".to_owned(),
        progress: progress.into(),
        ..Default::default()
    };
    world.update(change(Progress::Complete)).await.unwrap();
    let world = world.restart(async |world| world.registry.proxy.mend("AssignSession")).await;
    world.fleet.images_answer(true);
    world.update(change(Progress::Pending)).await.unwrap();
    assert_eq!(world.running("s").await.components, ["n3"]);
}
