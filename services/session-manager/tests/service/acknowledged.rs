//! Requests see every earlier acknowledged write, although the mirrors lag behind.

use chassis::Fault;
use proto::{component::Component, option::Options, session::SaveSessionStatusRequest};
use test_registry::CallFault;

use crate::world::{World, asked, template};

impl World {
    /// Holds or releases the watches of components and options.
    fn hold_watches(&self, hold: bool) {
        for method in ["WatchComponents", "WatchOptions"] {
            match hold {
                true => self.registry.proxy.fault(method, CallFault::Held),
                false => self.registry.proxy.mend(method),
            }
        }
    }
}

#[tokio::test]
async fn session_is_judged_by_the_newest_options() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.hold_watches(true);
    for (required, accepted) in [(true, false), (false, true), (true, false)] {
        let options = Options { session_limit_required: Some(required), ..Options::default() };
        world.registry.set_options(options).await;
        let created = world.boot(&format!("s-{required}"), "t").await;
        assert_eq!(created.is_ok(), accepted, "{created:?}");
    }
}

#[tokio::test]
async fn template_is_judged_by_the_newest_options() {
    let world = World::start().await;
    world.hold_watches(true);
    let with_nid = || world.put_template(template("", "t", &["nid000001"]));
    with_nid().await.unwrap();
    world.registry.set_options(Options { reject_nids: Some(true), ..Options::default() }).await;
    let refused = with_nid().await;
    assert!(matches!(refused, Err(Fault::Invalid(_))), "{refused:?}");
}

#[tokio::test]
async fn status_shows_the_newest_components() {
    let world = World::start().await;
    world.template("t", &["n1", "n2"]).await;
    world.boot("s", "t").await.unwrap();
    world.running("s").await;
    world.hold_watches(true);
    let gone = Component { id: "n2".to_owned(), session: Some(String::new()), ..Component::default() };
    world.registry.patch(vec![gone]).await;
    let request = SaveSessionStatusRequest { name: "s".to_owned(), tenant: String::new() };
    let mut sessions = world.sessions.clone();
    let (saved, shown, ()) =
        futures_util::join!(asked(sessions.save_session_status(request)), world.status_of("", "s"), async {
            world.hold_watches(false)
        },);
    assert_eq!(saved.unwrap().status.unwrap().managed_components_count, 1);
    assert_eq!(shown.unwrap().managed_components_count, 1);
}
