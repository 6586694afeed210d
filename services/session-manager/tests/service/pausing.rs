//! Pauses of sessions.

use chassis::Fault;
use domain::boot::component::{Component, PauseHolder};
use expect_test::expect;
use proto::{
    component::{AssignSessionRequest, PauseComponentsRequest},
    event::{EventFilter, ListEventsRequest, event_service_client::EventServiceClient},
    session::{
        CancelSessionRequest, DeleteSessionRequest, PauseSessionRequest, Progress, ResumeSessionRequest,
        Session, SessionResult,
    },
};
use test_registry::CallFault;

use crate::world::{World, asked, once};

const MARK: &str = "PauseComponents";

async fn pause(world: &World, name: &str) -> Result<Session, Fault> {
    let (reason, client) = ("power cap".to_owned(), "alice".to_owned());
    let request =
        PauseSessionRequest { name: name.to_owned(), reason, client, ..PauseSessionRequest::default() };
    Ok(asked(world.sessions.clone().pause_session(request)).await?.session.unwrap())
}

async fn resume(world: &World, name: &str) -> Result<Session, Fault> {
    let request = ResumeSessionRequest { name: name.to_owned(), ..ResumeSessionRequest::default() };
    Ok(asked(world.sessions.clone().resume_session(request)).await?.session.unwrap())
}

async fn running(nodes: &[&str]) -> World {
    let world = World::start().await;
    world.template("t", nodes).await;
    world.boot("s", "t").await.unwrap();
    world.running("s").await;
    world
}

async fn component_when(world: &World, id: &str, wanted: impl Fn(&Component) -> bool) -> Component {
    once(async || world.registry.get(id).await, wanted).await
}

fn reason(answer: Result<Session, Fault>) -> String {
    match answer {
        Err(Fault::Locked { reason, .. }) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn pause_marks_the_members_and_resuming_removes_the_marks() {
    let world = running(&["n1", "n2"]).await;
    world.registry.settle(["n2"]).await;
    world.template("u", &["n3"]).await;
    world.boot("other", "u").await.unwrap();
    world.running("other").await;
    let paused = pause(&world, "s").await.unwrap();
    let wish = paused.pause.clone().unwrap();
    assert_eq!((&*wish.by, &*wish.reason, paused.progress()), ("alice", "power cap", Progress::Running));
    let marked = component_when(&world, "n1", Component::is_paused).await;
    assert_eq!(marked.wish.pause.as_ref().unwrap().holder, PauseHolder::Client("alice".into()));
    for id in ["n2", "n3"] {
        assert!(!world.registry.get(id).await.is_paused(), "{id} is settled, or of another session");
    }
    assert_eq!(pause(&world, "s").await.unwrap(), paused, "the first pause stays");

    assert_eq!(resume(&world, "s").await.unwrap().pause, None);
    let resumed = component_when(&world, "n1", |one| !one.is_paused()).await;
    assert_eq!(resumed.generation, marked.generation);
    assert_eq!(resume(&world, "s").await.unwrap().pause, None);
    world.registry.settle(["n1"]).await;
    assert_eq!(world.complete("s").await.result(), SessionResult::Succeeded);
}

#[tokio::test]
async fn pause_and_its_end_are_events() {
    let world = running(&["n1"]).await;
    pause(&world, "s").await.unwrap();
    resume(&world, "s").await.unwrap();
    let filter = EventFilter { keys: vec!["\ts".to_owned()], ..EventFilter::default() };
    let request = ListEventsRequest { filter: Some(filter), page_size: 10, ..ListEventsRequest::default() };
    let mut events = EventServiceClient::new(world.channel.clone());
    let answer = asked(events.list_events(request)).await.unwrap();
    let shown = answer.events.into_iter().map(|event| {
        let body = event.body.unwrap();
        let details = body.details.iter().map(|one| format!(" {}={}", one.name, one.value));
        format!("{} '{}'{} by {}\n", body.kind, body.text, details.collect::<String>(), event.actor)
    });
    expect![[r#"
        created '' template=t by client
        running '' members=1 by session-manager
        paused 'power cap' by=alice by client
        resumed '' by client
    "#]]
    .assert_eq(&shown.collect::<String>());
}

#[tokio::test]
async fn paused_pending_session_assigns_nothing() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.fleet.inventory_answers(false);
    world.boot("s", "t").await.unwrap();
    world.waiting("s").await;
    let paused = pause(&world, "s").await.unwrap();
    assert_eq!((paused.progress(), &*paused.waiting_for), (Progress::Pending, ""));
    world.fleet.inventory_answers(true);
    world.template("u", &["n2"]).await;
    world.boot("next", "u").await.unwrap();
    world.running("next").await;
    let world = world.restart(async |_| {}).await;
    world.template("v", &["n3"]).await;
    world.boot("last", "v").await.unwrap();
    world.running("last").await;
    let assigned = world.registry.proxy.requests::<AssignSessionRequest>("AssignSession");
    assert_eq!(assigned.iter().map(|one| &*one.session).collect::<Vec<_>>(), ["next", "last"]);
    resume(&world, "s").await.unwrap();
    assert_eq!(world.running("s").await.components, ["n1"]);
}

#[tokio::test]
async fn pause_during_the_assignment_holds_what_it_assigned() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.registry.proxy.fault("AssignSession", CallFault::Unanswered);
    world.boot("s", "t").await.unwrap();
    component_when(&world, "n1", Component::is_enabled).await;
    pause(&world, "s").await.unwrap();
    let world = world.restart(async |world| world.registry.proxy.mend("AssignSession")).await;
    component_when(&world, "n1", Component::is_paused).await;
    resume(&world, "s").await.unwrap();
    assert_eq!(world.running("s").await.components, ["n1"]);
    component_when(&world, "n1", |one| !one.is_paused()).await;
}

#[tokio::test]
async fn interrupted_marking_goes_on_after_a_restart() {
    for fault in [CallFault::Lost, CallFault::Unanswered] {
        let world = running(&["n1"]).await;
        world.registry.proxy.fault(MARK, fault);
        pause(&world, "s").await.unwrap();
        world.registry.proxy.called(MARK, 1).await;
        let world = world.restart(async |world| world.registry.proxy.mend(MARK)).await;
        component_when(&world, "n1", Component::is_paused).await;
        world.registry.proxy.fault(MARK, CallFault::Unanswered);
        let called = world.registry.proxy.requests::<PauseComponentsRequest>(MARK).len();
        resume(&world, "s").await.unwrap();
        world.registry.proxy.called(MARK, called + 1).await;
        let world = world.restart(async |world| world.registry.proxy.mend(MARK)).await;
        component_when(&world, "n1", |one| !one.is_paused()).await;
    }
}

#[tokio::test]
async fn paused_session_can_be_cancelled() {
    let world = running(&["n1"]).await;
    pause(&world, "s").await.unwrap();
    component_when(&world, "n1", Component::is_paused).await;
    let request = CancelSessionRequest { name: "s".to_owned(), ..CancelSessionRequest::default() };
    asked(world.sessions.clone().cancel_session(request)).await.unwrap();
    let complete = world.complete("s").await;
    assert_eq!((complete.result(), complete.pause), (SessionResult::Cancelled, None));
    let released = component_when(&world, "n1", |one| !one.is_paused()).await;
    assert!(!released.is_enabled());
}

#[tokio::test]
async fn no_mark_outlives_its_session() {
    let world = running(&["n1"]).await;
    pause(&world, "s").await.unwrap();
    component_when(&world, "n1", Component::is_paused).await;
    let request = DeleteSessionRequest { name: "s".to_owned(), ..DeleteSessionRequest::default() };
    asked(world.sessions.clone().delete_session(request)).await.unwrap();
    let left = component_when(&world, "n1", |one| !one.is_paused()).await;
    assert!(left.is_enabled());

    world.boot("done", "t").await.unwrap();
    world.running("done").await;
    pause(&world, "done").await.unwrap();
    component_when(&world, "n1", Component::is_paused).await;
    world.registry.settle(["n1"]).await;
    let complete = world.complete("done").await;
    assert_eq!((complete.result(), complete.pause), (SessionResult::Succeeded, None));
    component_when(&world, "n1", |one| !one.is_paused()).await;
}

#[tokio::test]
async fn complete_sessions_and_other_revisions_are_refused() {
    let world = running(&["n1"]).await;
    let request = PauseSessionRequest {
        name: "s".to_owned(),
        expected_revision: 1_000_000,
        ..PauseSessionRequest::default()
    };
    let conflict = asked(world.sessions.clone().pause_session(request)).await.unwrap_err();
    assert_eq!(conflict, Fault::Conflict { kind: "session".to_owned(), name: "s".to_owned() });
    world.registry.settle(["n1"]).await;
    world.complete("s").await;
    expect!["it is complete already, with the result succeeded"].assert_eq(&reason(pause(&world, "s").await));
    expect!["it is complete already, with the result succeeded"]
        .assert_eq(&reason(resume(&world, "s").await));
    assert_eq!(pause(&world, "other").await, Err(Fault::not_found("session", "other")));
}
