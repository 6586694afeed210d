//! Estimate of the end of a session, from how long nodes took in earlier sessions.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    boot::{
        component::Component,
        session::{Progress, Session},
    },
    core::{
        durations::{DurationProfile, WorkAge},
        id::ComponentId,
        rollout::{BatchProgress, MemberOutcome},
        time::Timestamp,
    },
};

/// Fewest nodes from which something is learned.
const FEWEST_NODES: u64 = 10;

/// Chance of the end that is likely, and of the one that is late.
const LIKELY: f64 = 0.5;
const LATE: f64 = 0.9;

/// Share of nodes that are quicker than one that counts as slow.
const SLOW: f64 = 0.99;

/// Most slow nodes that are named.
const MOST_NAMED: usize = 20;

/// Expected end of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEstimate {
    /// Time before which the session ends as likely as not; `None`: the nodes under way have taken longer than any before.
    pub likely_end: Option<Timestamp>,
    /// Time before which it ends in nine of ten cases; `None`: as `likely_end`.
    pub late_end: Option<Timestamp>,
    /// Number of nodes of earlier sessions that it rests on.
    pub learned_from: u64,
    /// Nodes that have taken longer than 99 of 100 before, the first ones by id.
    pub slow: Vec<ComponentId>,
    /// Number of such nodes.
    pub slow_count: usize,
}

/// Returns when the work on a member began; `None`: it has not, or its duration includes a pause, or the session only stages.
pub fn work_began_at(session: &Session, id: &ComponentId) -> Option<Timestamp> {
    let running_since = session.undisturbed_since.filter(|_| !session.stage)?;
    match &session.rollout {
        None => Some(running_since),
        Some(rollout) => rollout.progress().get(rollout.place(id)?)?.opened_at(),
    }
}

/// Returns how long a member took that is as wanted at `now`; `None`: nothing is learned from it, such as from a node that was
/// as wanted from the begin on, and was not switched.
pub fn learned_duration(session: &Session, component: &Component, now: Timestamp) -> Option<Duration> {
    let began = work_began_at(session, &component.id)?;
    let was_switched = component.last_action_at().is_some_and(|action| action >= began);
    was_switched.then(|| now.since(began))
}

/// Returns the estimate for a running session; `None`: too little is known, or the session was paused.
pub fn estimate(
    session: &Session,
    learned: &DurationProfile,
    outcome: impl Fn(&ComponentId) -> MemberOutcome,
    now: Timestamp,
) -> Option<SessionEstimate> {
    let is_left_alone =
        session.undisturbed_since.is_some() && !session.is_being_cancelled() && !session.stage;
    if learned.total() < FEWEST_NODES || session.progress != Progress::Running || !is_left_alone {
        return None;
    }
    let limit = learned.within(SLOW).unwrap_or_default();
    let mut ages = BTreeMap::<Duration, usize>::new();
    let (mut slow, mut slow_count) = (Vec::new(), 0);
    for id in session.components.iter().filter(|id| outcome(id) == MemberOutcome::UnderWay) {
        let Some(began) = work_began_at(session, id) else { continue };
        let age = now.since(began);
        *ages.entry(age).or_default() += 1;
        if age > limit {
            slow_count += 1;
            if slow.len() < MOST_NAMED {
                slow.push(id.clone());
            }
        }
    }
    let work: Vec<_> = ages.into_iter().map(|(age, count)| WorkAge { age, count }).collect();
    let end = |chance| Some(now.plus(time_left(session, learned, &work, chance, now)?));
    Some(SessionEstimate {
        likely_end: end(LIKELY),
        late_end: end(LATE),
        learned_from: learned.total(),
        slow,
        slow_count,
    })
}

/// Returns the time until everything is done with that chance: the nodes under way, and the closed batches one after the other.
fn time_left(
    session: &Session,
    learned: &DurationProfile,
    work: &[WorkAge],
    chance: f64,
    now: Timestamp,
) -> Option<Duration> {
    let under_way = match work.is_empty() {
        true => Duration::ZERO,
        false => learned.remaining(work, chance)?,
    };
    let Some(rollout) = session.rollout.as_ref().filter(|rollout| !rollout.is_stopped()) else {
        return Some(under_way);
    };
    let soak = rollout.policy().soak;
    let mut next_opening = match rollout.batches().take(rollout.opened()).last() {
        None => Duration::ZERO,
        Some((_, BatchProgress::Met { at, .. })) => at.plus(soak).since(now),
        // A person has decided that the next one follows.
        Some((_, BatchProgress::Waived { .. })) => Duration::ZERO,
        Some(_) => under_way + soak,
    };
    let mut end = under_way;
    for (members, _) in rollout.batches().skip(rollout.opened()) {
        let batch = [WorkAge { age: Duration::ZERO, count: members.len() }];
        end = end.max(next_opening + learned.remaining(&batch, chance)?);
        next_opening = end + soak;
    }
    Some(end)
}

/// Returns how long `count` nodes will take that begin together: likely, and in nine of ten cases; `None`: too little is known.
pub fn expected(learned: &DurationProfile, count: usize) -> Option<(Duration, Duration)> {
    if learned.total() < FEWEST_NODES {
        return None;
    }
    let work = [WorkAge { age: Duration::ZERO, count }];
    Some((learned.remaining(&work, LIKELY)?, learned.remaining(&work, LATE)?))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;
    use crate::{
        boot::session::{
            SessionPause,
            inventory::tests::ids,
            rollout::{SessionRollout, advance},
            run,
            tests::{NOW, session},
        },
        core::rollout::policy::{PolicyRequest, RolloutPolicy},
    };

    const MEMBERS: &str = "x1c0s0b0n0 x1c0s1b0n0 x1c0s2b0n0 x1c0s3b0n0";

    fn after(seconds: u64) -> Timestamp {
        NOW.plus(Duration::from_secs(seconds))
    }

    /// Nine nodes of ten took about 100 seconds, and the others 400.
    fn learned() -> DurationProfile {
        let mut profile = DurationProfile::default();
        (0..100).for_each(|n| profile.add(Duration::from_secs(if n % 10 == 0 { 400 } else { 100 })));
        profile
    }

    fn running() -> Session {
        let pending = session("s");
        run(pending.clone(), ids(MEMBERS), 7).with_begin(&pending, NOW)
    }

    fn shown(estimate: Option<SessionEstimate>) -> String {
        let Some(estimate) = estimate else { return "nothing".to_owned() };
        let seconds = |end: Option<Timestamp>| end.map(|end| end.since(NOW).as_secs());
        let SessionEstimate { likely_end, late_end, learned_from, slow, slow_count } = &estimate;
        let slow: Vec<_> = slow.iter().map(ComponentId::as_str).collect();
        format!(
            "{:?} to {:?} of {learned_from}, slow {slow_count} {slow:?}",
            seconds(*likely_end),
            seconds(*late_end)
        )
    }

    #[test]
    fn end_follows_the_nodes_that_are_left() {
        let (session, learned) = (running(), learned());
        let last = |id: &ComponentId| match id.as_str() == "x1c0s3b0n0" {
            true => MemberOutcome::UnderWay,
            false => MemberOutcome::Succeeded,
        };
        let mut rows = String::new();
        for (name, now, outcome) in [
            (
                "all, at the begin",
                0,
                &(|_: &ComponentId| MemberOutcome::UnderWay) as &dyn Fn(&ComponentId) -> _,
            ),
            ("the last one, after a while", 50, &last),
            ("the last one, late", 200, &last),
            ("the last one, too late", 900, &last),
            ("none", 900, &|_| MemberOutcome::Failed),
        ] {
            writeln!(rows, "{name}: {}", shown(estimate(&session, &learned, outcome, after(now)))).unwrap();
        }
        expect![[r#"
            all, at the begin: Some(113) to Some(392) of 100, slow 0 []
            the last one, after a while: Some(105) to Some(114) of 100, slow 0 []
            the last one, late: Some(376) to Some(403) of 100, slow 0 []
            the last one, too late: None to None of 100, slow 1 ["x1c0s3b0n0"]
            none: Some(900) to Some(900) of 100, slow 0 []
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn nothing_is_told_while_a_person_decides_or_little_is_known() {
        let under_way = |_: &ComponentId| MemberOutcome::UnderWay;
        let pause = SessionPause { by: "alice".into(), since: NOW, reason: "".into(), request_id: "".into() };
        let paused = Session { pause: Some(pause), ..running() }.with_begin(&running(), after(1));
        let resumed = Session { pause: None, ..paused.clone() }.with_begin(&paused, after(2));
        for (session, learned) in [
            (paused, learned()),
            (resumed, learned()),
            (Session { stage: true, ..running() }, learned()),
            (Session { progress: Progress::Complete, ..running() }, learned()),
            (running(), DurationProfile::restored(vec![9])),
        ] {
            assert_eq!(estimate(&session, &learned, under_way, after(1)), None);
        }
    }

    #[test]
    fn closed_batches_follow_one_another() {
        let policy =
            PolicyRequest { batch_count: Some(2), soak_millis: Some(60_000), ..PolicyRequest::default() };
        let rollout = Some(SessionRollout::new(RolloutPolicy::parse(policy).unwrap()));
        let pending = Session { rollout, ..session("s") };
        let session = run(pending.clone(), ids(MEMBERS), 7).with_begin(&pending, NOW);
        let under_way = |_: &ComponentId| MemberOutcome::UnderWay;
        let rollout = session.rollout.clone().unwrap();
        let open = advance(&session, &rollout.views(under_way), NOW).unwrap();
        let [first, .., last] = &ids(MEMBERS)[..] else { panic!("members") };
        assert_eq!(work_began_at(&open, first), Some(NOW));
        assert_eq!(work_began_at(&open, last), None);
        let whole = estimate(&open, &learned(), under_way, NOW).unwrap();
        let of_two = expected(&learned(), 2).unwrap();
        assert_eq!(whole.likely_end, Some(NOW.plus(2 * of_two.0 + Duration::from_secs(60))));
        assert_eq!(whole.late_end, Some(NOW.plus(2 * of_two.1 + Duration::from_secs(60))));

        let succeeded = |id: &ComponentId| match rollout.place(id) {
            Some(0) => MemberOutcome::Succeeded,
            _ => MemberOutcome::UnderWay,
        };
        let met = advance(&open, &open.rollout.clone().unwrap().views(succeeded), after(100)).unwrap();
        for now in [100, 130, 160] {
            let soaking = estimate(&met, &learned(), succeeded, after(now)).unwrap();
            assert_eq!(soaking.likely_end, Some(after(160).plus(of_two.0)), "the end stays while it soaks");
        }
    }
}
