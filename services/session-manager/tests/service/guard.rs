//! Large sessions, which need a confirmation.

use chassis::Fault;
use proto::session::*;

use crate::world::{World, asked, template, wish};

/// A world in which sessions of more than two nodes need a confirmation.
async fn guarded() -> World {
    World::start_with(|settings| settings.sessions.confirm_above_nodes = 2).await
}

fn confirmed(name: &str, nodes: Option<u32>) -> CreateSessionRequest {
    CreateSessionRequest { confirmed_nodes: nodes, ..wish(Operation::Shutdown, name, "t") }
}

#[tokio::test]
async fn large_sessions_need_the_exact_number_of_their_nodes() {
    let world = guarded().await;
    world.template("t", &["n1", "n2", "n3", "stranger"]).await;
    for (nodes, expected) in [
        (None, "it takes 3 nodes, and more than 2 need a confirmation: confirm 3"),
        (Some(2), "it takes 3 nodes, and 2 are confirmed"),
        (Some(4), "it takes 3 nodes, and 4 are confirmed"),
    ] {
        let Err(Fault::Locked { reason, .. }) = world.create(confirmed("s", nodes)).await else {
            panic!("taken with {nodes:?}")
        };
        assert_eq!(reason, expected);
    }
    world.create(confirmed("s", Some(3))).await.unwrap();
    let session = world.running("s").await;
    assert_eq!((session.components.len(), session.confirmed_nodes), (3, Some(3)));
    let staged = CreateSessionRequest { stage: true, ..confirmed("staged", None) };
    assert!(matches!(world.create(staged).await, Err(Fault::Locked { .. })));
    let limited = CreateSessionRequest { limit: "n1,n2".to_owned(), ..confirmed("small", None) };
    world.create(limited).await.unwrap();
    assert_eq!(world.running("small").await.components, ["n1", "n2"]);
}

#[tokio::test]
async fn a_session_that_has_grown_since_its_request_touches_no_node() {
    let world = guarded().await;
    world.template("t", &["n1", "n2"]).await;
    world.fleet.inventory_answers(false);
    for (name, nodes) in [("unconfirmed", None), ("confirmed", Some(2))] {
        world.create(confirmed(name, nodes)).await.unwrap();
        world.waiting(name).await;
    }
    world.put_template(template("", "t", &["n1", "n2", "n3"])).await.unwrap();
    world.fleet.inventory_answers(true);
    for (name, expected) in [
        (
            "unconfirmed",
            "session not begun: it takes 3 nodes, and more than 2 need a confirmation: confirm 3",
        ),
        ("confirmed", "session not begun: it takes 3 nodes, and 2 are confirmed"),
    ] {
        let session = world.complete(name).await;
        assert_eq!((session.error.as_deref(), session.components.len()), (Some(expected), 0));
    }
}

#[tokio::test]
async fn guarded_roles_need_a_confirmation_of_any_number() {
    let world = World::start_with(|settings| settings.sessions.confirm_roles = vec!["Compute".into()]).await;
    world.template("t", &["n1"]).await;
    let Err(Fault::Locked { reason, .. }) = world.create(confirmed("s", None)).await else { panic!("taken") };
    assert_eq!(
        reason,
        "it takes 1 node, and some have the role 'Compute', which needs a confirmation: confirm 1"
    );
    world.create(confirmed("s", Some(1))).await.unwrap();
    world.running("s").await;
}

#[tokio::test]
async fn a_session_that_waits_for_its_inventory_is_checked_at_its_setup() {
    let world = guarded().await;
    world.template("t", &["n1", "n2", "n3"]).await;
    world.fleet.inventory_answers(false);
    world.create(confirmed("s", None)).await.unwrap();
    world.waiting("s").await;
    world.fleet.inventory_answers(true);
    world.complete("s").await;
    let again = RetrySessionRequest { name: "s".to_owned(), tenant: String::new() };
    let retried = asked(world.sessions.clone().retry_session(again)).await;
    assert!(matches!(retried, Err(Fault::Locked { .. })), "{retried:?}");
}
