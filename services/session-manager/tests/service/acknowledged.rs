//! Requests see every earlier acknowledged write, although the mirrors lag behind.

use chassis::Fault;
use proto::{option::Options, session::SaveSessionStatusRequest};

use crate::world::{World, asked, template};

#[tokio::test]
async fn session_is_judged_by_the_newest_options() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.peers.hold_watches(true);
    for (required, accepted) in [(true, false), (false, true), (true, false)] {
        let options = Options { session_limit_required: Some(required), ..Options::default() };
        world.peers.set_options(options);
        let created = world.boot(&format!("s-{required}"), "t").await;
        assert_eq!(created.is_ok(), accepted, "{created:?}");
    }
}

#[tokio::test]
async fn template_is_judged_by_the_newest_options() {
    let world = World::start().await;
    world.peers.hold_watches(true);
    let with_nid = || world.put_template(template("", "t", &["nid000001"]));
    with_nid().await.unwrap();
    world.peers.set_options(Options { reject_nids: Some(true), ..Options::default() });
    let refused = with_nid().await;
    assert!(matches!(refused, Err(Fault::Invalid(_))), "{refused:?}");
}

#[tokio::test]
async fn status_shows_the_newest_components() {
    let world = World::start().await;
    world.template("t", &["n1", "n2"]).await;
    world.boot("s", "t").await.unwrap();
    world.running("s").await;
    world.peers.hold_watches(true);
    world.peers.change("n2", |one| one.session = Some(String::new()));
    let request = SaveSessionStatusRequest { name: "s".to_owned(), tenant: String::new() };
    let mut sessions = world.sessions.clone();
    let (saved, shown, ()) =
        futures_util::join!(asked(sessions.save_session_status(request)), world.status_of("", "s"), async {
            world.peers.hold_watches(false)
        },);
    assert_eq!(saved.unwrap().status.unwrap().managed_components_count, 1);
    assert_eq!(shown.unwrap().managed_components_count, 1);
}
