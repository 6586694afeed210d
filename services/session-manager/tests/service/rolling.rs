//! Rollouts of sessions in batches.

use chassis::Fault;
use domain::boot::component::Component;
use expect_test::expect;
use proto::{
    component::StatusReport,
    event::{EventFilter, ListEventsRequest, event_service_client::EventServiceClient},
    session::{
        BatchProgress, CreateSessionRequest, GetSessionRequest, Operation, ResumeSessionRequest,
        RetrySessionRequest, RolloutMissAction, RolloutPolicy, RolloutStanding, RolloutWait, Session,
        SessionResult,
    },
};
use test_registry::CallFault;

use crate::world::{World, asked, once, wish};

/// Canary of one node, then batches of two.
fn canary() -> RolloutPolicy {
    RolloutPolicy { canary_count: Some(1), batch_count: Some(2), ..RolloutPolicy::default() }
}

fn rollout(policy: RolloutPolicy) -> CreateSessionRequest {
    CreateSessionRequest { rollout: Some(policy), ..wish(Operation::Boot, "s", "t") }
}

/// Starts a session of the nodes n1 to n5 that rolls out.
async fn rolling(policy: RolloutPolicy) -> World {
    let world = World::start().await;
    world.template("t", &["n1", "n2", "n3", "n4", "n5"]).await;
    world.create(rollout(policy)).await.unwrap();
    world
}

fn opened(session: &Session) -> usize {
    let batches = session.rollout.iter().flat_map(|rollout| &rollout.batches);
    batches.filter(|batch| batch.progress() != BatchProgress::Closed).count()
}

async fn opened_to(world: &World, count: usize) -> Session {
    world.session_when("s", |session| opened(session) == count).await
}

/// Ids of the components that may begin, once the marks of the others are as they should be.
async fn free(world: &World, count: usize) -> Vec<String> {
    let ids = async || {
        let all = world.registry.all().await.into_iter();
        let free = all.filter(|one| one.session_name() == "s" && !one.is_paused());
        let mut ids: Vec<_> = free.map(|one| one.id.as_str().to_owned()).collect();
        ids.sort();
        ids
    };
    once(ids, |ids| ids.len() == count).await
}

async fn fail(world: &World, ids: &[&str]) {
    let report =
        StatusReport { settled: true, status_override: "failed".to_owned(), ..StatusReport::default() };
    world.registry.report_statuses(ids, report).await;
}

async fn standing(world: &World) -> RolloutStanding {
    let request = GetSessionRequest { name: "s".to_owned(), ..GetSessionRequest::default() };
    asked(world.sessions.clone().get_session(request)).await.unwrap().rollout.unwrap()
}

async fn resume(world: &World) {
    let request = ResumeSessionRequest { name: "s".to_owned(), ..ResumeSessionRequest::default() };
    asked(world.sessions.clone().resume_session(request)).await.unwrap();
}

async fn events(world: &World) -> String {
    let filter = EventFilter { keys: vec!["\ts".to_owned()], ..EventFilter::default() };
    let request = ListEventsRequest { filter: Some(filter), page_size: 50, ..ListEventsRequest::default() };
    let mut events = EventServiceClient::new(world.channel.clone());
    let answer = asked(events.list_events(request)).await.unwrap();
    let shown = answer.events.into_iter().map(|event| {
        let body = event.body.unwrap();
        let details = body.details.iter().map(|one| format!(" {}={}", one.name, one.value));
        format!("{} {}{}\n", body.kind, body.reason, details.collect::<String>())
    });
    shown.collect()
}

#[tokio::test]
async fn batches_open_one_after_the_other() {
    let world = rolling(canary()).await;
    opened_to(&world, 1).await;
    assert_eq!(free(&world, 1).await, ["n1"]);
    let waits = standing(&world).await;
    assert_eq!((waits.batch, waits.batches, waits.wait()), (1, 3, RolloutWait::Outcomes));
    world.registry.settle(["n1"]).await;
    opened_to(&world, 2).await;
    assert_eq!(free(&world, 3).await, ["n1", "n2", "n3"]);
    world.registry.settle(["n2"]).await;
    expect!["batch 2 of 3 is open, 1 of 2 nodes as wanted, 1 under way; waits for 1 more as wanted"]
        .assert_eq(&once(async || standing(&world).await, |one| one.succeeded == 1).await.text);
    world.registry.settle(["n3"]).await;
    opened_to(&world, 3).await;
    free(&world, 5).await;
    world.registry.settle(["n4", "n5"]).await;
    assert_eq!(world.complete("s").await.result(), SessionResult::Succeeded);
    expect![[r#"
        created boot template=t
        running  members=5
        batch_opened  batch=1 batches=3 members=1
        batch_opened  batch=2 batches=3 members=2
        batch_opened  batch=3 batches=3 members=2
        rollout_finished  batches=3
        complete succeeded
    "#]]
    .assert_eq(&events(&world).await);
}

#[tokio::test]
async fn members_are_held_from_their_assignment_on() {
    let world = World::start().await;
    world.template("t", &["n1", "n2"]).await;
    world.registry.proxy.fault("PauseComponents", CallFault::Held);
    world.create(rollout(canary())).await.unwrap();
    opened_to(&world, 1).await;
    let all = world.registry.all().await;
    let members: Vec<_> = all.iter().filter(|one| one.session_name() == "s").collect();
    assert_eq!(members.len(), 2);
    assert!(members.iter().all(|one| one.is_paused() && one.is_enabled()), "no mark was removed yet");
    world.registry.proxy.mend("PauseComponents");
    assert_eq!(free(&world, 1).await, ["n1"]);
}

#[tokio::test]
async fn failing_canary_holds_the_others_until_somebody_resumes() {
    let world = rolling(canary()).await;
    opened_to(&world, 1).await;
    free(&world, 1).await;
    fail(&world, &["n1"]).await;
    let held = world.session_when("s", |session| session.pause.is_some()).await;
    let pause = held.pause.clone().unwrap();
    expect!["rollout: batch 1 of 3 missed its threshold of 100%: 1 of 1 nodes failed"]
        .assert_eq(&format!("{}: {}", pause.by, pause.reason));
    assert_eq!((opened(&held), standing(&world).await.wait()), (1, RolloutWait::Decision));
    let world = world.restart(async |_| {}).await;
    assert_eq!(opened(&world.session_when("s", |_| true).await), 1);
    resume(&world).await;
    opened_to(&world, 2).await;
    assert_eq!(free(&world, 3).await, ["n1", "n2", "n3"]);
}

#[tokio::test]
async fn stopped_rollout_releases_what_has_not_begun() {
    let world = rolling(RolloutPolicy { on_miss: RolloutMissAction::Stop.into(), ..canary() }).await;
    opened_to(&world, 1).await;
    free(&world, 1).await;
    fail(&world, &["n1"]).await;
    let complete = world.complete("s").await;
    assert_eq!((complete.result(), opened(&complete)), (SessionResult::Failed, 1));
    let released = world.registry.get("n5").await;
    assert!(!released.is_enabled());
    expect!["Session 's' stopped its rollout before the batch of the node was opened"]
        .assert_eq(released.evaluation.error.as_deref().unwrap_or_default());
    let request = RetrySessionRequest { name: "s".to_owned(), ..RetrySessionRequest::default() };
    let retry = asked(world.sessions.clone().retry_session(request)).await.unwrap().session.unwrap();
    assert_eq!(retry.rollout.unwrap().policy, complete.rollout.unwrap().policy, "a retry rolls out, too");
}

#[tokio::test]
async fn rollout_goes_on_after_restarts_and_opens_no_batch_twice() {
    let soak = Some(prost_types::Duration { seconds: 1, nanos: 0 });
    let mut world = rolling(RolloutPolicy { soak, ..canary() }).await;
    for batches in 1..=3 {
        let before = opened_to(&world, batches).await;
        let ids = free(&world, [1, 3, 5][batches - 1]).await;
        world = world
            .restart(async |world| {
                // Outcomes while no session manager looks.
                world.registry.settle(&ids).await;
            })
            .await;
        let times = |session: &Session| -> Vec<_> {
            let batches = session.rollout.iter().flat_map(|rollout| &rollout.batches);
            batches.filter_map(|batch| batch.opened_at).collect()
        };
        let now = world.session_when("s", |session| opened(session) >= batches).await;
        assert_eq!(times(&now)[..batches], times(&before)[..], "a batch keeps the time of its opening");
    }
    assert_eq!(world.complete("s").await.result(), SessionResult::Succeeded);
    let story = events(&world).await;
    assert_eq!(story.matches("batch_opened").count(), 3, "{story}");
}

#[tokio::test]
async fn limit_of_members_in_flight_holds() {
    let policy = RolloutPolicy {
        canary_count: Some(2),
        batch_count: Some(2),
        max_in_flight: Some(3),
        // Success is not waited for.
        threshold_percent: Some(0),
        ..RolloutPolicy::default()
    };
    let world = rolling(policy).await;
    assert_eq!(free(&world, 2).await, ["n1", "n2"]);
    for (done, next, in_flight) in
        [("n1", vec!["n1", "n2", "n3", "n4"], 3), ("n2", vec!["n1", "n2", "n3", "n4", "n5"], 3)]
    {
        once(async || standing(&world).await, |one| one.wait() == RolloutWait::InFlight).await;
        world.registry.settle([done]).await;
        assert_eq!(free(&world, next.len()).await, next);
        assert_eq!(standing(&world).await.in_flight, in_flight);
    }
}

#[tokio::test]
async fn bad_policies_name_the_field() {
    let world = World::start().await;
    world.template("t", &["n1"]).await;
    let none = RolloutPolicy::default;
    let mut rows = String::new();
    for policy in [
        RolloutPolicy { batch_count: Some(0), ..none() },
        RolloutPolicy { batch_percent: Some(101), ..none() },
        RolloutPolicy { canary_count: Some(1), canary_percent: Some(1), ..none() },
        RolloutPolicy { soak: Some(prost_types::Duration { seconds: -1, nanos: 0 }), ..canary() },
        none(),
    ] {
        rows += &refusal(world.create(rollout(policy)).await);
    }
    rows += &refusal(world.create(CreateSessionRequest { stage: true, ..rollout(canary()) }).await);
    expect![[r#"
        rollout.batch_count: is 0 but has to be at least 1
        rollout.batch_percent: is 101 but may be at most 100
        rollout.canary_percent: cannot stand beside canary_count: give one of the two
        rollout.soak: is negative
        rollout: gives no batches: give a canary, a size or a kind of batches, or a limit of members in flight
        rollout: a session that only stages begins nothing, and has no batches
    "#]]
    .assert_eq(&rows);
}

fn refusal(answer: Result<Session, Fault>) -> String {
    match answer {
        Err(Fault::Invalid(invalid)) => format!("{invalid}\n"),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn operators_pause_goes_before_the_rollout() {
    let world = rolling(canary()).await;
    opened_to(&world, 1).await;
    free(&world, 1).await;
    let request = proto::session::PauseSessionRequest { name: "s".to_owned(), ..Default::default() };
    asked(world.sessions.clone().pause_session(request)).await.unwrap();
    once(async || world.registry.get("n1").await, Component::is_paused).await;
    world.registry.settle(["n1"]).await;
    assert_eq!(opened(&world.session_when("s", |session| session.pause.is_some()).await), 1);
    resume(&world).await;
    opened_to(&world, 2).await;
    assert_eq!(free(&world, 3).await, ["n1", "n2", "n3"]);
}
