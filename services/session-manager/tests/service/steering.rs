//! Results of sessions, cancellation and retry.

use chassis::Fault;
use expect_test::expect;
use proto::{
    component::{AssignSessionRequest, StatusReport},
    event::{EventFilter, ListEventsRequest, event_service_client::EventServiceClient},
    session::{
        ApplyStagedRequest, CancelSessionRequest, CreateSessionRequest, IdleReason, Operation, Progress,
        RetrySessionRequest, Session, SessionResult, UpdateSessionRequest,
    },
};
use test_registry::CallFault;

use crate::world::{World, asked, wish};

async fn cancel(world: &World, name: &str, reason: &str) -> Result<Session, Fault> {
    let (name, reason) = (name.to_owned(), reason.to_owned());
    let request = CancelSessionRequest { name, reason, ..CancelSessionRequest::default() };
    Ok(asked(world.sessions.clone().cancel_session(request)).await?.session.unwrap())
}

async fn retry(world: &World, name: &str) -> Result<Session, Fault> {
    let request = RetrySessionRequest { name: name.to_owned(), ..RetrySessionRequest::default() };
    Ok(asked(world.sessions.clone().retry_session(request)).await?.session.unwrap())
}

/// Reports as the status evaluator does that a component failed.
async fn fail(world: &World, id: &str) {
    let status = StatusReport {
        status_override: "failed".to_owned(),
        error: Some("no answer".to_owned()),
        settled: true,
        ..StatusReport::default()
    };
    world.registry.report_statuses([id], status).await;
}

async fn running(nodes: &[&str]) -> World {
    let world = World::start().await;
    world.template("t", nodes).await;
    world.boot("s", "t").await.unwrap();
    world.running("s").await;
    world
}

fn is_locked(answer: Result<Session, Fault>) -> String {
    match answer {
        Err(Fault::Locked { kind, name, reason }) => format!("{kind} {name}: {reason}"),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn result_tells_how_members_ended() {
    let world = running(&["n1", "n2"]).await;
    assert_eq!(world.running("s").await.result(), SessionResult::Unspecified);
    world.registry.settle(["n1"]).await;
    fail(&world, "n2").await;
    assert_eq!(world.complete("s").await.result(), SessionResult::Partial);

    world.boot("again", "t").await.unwrap();
    world.running("again").await;
    world.boot("later", "t").await.unwrap();
    let superseded = world.complete("again").await;
    assert_eq!((superseded.result(), &*superseded.superseded_by), (SessionResult::Superseded, "later"));
    world.registry.settle(["n1", "n2"]).await;
    assert_eq!(world.complete("later").await.result(), SessionResult::Succeeded);

    world.template("nobody", &["unheard-of"]).await;
    world.boot("idle", "nobody").await.unwrap();
    let idle = world.complete("idle").await;
    assert_eq!((idle.result(), idle.idle_reason()), (SessionResult::NothingToDo, IdleReason::NoNodes));
}

#[tokio::test]
async fn session_that_a_client_ends_and_resumes_has_no_stale_result() {
    let world = running(&["n1"]).await;
    let patch = |progress: Progress| UpdateSessionRequest {
        name: "s".to_owned(),
        progress: progress.into(),
        ..UpdateSessionRequest::default()
    };
    let ended = world.update(patch(Progress::Complete)).await.unwrap();
    assert_eq!(ended.result(), SessionResult::Failed);
    let resumed = world.update(patch(Progress::Running)).await.unwrap();
    assert_eq!(resumed.result(), SessionResult::Unspecified);
}

#[tokio::test]
async fn cancellation_releases_members_and_completes() {
    let world = running(&["n1", "n2", "n3"]).await;
    world.registry.settle(["n1"]).await;
    let cancelled = cancel(&world, "s", "wrong image").await.unwrap();
    assert_eq!(cancelled.cancellation.as_ref().unwrap().reason, "wrong image");
    let complete = world.complete("s").await;
    assert_eq!((complete.result(), &complete.error), (SessionResult::Cancelled, &None));
    let mut rows = String::new();
    for one in world.registry.all().await {
        if ["n1", "n2", "n3"].contains(&one.id.as_str()) {
            rows += &format!("{} {:?} '{}'\n", one.id, one.wish.enabled, one.error_text());
        }
    }
    expect![[r#"
        n1 Some(false) ''
        n2 Some(false) 'Session 's' was cancelled before the node reached its desired state'
        n3 Some(false) 'Session 's' was cancelled before the node reached its desired state'
    "#]]
    .assert_eq(&rows);

    // Another cancellation is answered in the same way, and does nothing.
    let patches = world.registry.proxy.count("PatchComponents");
    assert_eq!(cancel(&world, "s", "another reason").await.unwrap(), complete);
    assert_eq!(world.registry.proxy.count("PatchComponents"), patches);
}

#[tokio::test]
async fn cancellation_and_its_reason_are_events() {
    let world = running(&["n1"]).await;
    cancel(&world, "s", "wrong image").await.unwrap();
    world.complete("s").await;
    let filter = EventFilter { keys: vec!["\ts".to_owned()], ..EventFilter::default() };
    let request = ListEventsRequest { filter: Some(filter), page_size: 10, ..ListEventsRequest::default() };
    let mut events = EventServiceClient::new(world.channel.clone());
    let answer = asked(events.list_events(request)).await.unwrap();
    let shown = answer.events.into_iter().map(|event| {
        let body = event.body.unwrap();
        format!("{} '{}' '{}' by {}\n", body.kind, body.reason, body.text, event.actor)
    });
    expect![[r#"
        created 'boot' '' by client
        running '' '' by session-manager
        cancelled '' 'wrong image' by client
        complete 'cancelled' '' by session-manager
    "#]]
    .assert_eq(&shown.collect::<String>());
}

#[tokio::test]
async fn complete_session_cannot_be_cancelled() {
    let world = running(&["n1"]).await;
    world.registry.settle(["n1"]).await;
    world.complete("s").await;
    expect!["session s: it is complete already, with the result succeeded"]
        .assert_eq(&is_locked(cancel(&world, "s", "").await));
    assert_eq!(cancel(&world, "other", "").await, Err(Fault::not_found("session", "other")));
    let long = "x".repeat(65_537);
    assert!(matches!(cancel(&world, "s", &long).await, Err(Fault::Invalid(_))));
}

#[tokio::test]
async fn cancellation_of_a_waiting_session_touches_no_component() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.fleet.inventory_answers(false);
    world.boot("s", "t").await.unwrap();
    world.waiting("s").await;
    let cancelled = cancel(&world, "s", "").await.unwrap();
    assert_eq!((cancelled.progress(), cancelled.result()), (Progress::Complete, SessionResult::Cancelled));
    world.fleet.inventory_answers(true);
    world.template("u", &["n2"]).await;
    world.boot("next", "u").await.unwrap();
    world.running("next").await;
    let assigned = world.registry.proxy.requests::<AssignSessionRequest>("AssignSession");
    assert_eq!(assigned.iter().map(|one| &*one.session).collect::<Vec<_>>(), ["next"]);
}

#[tokio::test]
async fn interrupted_cancellation_goes_on_after_a_restart() {
    let world = running(&["n1"]).await;
    world.registry.proxy.fault("PatchComponents", CallFault::Lost);
    let asked = world.registry.proxy.count("PatchComponents");
    cancel(&world, "s", "").await.unwrap();
    world.registry.proxy.called("PatchComponents", asked + 1).await;
    let world = world.restart(async |world| world.registry.proxy.mend("PatchComponents")).await;
    assert_eq!(world.complete("s").await.result(), SessionResult::Cancelled);
    assert_eq!(world.registry.get("n1").await.wish.enabled, Some(false));
}

#[tokio::test]
async fn cancellation_during_the_assignment_releases_what_it_assigned() {
    for fault in [CallFault::Lost, CallFault::Unanswered] {
        let world = World::start().await;
        world.template("t", &["n1"]).await;
        world.registry.proxy.fault("AssignSession", fault.clone());
        world.boot("s", "t").await.unwrap();
        world.registry.proxy.called("AssignSession", 1).await;
        let pending = cancel(&world, "s", "").await.unwrap();
        assert_eq!(pending.progress(), Progress::Pending, "{fault:?}");
        let world = world.restart(async |world| world.registry.proxy.mend("AssignSession")).await;
        assert_eq!(world.complete("s").await.result(), SessionResult::Cancelled);
        assert_eq!(world.registry.get("n1").await.wish.enabled, Some(false));
    }
}

#[tokio::test]
async fn staged_state_of_a_cancelled_session_is_not_applied() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    world.create(CreateSessionRequest { stage: true, ..wish(Operation::Boot, "s", "t") }).await.unwrap();
    world.running("s").await;
    cancel(&world, "s", "").await.unwrap();
    assert_eq!(world.complete("s").await.result(), SessionResult::Cancelled);
    let request =
        ApplyStagedRequest { component_ids: vec!["n1".to_owned()], ..ApplyStagedRequest::default() };
    let applied = asked(world.sessions.clone().apply_staged(request)).await.unwrap();
    assert_eq!((applied.succeeded_ids.len(), applied.failed_ids), (0, vec!["n1".to_owned()]));
    assert_ne!(world.registry.get("n1").await.wish.enabled, Some(true));
}

#[tokio::test]
async fn retry_takes_the_failed_members_once() {
    let world = running(&["n1", "n2", "n3"]).await;
    expect!["session s: it is not complete yet; wait for its end, or cancel it"]
        .assert_eq(&is_locked(retry(&world, "s").await));
    world.registry.settle(["n1"]).await;
    fail(&world, "n2").await;
    fail(&world, "n3").await;
    world.complete("s").await;
    let first = retry(&world, "s").await.unwrap();
    assert_eq!((&*first.limit, first.operation(), &*first.template_name), ("n2,n3", Operation::Boot, "t"));
    assert_eq!(first.retry_of.as_ref().unwrap().name, "s");
    assert_eq!(world.running(&first.name).await.components, ["n2", "n3"]);
    assert_eq!(retry(&world, "s").await.unwrap().id, first.id);
    world.registry.settle(["n2", "n3"]).await;
    assert_eq!(world.complete(&first.name).await.result(), SessionResult::Succeeded);
    expect!["session NAME: none of its components failed that it still owns"]
        .assert_eq(&is_locked(retry(&world, &first.name).await).replace(&first.name, "NAME"));
}

#[tokio::test]
async fn retry_leaves_members_of_other_sessions_alone() {
    let world = running(&["n1", "n2"]).await;
    fail(&world, "n1").await;
    fail(&world, "n2").await;
    assert_eq!(world.complete("s").await.result(), SessionResult::Failed);
    world.template("u", &["n2"]).await;
    world.boot("other", "u").await.unwrap();
    world.running("other").await;
    assert_eq!(retry(&world, "s").await.unwrap().limit, "n1");
}
