//! Rollouts of sessions.

use std::time::Duration;

use expect_test::expect;

use super::*;
use crate::{
    boot::{
        component::Status,
        session::{
            SessionEnd, SessionResult, complete,
            completion::tests::component,
            event::events,
            inventory::tests::ids,
            pause::{MarkChange, mark_change, resume},
            run,
            tests::{NOW, session},
        },
    },
    core::rollout::policy::PolicyRequest,
};

const MEMBERS: &str = "x1c0s10b0n0 x1c0s2b0n0 x2c0s0b0n0 x10c0s0b0n0 x9c1s0b0n0";

fn rolling(request: PolicyRequest<NodePlace>) -> Session {
    let policy = RolloutPolicy::parse(request).expect("valid");
    let pending = Session { rollout: Some(SessionRollout::new(policy)), ..session("s") };
    run(pending, ids(MEMBERS), 7)
}

fn canary() -> PolicyRequest<NodePlace> {
    PolicyRequest { canary_count: Some(1), batch_count: Some(2), ..PolicyRequest::default() }
}

fn shown(session: &Session) -> String {
    let batches = session.rollout.as_ref().expect("a rollout").batches();
    let batches = batches.map(|(members, progress)| {
        let members: Vec<_> = members.iter().map(ComponentId::as_str).collect();
        format!("{}: {}", progress.word(), members.join(" "))
    });
    batches.collect::<Vec<_>>().join(" | ")
}

#[test]
fn batches_follow_the_order_of_people_and_the_places() {
    let by = |by| PolicyRequest { by: Some(by), ..PolicyRequest::default() };
    let mut rows = String::new();
    for (name, request) in
        [("canary", canary()), ("cabinets", by(NodePlace::Cabinet)), ("chassis", by(NodePlace::Chassis))]
    {
        rows += &format!("{name}: {}\n", shown(&rolling(request)));
    }
    expect![[r#"
        canary: closed: x1c0s2b0n0 | closed: x1c0s10b0n0 x2c0s0b0n0 | closed: x9c1s0b0n0 x10c0s0b0n0
        cabinets: closed: x1c0s2b0n0 x1c0s10b0n0 | closed: x2c0s0b0n0 | closed: x9c1s0b0n0 | closed: x10c0s0b0n0
        chassis: closed: x1c0s2b0n0 x1c0s10b0n0 | closed: x2c0s0b0n0 | closed: x9c1s0b0n0 | closed: x10c0s0b0n0
    "#]].assert_eq(&rows);
}

/// Plays the rollout with members whose outcomes are decided by `outcome` once their batch is open, and tells each step.
fn play(mut session: Session, outcome: impl Fn(&ComponentId) -> MemberOutcome) -> String {
    let mut now = NOW;
    let mut rows = String::new();
    for _ in 0..20 {
        let rollout = session.rollout.clone().expect("a rollout");
        let views = rollout.views(|id| if rollout.holds(id) { MemberOutcome::UnderWay } else { outcome(id) });
        let standing = rollout_standing(&session, &views, now).expect("a rollout");
        rows += &format!("{}\n", standing.text());
        let after = advance(&session, &views, now);
        let until = match standing.step {
            RolloutStep::Wait(wait) => wait.until(),
            RolloutStep::Open(_)
            | RolloutStep::Meet(_)
            | RolloutStep::Miss(_)
            | RolloutStep::Stopped
            | RolloutStep::Done => None,
        };
        let next = match (after, until) {
            (Some(after), _) => after,
            (None, Some(until)) => {
                now = until;
                continue;
            }
            (None, None) => match resume(session.clone()) {
                Ok(resumed) if resumed != session => resumed,
                Ok(_) | Err(_) => break,
            },
        };
        for event in events(Some(&session), Some(&next)) {
            let content = event.content();
            let details = content.details.iter().map(|(name, value)| format!(" {name}={value}"));
            rows += &format!("    {} {}{}\n", content.kind, content.reason, details.collect::<String>());
        }
        session = next;
    }
    rows + &shown(&session) + "\n"
}

#[test]
fn rollout_goes_on_by_success_time_and_people() {
    let soaking = PolicyRequest { soak_millis: Some(60_000), ..canary() };
    let stopping = PolicyRequest { on_miss: MissAction::Stop, ..canary() };
    let good = |_: &ComponentId| MemberOutcome::Succeeded;
    let bad = |_: &ComponentId| MemberOutcome::Failed;
    let mut rows = String::new();
    rows += &format!("soaks\n{}", play(rolling(soaking), good));
    rows += &format!("held\n{}", play(rolling(canary()), bad));
    rows += &format!("stopped\n{}", play(rolling(stopping), bad));
    rows += &format!("under way\n{}", play(rolling(canary()), |_| MemberOutcome::UnderWay));
    expect![[r#"
        soaks
        none of 3 batches is open yet
            batch_opened  batch=1 batches=3 members=1
        batch 1 of 3 is open, 1 of 1 nodes as wanted
        batch 1 of 3 is open, 1 of 1 nodes as wanted; soaks until 2024-11-20T16:11:12Z
        batch 1 of 3 is open, 1 of 1 nodes as wanted
            batch_opened  batch=2 batches=3 members=2
        batch 2 of 3 is open, 2 of 2 nodes as wanted
        batch 2 of 3 is open, 2 of 2 nodes as wanted; soaks until 2024-11-20T16:12:12Z
        batch 2 of 3 is open, 2 of 2 nodes as wanted
            batch_opened  batch=3 batches=3 members=2
        batch 3 of 3 is open, 2 of 2 nodes as wanted
            rollout_finished  batches=3
        batch 3 of 3 is open, 2 of 2 nodes as wanted
        met: x1c0s2b0n0 | met: x1c0s10b0n0 x2c0s0b0n0 | met: x9c1s0b0n0 x10c0s0b0n0
        held
        none of 3 batches is open yet
            batch_opened  batch=1 batches=3 members=1
        batch 1 of 3 is open, 0 of 1 nodes as wanted, 1 failed
            rollout_held paused batch=1 batches=3
            paused  by=rollout
        batch 1 of 3 is open, 0 of 1 nodes as wanted, 1 failed; missed its threshold, and a person decides whether the others follow
            resumed 
        batch 1 of 3 is open, 0 of 1 nodes as wanted, 1 failed
            batch_opened  batch=2 batches=3 members=2
        batch 2 of 3 is open, 0 of 2 nodes as wanted, 2 failed
            rollout_held paused batch=2 batches=3
            paused  by=rollout
        batch 2 of 3 is open, 0 of 2 nodes as wanted, 2 failed; missed its threshold, and a person decides whether the others follow
            resumed 
        batch 2 of 3 is open, 0 of 2 nodes as wanted, 2 failed
            batch_opened  batch=3 batches=3 members=2
        batch 3 of 3 is open, 0 of 2 nodes as wanted, 2 failed
        waived: x1c0s2b0n0 | waived: x1c0s10b0n0 x2c0s0b0n0 | open: x9c1s0b0n0 x10c0s0b0n0
        stopped
        none of 3 batches is open yet
            batch_opened  batch=1 batches=3 members=1
        batch 1 of 3 is open, 0 of 1 nodes as wanted, 1 failed
            rollout_held stopped batch=1 batches=3
        batch 1 of 3 is open, 0 of 1 nodes as wanted, 1 failed; missed its threshold, and the others do not follow
        missed: x1c0s2b0n0 | closed: x1c0s10b0n0 x2c0s0b0n0 | closed: x9c1s0b0n0 x10c0s0b0n0
        under way
        none of 3 batches is open yet
            batch_opened  batch=1 batches=3 members=1
        batch 1 of 3 is open, 0 of 1 nodes as wanted, 1 under way; waits for 1 more as wanted
        open: x1c0s2b0n0 | closed: x1c0s10b0n0 x2c0s0b0n0 | closed: x9c1s0b0n0 x10c0s0b0n0
    "#]]
    .assert_eq(&rows);
}

#[test]
fn marks_follow_the_batches() {
    let pending = Session { components: Vec::new(), progress: Progress::Pending, ..rolling(canary()) };
    let pending =
        Session { rollout: pending.rollout.map(|one| SessionRollout::new(one.policy().clone())), ..pending };
    let closed = rolling(canary());
    let views = |session: &Session, outcome| {
        session.rollout.as_ref().map(|rollout| rollout.views(|_| outcome)).unwrap_or_default()
    };
    let opened = advance(&closed, &views(&closed, MemberOutcome::UnderWay), NOW).expect("opened");
    let missed = advance(&opened, &views(&opened, MemberOutcome::Failed), NOW).expect("missed");
    let resumed = resume(missed.clone()).expect("possible");
    let over = complete(opened.clone(), NOW, SessionEnd { error: None, result: SessionResult::Partial });
    let mut rows = String::new();
    for (name, session) in [
        ("pending", &pending),
        ("closed", &closed),
        ("first open", &opened),
        ("first missed", &missed),
        ("resumed", &resumed),
        ("over", &over),
    ] {
        rows += &format!("{name}, holds {}:", session.holds_components());
        for id in ["x1c0s2b0n0", "x1c0s10b0n0"] {
            let change = mark_change(&component(id, true, "s", ""), [session]);
            let told = match change {
                MarkChange::None => "nothing".to_owned(),
                MarkChange::Set(mark) => mark.text("s"),
                MarkChange::Remove => "removal".to_owned(),
            };
            rows += &format!(" {told};");
        }
        rows += "\n";
    }
    expect![[r#"
        pending, holds true: s has not opened the batch of this node yet; s has not opened the batch of this node yet;
        closed, holds true: s has not opened the batch of this node yet; s has not opened the batch of this node yet;
        first open, holds true: nothing; s has not opened the batch of this node yet;
        first missed, holds true: s is paused by rollout since 2024-11-20T16:10:12Z; s is paused by rollout since 2024-11-20T16:10:12Z;
        resumed, holds true: nothing; s has not opened the batch of this node yet;
        over, holds false: nothing; nothing;
    "#]]
    .assert_eq(&rows);
    assert_eq!(advance(&missed, &views(&missed, MemberOutcome::Succeeded), NOW), None, "it is paused");
    assert_eq!(advance(&over, &views(&over, MemberOutcome::Succeeded), NOW), None, "it is over");
}

#[test]
fn outcome_of_a_member_follows_its_record() {
    let session = rolling(canary());
    let with = |enabled, word: &str| {
        component("x1c0s2b0n0", enabled, "s", "").with(|one| {
            let status_override = (!word.is_empty()).then(|| word.into());
            one.evaluation.status = Some(Status { phase: None, status_override });
        })
    };
    for (name, component, expected) in [
        ("deleted", None, MemberOutcome::Gone),
        ("held", Some(with(true, "on_hold")), MemberOutcome::UnderWay),
        ("as wanted", Some(with(false, "")), MemberOutcome::Succeeded),
        ("given up", Some(with(false, "failed")), MemberOutcome::Failed),
        ("disabled by an operator", Some(with(false, "on_hold")), MemberOutcome::Gone),
        ("of another session", Some(component("x1c0s2b0n0", true, "other", "")), MemberOutcome::Gone),
    ] {
        assert_eq!(outcome(&session, component.as_ref()), expected, "{name}");
    }
}

#[test]
fn wait_of_a_soak_has_an_end() {
    let soaking = rolling(PolicyRequest { soak_millis: Some(60_000), ..canary() });
    let rollout = soaking.rollout.clone().expect("a rollout");
    let met = rollout.with(0, BatchProgress::Met { since: NOW, at: NOW });
    let session = Session { rollout: Some(met.clone()), ..soaking };
    let standing = rollout_standing(&session, &met.views(|_| MemberOutcome::Succeeded), NOW);
    let until = NOW.plus(Duration::from_secs(60));
    let wait = RolloutWait::Soak { batch: 0, until };
    assert_eq!(standing.map(|standing| standing.step), Some(RolloutStep::Wait(wait)));
}
