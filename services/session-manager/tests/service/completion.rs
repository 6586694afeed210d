//! Completion of running sessions, and their status afterwards.

use proto::{
    component::{Component, Phase, Status},
    option::Options,
    session::{Operation, Progress, SaveSessionStatusRequest, SessionFilter, UpdateSessionRequest},
};

use test_registry::CallFault;

use crate::world::{World, asked, once, wish};

fn change(name: &str) -> UpdateSessionRequest {
    UpdateSessionRequest { name: name.to_owned(), ..UpdateSessionRequest::default() }
}

#[tokio::test]
async fn a_session_is_complete_when_its_last_member_has_settled() {
    let world = World::start().await;
    world.template("t", &["n1", "n2"]).await;
    world.boot("s", "t").await.unwrap();
    world.running("s").await;
    world.report("n1", Phase::PoweringOn, "slow").await;
    world.registry.settle(["n2"]).await;
    let status = once(async || world.status("s").await, |status| status.percent_powering_on > 0.0).await;
    assert_eq!((status.managed_components_count, status.percent_powering_on), (2, 50.0));
    assert_eq!((status.percent_successful, status.progress()), (50.0, Progress::Running));
    assert_eq!(status.error_summary[0].error, "slow");
    world.registry.settle(["n1"]).await;
    let complete = world.complete("s").await;
    assert_eq!(complete.components, ["n1", "n2"]);
    assert!(complete.end_time.is_some() && complete.error.is_none(), "{complete:?}");
}

#[tokio::test]
async fn the_status_of_a_complete_session_stays_as_saved() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.boot("s", "t").await.unwrap();
    world.running("s").await;
    world.registry.settle(["n1"]).await;
    world.complete("s").await;
    let saved = world.status("s").await;
    assert_eq!((saved.progress(), saved.percent_successful), (Progress::Complete, 100.0));

    // Another session takes the node.
    world.boot("next", "t").await.unwrap();
    world.running("next").await;
    assert_eq!(world.status("s").await, saved);
    let request = SaveSessionStatusRequest { name: "s".to_owned(), tenant: String::new() };
    let fresh = asked(world.sessions.clone().save_session_status(request)).await.unwrap().status.unwrap();
    assert_eq!(fresh.managed_components_count, 0);
    assert_eq!(world.status("s").await, fresh);
}

#[tokio::test]
async fn a_complete_session_shows_its_saved_status() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.boot("s", "t").await.unwrap();
    world.running("s").await;
    let request = SaveSessionStatusRequest { name: "s".to_owned(), tenant: String::new() };
    let save = async || asked(world.sessions.clone().save_session_status(request.clone())).await;
    let saved = save().await.unwrap().status.unwrap();
    assert_eq!(saved.progress(), Progress::Running);
    // The saved status does not count while the session runs.
    world.report("n1", Phase::Unspecified, "on fire").await;
    let seen = once(async || world.status("s").await, |status| !status.error_summary.is_empty()).await;
    assert_ne!(seen, saved);
    // Set by a user: the status is not saved then.
    world.update(UpdateSessionRequest { progress: Progress::Complete.into(), ..change("s") }).await.unwrap();
    assert_eq!(world.status("s").await, saved);
    let fresh = save().await.unwrap().status.unwrap();
    assert_eq!(fresh.progress(), Progress::Complete);
    assert_eq!(world.status("s").await, fresh);
}

#[tokio::test]
async fn an_enabled_member_holds_its_session_unless_kept_enabled() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.boot("s", "t").await.unwrap();
    let revision = world.running("s").await.revision;
    // Set by a user, before the evaluator has evaluated the node.
    let unheld = Status { status_override: Some(String::new()), ..Status::default() };
    let patch = Component { id: "n1".to_owned(), status: Some(unheld), ..Component::default() };
    world.registry.patch(vec![patch]).await;
    world.template("u", &["n2"]).await;
    world.boot("other", "u").await.unwrap();
    world.running("other").await;
    world.registry.settle(["n2"]).await;
    world.complete("other").await;
    assert_eq!(world.running("s").await.revision, revision);
    let kept = Options { disable_components_on_completion: Some(false), ..Options::default() };
    world.registry.set_options(kept).await;
    world.complete("s").await;
}

#[tokio::test]
async fn lost_history_completes_no_session() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.boot("s", "t").await.unwrap();
    let revision = world.running("s").await.revision;
    let before = world.registry.copy().await;
    // The watch shows the end of the work. The registry loses it before it is asked to confirm that.
    let proxy = &world.registry.proxy;
    proxy.fault("ListComponents", CallFault::Held);
    let asked = proxy.count("ListComponents");
    world.registry.settle(["n1"]).await;
    proxy.called("ListComponents", asked + 1).await;
    proxy.fault("WatchComponents", CallFault::Held);
    world.registry.restore(&before).await;
    let asked = proxy.count("ListComponents");
    proxy.mend("ListComponents");
    proxy.called("ListComponents", asked + 1).await;
    assert_eq!(world.running("s").await.revision, revision);
    proxy.mend("WatchComponents");
    world.registry.settle(["n1"]).await;
    world.complete("s").await;
}

#[tokio::test]
async fn a_session_that_the_registry_lost_ends_with_an_error() {
    let world = World::start().await;
    world.template("t", &["n1", "n2"]).await;
    let before = world.registry.copy().await;
    world.boot("s", "t").await.unwrap();
    world.running("s").await;
    once(async || world.status("s").await, |status| status.managed_components_count == 2).await;
    world.registry.restore(&before).await;
    let error = world.complete("s").await.error.unwrap();
    let [begin, end] =
        ["The component registry lost commits at ", "Z, and with them the assignment of 2 of 2 components"];
    assert!(error.starts_with(begin) && error.ends_with(end), "{error}");
}

#[tokio::test]
async fn a_session_whose_nodes_were_taken_after_a_loss_has_no_error() {
    let world = World::start().await;
    world.template("t", &["n1", "n2"]).await;
    world.boot("s", "t").await.unwrap();
    world.running("s").await;
    world.template("u", &["n3"]).await;
    world.boot("other", "u").await.unwrap();
    world.running("other").await;
    let before = world.registry.copy().await;
    world
        .registry
        .patch(vec![Component {
            id: "n9".to_owned(),
            error: Some("lost".to_owned()),
            ..Component::default()
        }])
        .await;
    world.registry.restore(&before).await;
    // The end of the other session shows that the new history has arrived.
    world.registry.settle(["n3"]).await;
    assert_eq!(world.complete("other").await.error, None);
    world.create(wish(Operation::Shutdown, "taker", "t")).await.unwrap();
    assert_eq!(world.complete("s").await.error, None);
}

#[tokio::test]
async fn a_session_whose_members_were_reassigned_is_complete() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.boot("first", "t").await.unwrap();
    world.running("first").await;
    world.create(wish(Operation::Shutdown, "second", "t")).await.unwrap();
    assert_eq!(world.complete("first").await.components, ["n1"]);
    world.running("second").await;
    world.registry.settle(["n1"]).await;
    world.complete("second").await;
}

#[tokio::test]
async fn a_staged_session_lasts_as_long_as_its_stage() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    let staged = proto::session::CreateSessionRequest { stage: true, ..wish(Operation::Boot, "s", "t") };
    world.create(staged).await.unwrap();
    assert_eq!(world.running("s").await.components, ["n1"]);
    assert_eq!(world.status("s").await.percent_staged, 100.0);
    world.registry.unstage("n1").await;
    world.complete("s").await;
}

#[tokio::test]
async fn a_session_set_running_again_completes_again() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.boot("s", "t").await.unwrap();
    world.running("s").await;
    world.registry.settle(["n1"]).await;
    world.complete("s").await;
    let again = UpdateSessionRequest {
        progress: Progress::Running.into(),
        clear_end_time: true,
        error: Some("looked at by hand".to_owned()),
        ..change("s")
    };
    let running = world.update(again).await.unwrap();
    assert_eq!((running.progress(), running.end_time), (Progress::Running, None));
    let complete = world.session_when("s", |session| session.end_time.is_some()).await;
    assert_eq!(complete.error.as_deref(), Some("looked at by hand"));
}

#[tokio::test]
async fn complete_sessions_are_deleted_after_their_time_to_live() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    for name in ["old", "young", "running"] {
        world.boot(name, "t").await.unwrap();
        world.running(name).await;
    }
    for name in ["old", "young"] {
        world.complete(name).await;
    }
    for name in ["old", "running"] {
        let start_time = Some("2020-01-01T00:00:00".to_owned());
        world.update(UpdateSessionRequest { start_time, ..change(name) }).await.unwrap();
    }
    // The default of seven days has deleted the old session already, or is about to.
    let left = once(async || world.list(SessionFilter::default()).await, |left| left.len() < 3).await;
    assert_eq!(left, ["/running", "/young"]);
    let never = Options { cleanup_completed_session_ttl: Some("0".to_owned()), ..Options::default() };
    world.registry.set_options(never).await;
    world.registry.settle(["n1"]).await;
    world.complete("running").await;
}

#[tokio::test]
async fn the_oldest_complete_sessions_are_deleted_beyond_the_limit() {
    let world = World::start_with(|settings| settings.limits.complete_sessions = 2).await;
    world.template("t", &["n1"]).await;
    for name in ["first", "second", "third"] {
        world.boot(name, "t").await.unwrap();
        world.running(name).await;
        world.registry.settle(["n1"]).await;
        world.complete(name).await;
    }
    let left = once(async || world.list(SessionFilter::default()).await, |left| left.len() < 3).await;
    assert_eq!(left, ["/second", "/third"]);
}
