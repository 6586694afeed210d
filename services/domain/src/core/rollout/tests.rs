//! Table and property of the rule.

use std::time::Duration;

use expect_test::expect;
use proptest::prelude::*;

use super::{
    policy::{PolicyRequest, RolloutPolicy},
    *,
};

const NOW: Timestamp = Timestamp(1_000_000);

/// Kind of groups: the letter that a name begins with.
type Letter = ();

fn request() -> PolicyRequest<Letter> {
    PolicyRequest { batch_count: Some(2), ..PolicyRequest::default() }
}

fn policy(request: PolicyRequest<Letter>) -> RolloutPolicy<Letter> {
    RolloutPolicy::parse(request).expect("valid")
}

#[test]
fn bad_policies_name_the_field_and_the_reason() {
    let none = PolicyRequest::<Letter>::default;
    let mut rows = String::new();
    for request in [
        PolicyRequest { batch_count: Some(0), ..none() },
        PolicyRequest { batch_percent: Some(0), ..none() },
        PolicyRequest { batch_percent: Some(101), ..none() },
        PolicyRequest { batch_count: Some(1), batch_percent: Some(10), ..none() },
        PolicyRequest { batch_count: Some(1), by: Some(()), ..none() },
        PolicyRequest { canary_count: Some(0), ..none() },
        PolicyRequest { canary_percent: Some(200), ..none() },
        PolicyRequest { canary_count: Some(1), canary_percent: Some(1), ..none() },
        PolicyRequest { max_in_flight: Some(0), ..request() },
        PolicyRequest { soak_millis: Some(-1), ..request() },
        PolicyRequest { soak_millis: Some(i64::MAX), ..request() },
        PolicyRequest { threshold_percent: Some(101), ..request() },
        none(),
    ] {
        rows += &format!("{}\n", RolloutPolicy::parse(request).expect_err("refused"));
    }
    expect![[r#"
        batch_count: is 0 but has to be at least 1
        batch_percent: is 0 but has to be at least 1
        batch_percent: is 101 but may be at most 100
        batch_percent: cannot stand beside batch_count: give one of the two
        by: cannot stand beside a size of the batches: give one of the two
        canary_count: is 0 but has to be at least 1
        canary_percent: is 200 but may be at most 100
        canary_percent: cannot stand beside canary_count: give one of the two
        max_in_flight: is 0 but has to be at least 1
        soak: is negative
        soak: is longer than 30 days
        threshold_percent: is 101 but may be at most 100
        : gives no batches: give a canary, a size or a kind of batches, or a limit of members in flight
    "#]]
    .assert_eq(&rows);
}

#[test]
fn members_are_cut_in_their_order() {
    let none = PolicyRequest::default;
    let mut rows = String::new();
    for (name, request) in [
        ("canary", PolicyRequest { canary_count: Some(1), ..none() }),
        ("canary of all", PolicyRequest { canary_count: Some(9), ..none() }),
        ("canary of a few percent", PolicyRequest { canary_percent: Some(1), ..none() }),
        ("counts", PolicyRequest { batch_count: Some(3), ..none() }),
        ("percent", PolicyRequest { batch_percent: Some(30), ..none() }),
        ("canary and counts", PolicyRequest { canary_count: Some(1), batch_count: Some(4), ..none() }),
        ("groups", PolicyRequest { by: Some(()), ..none() }),
        ("canary and groups", PolicyRequest { canary_count: Some(2), by: Some(()), ..none() }),
        ("groups in flight", PolicyRequest { by: Some(()), max_in_flight: Some(2), ..none() }),
        ("in flight", PolicyRequest { max_in_flight: Some(5), ..none() }),
        ("counts in flight", PolicyRequest { batch_count: Some(6), max_in_flight: Some(4), ..none() }),
    ] {
        let members = vec!["a1", "a2", "a3", "b1", "b2", "c1", "b3"];
        let batches = policy(request).batches(members, |member, ()| member[..1].to_owned());
        let shown: Vec<_> = batches.iter().map(|batch| batch.join(" ")).collect();
        rows += &format!("{name}: {}\n", shown.join(" | "));
    }
    expect![[r#"
        canary: a1 | a2 a3 b1 b2 c1 b3
        canary of all: a1 a2 a3 b1 b2 c1 b3
        canary of a few percent: a1 | a2 a3 b1 b2 c1 b3
        counts: a1 a2 a3 | b1 b2 c1 | b3
        percent: a1 a2 a3 | b1 b2 c1 | b3
        canary and counts: a1 | a2 a3 b1 b2 | c1 b3
        groups: a1 a2 a3 | b1 b2 b3 | c1
        canary and groups: a1 a2 | a3 | b1 b2 b3 | c1
        groups in flight: a1 a2 | a3 | b1 b2 | b3 | c1
        in flight: a1 a2 a3 b1 b2 | c1 b3
        counts in flight: a1 a2 a3 b1 | b2 c1 b3
    "#]]
    .assert_eq(&rows);
}

/// Reads `open:uusfg`: a batch of that progress and the outcomes of its members. Batches were opened a minute ago, and
/// met their threshold ten seconds ago.
fn batch(text: &str) -> BatchView {
    let (progress, members) = text.split_once(':').expect("a progress");
    let since = NOW.minus(Duration::from_secs(60));
    let progress = match progress {
        "closed" => BatchProgress::Closed,
        "open" => BatchProgress::Open { since },
        "met" => BatchProgress::Met { since, at: NOW.minus(Duration::from_secs(10)) },
        "missed" => BatchProgress::Missed { since },
        "waived" => BatchProgress::Waived { since },
        other => panic!("no progress {other}"),
    };
    let outcomes = members.chars().map(|letter| match letter {
        'u' => MemberOutcome::UnderWay,
        's' => MemberOutcome::Succeeded,
        'f' => MemberOutcome::Failed,
        'g' => MemberOutcome::Gone,
        other => panic!("no outcome {other}"),
    });
    BatchView { progress, tally: outcomes.collect() }
}

#[test]
fn step_follows_record_and_outcomes() {
    let usual = policy(request());
    let most = policy(PolicyRequest { max_in_flight: Some(3), ..request() });
    let lenient = policy(PolicyRequest { threshold_percent: Some(50), ..request() });
    let soaking = policy(PolicyRequest { soak_millis: Some(10_001), ..request() });
    let soaked = policy(PolicyRequest { soak_millis: Some(10_000), ..request() });
    let stopping = policy(PolicyRequest { on_miss: MissAction::Stop, ..request() });
    let mut rows = String::new();
    for (name, policy, batches) in [
        ("begin", &usual, "closed:uu closed:uu"),
        ("no member", &usual, ""),
        ("under way", &usual, "open:su closed:uu"),
        ("all succeeded", &usual, "open:ss closed:uu"),
        ("all left", &usual, "open:gg closed:uu"),
        ("one failed", &usual, "open:fu closed:uu"),
        ("one failed of two, and half is enough", &lenient, "open:fu closed:uu"),
        ("half succeeded, and half is enough", &lenient, "open:su closed:uu"),
        ("met", &usual, "met:ss closed:uu"),
        ("met, and a member is under way again", &usual, "met:su closed:uu"),
        ("met too short ago", &soaking, "met:ss closed:uu"),
        ("met long enough ago", &soaked, "met:ss closed:uu"),
        ("missed", &usual, "missed:fu closed:uu"),
        ("missed, and succeeded later", &usual, "missed:ss closed:uu"),
        ("missed, and the rollout stops", &stopping, "missed:fu closed:uu"),
        ("waived", &soaking, "waived:fu closed:uu"),
        ("room in flight", &most, "met:su closed:uu"),
        ("no room in flight", &most, "waived:fu met:su closed:uu"),
        ("room, because a member of the next one is as wanted already", &most, "met:suu closed:sg"),
        ("last one under way", &usual, "met:ss open:fu"),
        ("last one decided", &usual, "met:ss open:fs"),
        ("last one met", &soaking, "met:ss met:ss"),
    ] {
        let batches: Vec<_> = batches.split_whitespace().map(batch).collect();
        rows += &format!("{name}: {:?}\n", step(policy, &batches, NOW));
    }
    expect![[r#"
        begin: Open(0)
        no member: Done
        under way: Wait(Outcomes { batch: 0, lacking: 1 })
        all succeeded: Meet(0)
        all left: Meet(0)
        one failed: Miss(0)
        one failed of two, and half is enough: Wait(Outcomes { batch: 0, lacking: 1 })
        half succeeded, and half is enough: Meet(0)
        met: Open(1)
        met, and a member is under way again: Open(1)
        met too short ago: Wait(Soak { batch: 0, until: Timestamp(1000001) })
        met long enough ago: Open(1)
        missed: Wait(Decision { batch: 0 })
        missed, and succeeded later: Wait(Decision { batch: 0 })
        missed, and the rollout stops: Stopped
        waived: Open(1)
        room in flight: Open(1)
        no room in flight: Wait(InFlight { batch: 2, in_flight: 2, most: 3 })
        room, because a member of the next one is as wanted already: Open(1)
        last one under way: Wait(Outcomes { batch: 1, lacking: 2 })
        last one decided: Done
        last one met: Done
    "#]]
    .assert_eq(&rows);
}

/// Plays a rollout to its end: after each step the members that are under way take the next of `outcomes`.
///
/// Asserts that no more members are in flight than the policy allows, that the batch before each opened one had met its
/// threshold and soaked, or was waived, and that each wait ends with what it states.
fn play(policy: &RolloutPolicy<Letter>, members: usize, mut outcomes: impl Iterator<Item = MemberOutcome>) {
    let sizes: Vec<_> = policy.batches((0..members).collect(), |_, ()| String::new());
    let mut states: Vec<_> = sizes.iter().map(|batch| vec![MemberOutcome::UnderWay; batch.len()]).collect();
    let mut progress = vec![BatchProgress::Closed; sizes.len()];
    let mut now = NOW;
    for _ in 0..10 * members + 10 {
        let views: Vec<_> = progress
            .iter()
            .zip(&states)
            .map(|(progress, states)| BatchView {
                progress: *progress,
                tally: states.iter().copied().collect(),
            })
            .collect();
        let most = policy.most_in_flight.map_or(usize::MAX, |most| most.get() as usize);
        assert!(in_flight(&views) <= most, "{policy:?} {views:?}");
        match step(policy, &views, now) {
            RolloutStep::Open(batch) => {
                assert_eq!(progress[batch], BatchProgress::Closed, "opened once");
                match batch.checked_sub(1).map(|before| progress[before]) {
                    None | Some(BatchProgress::Waived { .. }) => {}
                    Some(BatchProgress::Met { at, .. }) => assert!(now >= at.plus(policy.soak)),
                    Some(other) => panic!("batch {batch} follows {other:?}"),
                }
                progress[batch] = BatchProgress::Open { since: now };
            }
            RolloutStep::Meet(batch) => {
                let tally = &views[batch].tally;
                assert!(tally.succeeded * 100 >= tally.counted() * policy.threshold as usize);
                progress[batch] = BatchProgress::Met { since: now, at: now };
            }
            RolloutStep::Miss(batch) => progress[batch] = BatchProgress::Missed { since: now },
            RolloutStep::Wait(RolloutWait::Soak { until, .. }) => {
                assert!(until > now);
                now = until;
            }
            RolloutStep::Wait(RolloutWait::Decision { batch }) => {
                progress[batch] = BatchProgress::Waived { since: now };
            }
            RolloutStep::Wait(RolloutWait::Outcomes { .. } | RolloutWait::InFlight { .. }) => {
                assert!(in_flight(&views) > 0, "nothing is under way: {policy:?} {views:?}");
                let open = progress.iter().zip(&mut states);
                let open = open.filter(|(progress, _)| **progress != BatchProgress::Closed);
                let next = open.flat_map(|(_, states)| states).find(|one| **one == MemberOutcome::UnderWay);
                *next.expect("a member is in flight") = outcomes.next().expect("without end");
            }
            RolloutStep::Stopped => {
                assert_eq!(policy.on_miss, MissAction::Stop);
                assert!(progress.iter().any(|one| matches!(one, BatchProgress::Missed { .. })));
                return;
            }
            RolloutStep::Done => {
                assert!(progress.iter().all(|one| *one != BatchProgress::Closed));
                return;
            }
        }
    }
    panic!("no end: {policy:?} {progress:?}");
}

fn any_request() -> impl Strategy<Value = PolicyRequest<Letter>> {
    let share = |most: u32| prop::option::of(1..=most);
    (share(5), share(100), any::<bool>(), share(6), 0..100_i64, 0..=100_u32, any::<bool>()).prop_map(
        |(canary, size, in_percent, most, soak, threshold, stops)| PolicyRequest {
            canary_count: canary,
            batch_count: size.filter(|_| !in_percent),
            batch_percent: size.filter(|_| in_percent),
            max_in_flight: most,
            soak_millis: Some(soak),
            threshold_percent: Some(threshold),
            on_miss: if stops { MissAction::Stop } else { MissAction::Pause },
            ..PolicyRequest::default()
        },
    )
}

fn any_outcomes() -> impl Strategy<Value = Vec<MemberOutcome>> {
    let outcome = prop_oneof![
        4 => Just(MemberOutcome::Succeeded),
        2 => Just(MemberOutcome::Failed),
        1 => Just(MemberOutcome::Gone),
    ];
    prop::collection::vec(outcome, 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_rollout_comes_to_its_end_within_its_limits(
        request in any_request(),
        members in 0_usize..40,
        outcomes in any_outcomes(),
    ) {
        if let Ok(policy) = RolloutPolicy::parse(request) {
            play(&policy, members, outcomes.into_iter().cycle());
        }
    }
}
