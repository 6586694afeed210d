//! Stories of transitions, from their first event to their last.

use domain::{
    boot::power::{Outlook, transition::TaskOutcome},
    core::{clock_offset::ClockOffset, trouble::TroubleKind},
};
use expect_test::{Expect, expect};
use proto::power::{PowerReading, PowerState};

use super::*;
use crate::driver::FoundTransitions;

pub(super) fn check(scene: &EngineScene, expected: &Expect) {
    expected.assert_eq(&scene.log);
}

#[test]
fn power_on_is_recorded_counted_sent_polled_and_closed() {
    let mut scene = EngineScene::power_on(&["x1", "x2"]);
    scene.decide();
    scene.due(1);
    scene.pass(1);
    scene.answer(1, Ok("t-1".to_owned()));
    scene.pass(1);
    scene.poll(1, Ok(progress("x1:succeeded x2:pending", false)));
    scene.poll(1, Ok(progress("x1:succeeded x2:no-power", true)));
    scene.due(1);
    check(
        &scene,
        &expect![[r#"
        nodes changed:
            begin T1 Prepared [x1, x2]
            step T1 in 0 s
        T1 is due:
            announce x1 attempt 1, x2 attempt 1
            write T1 Sent [x1, x2]
            ask for powering_on of x1 x2
        T1 is answered Ok("t-1"):
            write T1 Accepted [x1, x2]
            poll T1 in 1 s, failure 0
        T1 is due for a poll:
            poll t-1
        the answer is processed:
            x1 is On
            write T1 Accepted [x1 Succeeded, x2]
            poll T1 in 1 s, failure 0
        T1 is due for a poll:
            poll t-1
        the answer is processed:
            report x2 attempt 1 failed 'no-power'
            read x2
            write T1 Finished [x1 Succeeded, x2 Failed]
            read x1 x2
            decide on x1 x2 in 0 s
        T1 is due:
    "#]],
    );
}

#[test]
fn every_answer_to_a_call_has_its_consequence() {
    let words = || "words".to_owned();
    let mut log = String::new();
    for answer in [
        Err(DriverFailure::Refused(words())),
        Err(DriverFailure::TooLarge(words())),
        Err(DriverFailure::Denied(words())),
        Err(DriverFailure::Unreachable(words())),
        Err(DriverFailure::Ambiguous(words())),
    ] {
        let mut scene = EngineScene::power_on(&["x1", "x2"]);
        scene.decide();
        scene.due(1);
        scene.log.clear();
        scene.answer(1, answer);
        log += &scene.log;
    }
    expect![[r#"
        T1 is answered Err(Refused("words")):
            write T2 Prepared [x1]; T3 Prepared [x2]; without T1
            step T2 T3 in 0 s
        T1 is answered Err(TooLarge("words")):
            write T2 Prepared [x1]; T3 Prepared [x2]; without T1
            step T2 T3 in 0 s
        T1 is answered Err(Denied("words")):
            write T1 Prepared [x1, x2]
            report x1 attempt 1 'waiting for words', x2 attempt 1 'waiting for words'
            step T1 after failure 1
        T1 is answered Err(Unreachable("words")):
            write T1 Prepared [x1, x2]
            report x1 attempt 1 'waiting for words', x2 attempt 1 'waiting for words'
            step T1 after failure 1
        T1 is answered Err(Ambiguous("words")):
            write T1 Unknown [x1, x2]
            report x1 attempt 1 'waiting for words', x2 attempt 1 'waiting for words'
            step T1 in 0 s
    "#]]
    .assert_eq(&log);
}

#[test]
fn members_that_must_wait_or_have_moved_on_hold_up_nobody() {
    let mut scene = EngineScene::power_on(&["x1", "x2", "x3", "x4"]);
    scene.decide();
    scene.due(1);
    scene.answer(1, Err(DriverFailure::Unreachable("away".to_owned())));
    scene.log.clear();
    scene.change("x1", |node| node.inventory.locked = true);
    scene.change("x2", |node| node.generation = 2);
    scene.stale.insert("x4".to_owned());
    scene.due(1);
    check(
        &scene,
        &expect![[r#"
        T1 is due:
            announce x2 attempt 1, x3 attempt 1 'waiting for away', x4 attempt 1 'waiting for away'
            write T1 Sent [x3]; T2 Prepared [x1]
            decide on x2 x4 in 0.1 s
            read x2 x4
            step T2 after failure 2
            ask for powering_on of x3
    "#]],
    );
}

#[test]
fn answers_about_transitions_that_are_over_change_nothing() {
    let mut scene = EngineScene::power_on(&["x1"]);
    scene.accepted();
    let id = || TransitionId::from("over");
    let answer = |now: PointInTime| PollAnswer {
        id: id(),
        began: now.instant,
        asked_at: now.at,
        clock: None,
        answer: Ok(progress("x1:succeeded", true)),
    };
    let found =
        FoundTransitions { accepted: vec![record("t-1", Action::PoweringOn, &["x1"], true)], clock: None };
    let nodes = HashSet::from(["x1".to_owned()]);
    let purpose = HolderPurpose::End { id: id(), error: String::new() };
    for event in [
        EngineEvent::Due(vec![id()]),
        EngineEvent::Started { id: id(), answer: Ok("t-2".to_owned()) },
        EngineEvent::Searched {
            ids: vec![id()],
            asked_at: scene.now.instant,
            answer: Ok(found),
            finished: Vec::new(),
        },
        EngineEvent::HoldersFound {
            search: HolderSearch { nodes, purpose },
            answer: Ok(Vec::new()),
            abandoned: HashSet::new(),
        },
        EngineEvent::HoldersPolled { id: id(), ended: HashSet::new() },
        EngineEvent::Followed(id()),
        EngineEvent::PollDue(id()),
        EngineEvent::Withdrawn { id: id(), answer: Ok(()) },
        EngineEvent::Polled(answer(scene.now)),
        EngineEvent::Heard(vec![answer(scene.now)]),
        EngineEvent::Abandoned(Arc::new(PowerTransition { id: id().to_string(), ..scene.transition(1) })),
        // The transition that is not over, in a state in which the answer has no meaning.
        EngineEvent::Started { id: scene.id(1), answer: Ok("t-2".to_owned()) },
        EngineEvent::HoldersPolled { id: scene.id(1), ended: HashSet::new() },
    ] {
        scene.tell("late", event);
    }
    assert_eq!(scene.log.replace("late:\n", ""), "");
    assert_eq!(scene.transition(1).upstream_id, "t-1");
}

/// Returns a power-on in doubt.
fn in_doubt() -> EngineScene {
    let mut scene = EngineScene::power_on(&["x1"]);
    scene.decide();
    scene.due(1);
    scene.answer(1, Err(DriverFailure::Ambiguous("no answer".to_owned())));
    scene.log.clear();
    scene
}

/// Searches for the transition and tells what was found.
fn search(scene: &mut EngineScene, accepted: Vec<UpstreamTransition>) {
    scene.due(1);
    let (ids, asked_at) = (vec![scene.id(1)], scene.now.instant);
    let clock = ClockOffset::measure(START, START, START, Duration::from_millis(1));
    let answer = Ok(FoundTransitions { accepted, clock });
    scene.tell("the search ends", EngineEvent::Searched { ids, asked_at, answer, finished: Vec::new() });
}

#[test]
fn doubt_ends_by_adoption_or_after_a_quiet_period() {
    let mut found = in_doubt();
    search(&mut found, vec![record("t-7", Action::PoweringOn, &[], false)]);
    search(&mut found, vec![record("t-6", Action::PoweringOn, &["x2"], true)]);
    search(&mut found, vec![record("t-7", Action::PoweringOn, &["x1"], true)]);
    let mut missing = in_doubt();
    search(&mut missing, Vec::new());
    missing.pass(2);
    search(&mut missing, Vec::new());
    expect![[r#"
        T1 is due:
            search for T1
        the search ends:
            step T1 after failure 1
        T1 is due:
            search for T1
        the search ends:
            step T1 in 2 s
        T1 is due:
            search for T1
        the search ends:
            write T1 Accepted [x1]
            report x1 attempt 1
            poll T1 in 1 s, failure 0

        T1 is due:
            search for T1
        the search ends:
            step T1 in 2 s
        T1 is due:
            search for T1
        the search ends:
            write T1 Prepared [x1]
            step T1 in 0 s
    "#]]
    .assert_eq(&format!("{}\n{}", found.log, missing.log));
}

#[test]
fn restart_puts_sent_transitions_in_doubt_and_continues_the_others() {
    let member =
        |id: &str| TransitionMember { id: id.into(), generation: 1, attempt: 1, ..Default::default() };
    let recorded = |id: &str, delivery: TransitionDelivery| {
        let prepared = convert::prepared(Action::PoweringOn, vec![member(id)], START);
        Arc::new(PowerTransition { id: id.to_owned(), delivery, ..prepared })
    };
    let mut scene = EngineScene::power_on(&["prepared", "sent", "accepted", "finished"]);
    let recorded = [
        recorded("prepared", TransitionDelivery::Prepared),
        recorded("sent", TransitionDelivery::Sent),
        recorded("accepted", TransitionDelivery::Accepted),
        recorded("finished", TransitionDelivery::Finished),
    ];
    let mut take_over = |name: &str, one: &Arc<PowerTransition>, is_told| {
        let polls = PollSchedule::new(Duration::from_secs(1), Duration::from_secs(5), None);
        scene.engine = PowerEngine::new(&[Arc::clone(one)], polls, scene.engine.upstream);
        scene.tell(name, EngineEvent::TookOver { follows_another: false, is_told, is_after_loss: false });
    };
    take_over("prepared, counts unknown", &recorded[0], false);
    recorded.iter().for_each(|one| take_over(&one.id, one, true));
    check(
        &scene,
        &expect![[r#"
            prepared, counts unknown:
                write T1 Unknown [prepared]
                step T1 in 0 s
                ask for foreign transitions in 0 s
            prepared:
                step T1 in 0 s
                ask for foreign transitions in 0 s
            sent:
                write T2 Unknown [sent]
                step T2 in 0 s
                ask for foreign transitions in 0 s
            accepted:
                poll T3 in 0 s, failure 0
                ask for foreign transitions in 0 s
            finished:
                ask for foreign transitions in 0 s
        "#]],
    );
}

/// Returns the answer of the upstream with these transitions that are not on record. Its clock is right.
pub(super) fn answer(found: Vec<UpstreamTransition>) -> ForeignAnswer {
    let clock = ClockOffset::measure(START, START, START, Duration::ZERO);
    let ids = |ended: bool| {
        let listed = found.iter().filter(|one| !ended || !one.open);
        Arc::new(listed.map(|one| one.id.clone()).collect::<HashSet<_>>())
    };
    ForeignAnswer { listed: ids(false), ended: ids(true), found, clock }
}

pub(super) fn found(accepted: Vec<UpstreamTransition>) -> EngineEvent {
    EngineEvent::ForeignFound(Ok(answer(accepted)))
}

/// Returns whether an effect may still come at a node that is on.
fn outlook_while_on(scene: &EngineScene, id: &str) -> Outlook {
    let state = PowerState { id: id.to_owned(), reading: PowerReading::On.into(), ..PowerState::default() };
    scene.engine.nodes.outlook(&state, 1, &Options::default(), START)
}

#[test]
fn effects_of_transitions_that_ended_before_the_term_are_awaited() {
    let mut scene = EngineScene::power_off(&["alone", "ours-before", "ours-after", "ours-refused", "twice"]);
    let ours = |id: &str, age: u64, outcome| {
        let member =
            TransitionMember { id: id.into(), generation: 1, attempt: 1, outcome, ..Default::default() };
        Arc::new(PowerTransition {
            delivery: TransitionDelivery::Finished,
            upstream_id: format!("t-{id}"),
            sent_at: Some(START.minus(Duration::from_secs(age))),
            ..convert::prepared(Action::PoweringOn, vec![member], START)
        })
    };
    let recorded = [
        ours("ours-before", 90, TaskOutcome::Succeeded),
        ours("ours-after", 30, TaskOutcome::Succeeded),
        ours("ours-refused", 30, TaskOutcome::Refused),
    ];
    let polls = PollSchedule::new(Duration::from_secs(1), Duration::from_secs(5), None);
    scene.engine = PowerEngine::new(&recorded, polls, scene.engine.upstream);
    let ended = |id: &str, action, nodes: &[&str], age: u64| UpstreamTransition {
        open: false,
        at: START.minus(Duration::from_secs(age)),
        ..record(id, action, nodes, true)
    };
    let all = ["alone", "ours-before", "ours-after", "ours-refused", "twice"];
    let off = ended("off", Action::PoweringOffGracefully, &all, 60);
    let on = ended("on", Action::PoweringOn, &["twice"], 40);
    scene.tell("two have ended", found(vec![on, off]));
    let outlook = |id: &str| {
        let left_open = scene.engine.nodes.is_left_open(id);
        format!("{id}: {:?}, to be read: {left_open}\n", outlook_while_on(&scene, id))
    };
    let outlooks = all.map(outlook).concat();
    scene.log += &outlooks;
    check(
        &scene,
        &expect![[r#"
            two have ended:
                read alone ours-before ours-refused twice
                decide on alone ours-before ours-refused twice in 0 s
                read twice
                decide on twice in 0 s
                ask for foreign transitions in 30 s
            alone: Pending { until: Some(Timestamp(1732119300000)) }, to be read: true
            ours-before: Pending { until: Some(Timestamp(1732119300000)) }, to be read: true
            ours-after: Settled, to be read: false
            ours-refused: Pending { until: Some(Timestamp(1732119300000)) }, to be read: true
            twice: Settled, to be read: true
        "#]],
    );
}

#[test]
fn what_the_upstream_works_on_without_a_record_is_waited_for() {
    let mut scene = EngineScene::power_off(&["x1", "x2"]);
    scene.engine.foreign = ForeignTransitions::default();
    let begins = EngineEvent::TookOver { follows_another: false, is_told: true, is_after_loss: true };
    scene.tell("the term begins after a loss", begins);
    let away = || Err(DriverFailure::Unreachable("PCS is away".to_owned()));
    scene.tell("no answer", EngineEvent::ForeignFound(away()));
    let unknown = scene.engine.foreign.listing();
    assert_eq!(unknown, ForeignListing::Failed("PCS is away".into()));
    let open = || record("t-0", Action::PoweringOffGracefully, &["x1", "x9"], true);
    let later = || record("t-1", Action::PoweringOffGracefully, &["x2"], true);
    scene.tell("t-0 is open", found(vec![open()]));
    let waits = |scene: &EngineScene, id: &str| {
        scene.engine.waits_for_holder(id, 1).map(|trouble| trouble.text().to_string())
    };
    let text = "waiting for transition t-0 of the power upstream to end, which is not on record here and \
                began at 2024-11-20T16:10:00Z";
    assert_eq!((waits(&scene, "x1").as_deref(), waits(&scene, "x2")), (Some(text), None));
    scene.tell("no answer", EngineEvent::ForeignFound(away()));
    assert_eq!(scene.engine.foreign.listing(), ForeignListing::Known);
    scene.tell("t-1 began in this term", found(vec![open(), later()]));
    assert!(waits(&scene, "x2").is_some_and(|text| text.contains(" t-1 ")));
    scene.tell("t-0 has ended", found(vec![later()]));
    assert_eq!(waits(&scene, "x1"), None);
    assert!(scene.engine.nodes.is_left_open("x1"));
    check(
        &scene,
        &expect![[r#"
            the term begins after a loss:
                ask for foreign transitions in 2 s
            no answer:
                ask for foreign transitions after failure 1
            t-0 is open:
                read x1
                decide on x1 in 0 s
                ask for foreign transitions in 5 s
            no answer:
                ask for foreign transitions after failure 1
            t-1 began in this term:
                read x2
                decide on x2 in 0 s
                ask for foreign transitions in 5 s
            t-0 has ended:
                read x1
                decide on x1 in 0 s
                ask for foreign transitions in 5 s
        "#]],
    );
}

#[test]
fn a_transition_abandoned_while_the_upstream_is_asked_is_not_waited_for() {
    let mut scene = EngineScene::power_off(&["x1"]);
    let action = Action::PoweringOffGracefully;
    let marked = PowerTransition::of_another(Some(action), "t-0", vec!["x1".to_owned()]);
    scene.tell("t-0 is abandoned", EngineEvent::Abandoned(Arc::new(marked)));
    scene.tell("the upstream has it", found(vec![record("t-0", action, &["x1"], true)]));
    assert!(scene.engine.waits_for_holder("x1", 1).is_none());
}

#[test]
fn an_abandoned_transition_of_another_client_is_not_waited_for() {
    let mut scene = EngineScene::power_off(&["x1", "x2"]);
    let open = |id: &str, node: &str| record(id, Action::PoweringOffGracefully, &[node], true);
    scene.tell("two are open", found(vec![open("t-0", "x1"), open("t-1", "x2")]));
    let of_another = |id: &str| {
        Arc::new(PowerTransition::of_another(Some(Action::PoweringOffGracefully), id, vec!["x1".to_owned()]))
    };
    scene.tell("an unknown one is abandoned", EngineEvent::Abandoned(of_another("t-9")));
    scene.tell("t-0 is abandoned", EngineEvent::Abandoned(of_another("t-0")));
    assert_eq!(outlook_while_on(&scene, "x1"), Outlook::Settled, "no effect of it is awaited");
    assert!(scene.engine.nodes.is_left_open("x1"), "only a reading from after that counts");
    let waits = |id: &str| scene.engine.waits_for_holder(id, 1).is_some();
    assert_eq!((waits("x1"), waits("x2")), (false, true));
    check(
        &scene,
        &expect![[r#"
            two are open:
                read x1
                decide on x1 in 0 s
                read x2
                decide on x2 in 0 s
                ask for foreign transitions in 5 s
            an unknown one is abandoned:
            t-0 is abandoned:
                read x1
                decide on x1 in 0 s
        "#]],
    );
}

#[test]
fn failed_polls_are_shown_and_nodes_are_read_until_polls_succeed() {
    let mut scene = EngineScene::power_on(&["x1"]);
    scene.accepted();
    let silent = || Err(DriverFailure::Unreachable("PCS is away".to_owned()));
    scene.poll(1, silent());
    scene.poll(1, silent());
    let waits = |scene: &EngineScene| scene.engine.waits_for_holder("x1", 2).unwrap().text().to_string();
    assert_eq!(
        waits(&scene),
        "waiting for transition t-1 of the power upstream to end; there is no answer about it: PCS is away"
    );
    scene.poll(1, Ok(progress("", false)));
    assert_eq!(waits(&scene), "waiting for transition t-1 of the power upstream to end");
    check(
        &scene,
        &expect![[r#"
        T1 is due for a poll:
            poll t-1
        the answer is processed:
            read x1
            poll T1 in 2 s, failure 1
        T1 is due for a poll:
            poll t-1
        the answer is processed:
            report x1 attempt 1 'no results from PCS is away'
            poll T1 in 3 s, failure 2
        T1 is due for a poll:
            poll t-1
        the answer is processed:
            report x1 attempt 1
            poll T1 in 4 s, failure 0
    "#]],
    );
}

#[test]
fn withdrawal_is_shown_right_after_another_trouble() {
    let mut scene = EngineScene::power_on(&["x1"]);
    scene.accepted();
    scene.poll(1, Ok(progress("x1:pending", false)));
    scene.pass(TASK_DEADLINE.as_secs() + 60);
    let failure = DriverFailure::Unreachable("PCS is away".to_owned());
    let transition = scene.transition(1);
    let earlier = Trouble::no_results_from(&failure);
    scene.engine.transitions.show(&transition.id, &earlier, scene.now.instant);
    scene.log.clear();
    scene.tell("T1 is due for a poll", EngineEvent::PollDue(scene.id(1)));
    check(
        &scene,
        &expect![[r#"
        T1 is due for a poll:
            write T1 Accepted [x1], withdrawn
            report x1 attempt 1 'no results from transition t-1 of the power upstream: its withdrawal was requested at 2024-11-20T16:12:01Z, and it is not known to have ended'
            withdraw t-1
    "#]],
    );
}

#[test]
fn shutdown_that_never_begins_is_withdrawn_when_its_own_time_is_over() {
    let mut scene = EngineScene::power_off(&["x1"]);
    scene.facts.options.max_power_off_wait_time = 10;
    scene.accepted();
    let mut not_begun = progress("", false);
    not_begun.record = Some(record("t-1", Action::PoweringOffGracefully, &[], false));
    scene.poll(1, Ok(not_begun.clone()));
    assert!(!scene.engine.transitions.is_read_back(&scene.id(1)), "its time is not over");
    scene.pass(11);
    scene.poll(1, Ok(not_begun.clone()));
    scene.log.clear();
    scene.poll(1, Ok(not_begun));
    scene.tell("it is withdrawn", EngineEvent::Withdrawn { id: scene.id(1), answer: Ok(()) });
    let waits = scene.engine.waits_for_holder("x1", 2).unwrap();
    let text = "waiting for transition t-1 of the power upstream to end; its withdrawal was requested at \
                2024-11-20T16:10:12Z";
    assert_eq!(waits.text().as_ref(), text, "a newer generation shows it too");
    check(
        &scene,
        &expect![[r#"
        T1 is due for a poll:
            write T1 Accepted [x1], withdrawn
            report x1 attempt 1 'no results from transition t-1 of the power upstream: its withdrawal was requested at 2024-11-20T16:10:12Z, and it is not known to have ended'
            withdraw t-1
        the answer is processed:
            poll T1 in 6 s, failure 0
        it is withdrawn:
            poll t-1
    "#]],
    );
}

/// Ends the transition because its node is reserved, and tells who holds the node.
fn reserved(abandoned: &[&str]) -> EngineScene {
    let mut scene = EngineScene::power_on(&["x1"]);
    scene.accepted();
    let id = scene.id(1);
    scene.engine.apply(EngineEvent::PollDue(Arc::clone(&id)), &scene.facts, scene.now);
    let (began, asked_at) = (scene.now.instant, scene.now.at);
    let answer = PollAnswer { id, began, asked_at, clock: None, answer: Ok(progress("x1:reserved", true)) };
    let asked = scene.engine.apply(EngineEvent::Heard(vec![answer]), &scene.facts, scene.now);
    let search = asked.into_iter().find_map(|command| match command {
        EngineCommand::Ask(UpstreamCall::Holders(search)) => Some(search),
        _ => None,
    });
    let answer = Ok(vec![record("t-0", Action::PoweringOffGracefully, &["x1"], true)]);
    let abandoned = abandoned.iter().map(|id| (*id).to_owned()).collect();
    let search = search.unwrap();
    scene.tell("t-0 holds x1", EngineEvent::HoldersFound { search, answer, abandoned });
    scene.due(2);
    scene
}

#[test]
fn known_holder_is_waited_for_and_an_abandoned_one_is_not() {
    let mut log = String::new();
    for abandoned in [&[][..], &["t-0"]] {
        let scene = reserved(abandoned);
        log += &format!("abandoned: {abandoned:?}\n{}", scene.log);
        assert_eq!(scene.facts.component("x1").unwrap().attempts(Action::PoweringOn), 1);
        assert!(!scene.facts.component("x1").unwrap().last_action_failed());
    }
    expect![[r#"
        abandoned: []
        t-0 holds x1:
            report x1 attempt 1 'waiting for transition t-0 of the power upstream, which holds the node'
            write T1 Finished [x1 Refused held by t-0]; T2 Prepared [x1 held by t-0]
            step T2 in 1 s
        T2 is due:
            poll holders {"t-0"}
        abandoned: ["t-0"]
        t-0 holds x1:
            report x1 attempt 1 'waiting for the unknown holder of a reservation of the node at the power upstream'
            write T1 Finished [x1 Refused reserved 1]; T2 Prepared [x1 reserved 1]
            step T2 in 2 s
        T2 is due:
            announce x1 attempt 1 'waiting for the unknown holder of a reservation of the node at the power upstream'
            write T2 Sent [x1 reserved 1]
            ask for powering_on of x1
    "#]].assert_eq(&log);
}

#[test]
fn released_members_do_not_wait_for_held_ones() {
    let mut scene = EngineScene::power_on(&["x1", "x2"]);
    scene.decide();
    let mut transition = scene.transition(1);
    for (member, holder) in transition.members.iter_mut().zip(["a", "b"]) {
        holder.clone_into(&mut member.held_by);
    }
    scene.engine.transitions.put(transition);
    scene.log.clear();
    for ended in [&[][..], &["a"], &["b"]] {
        let ended = ended.iter().map(|id| (*id).to_owned()).collect();
        let waiting = scene.ids.len();
        scene.tell("holders were polled", EngineEvent::HoldersPolled { id: scene.id(waiting), ended });
    }
    check(
        &scene,
        &expect![[r#"
        holders were polled:
            step T1 in 1 s
        holders were polled:
            write T2 Prepared [x1]; T3 Prepared [x2 held by b]; without T1
            step T2 in 0 s
            step T3 in 1 s
        holders were polled:
            write T3 Prepared [x2]
            step T3 in 0 s
    "#]],
    );
}

#[test]
fn transition_abandoned_during_its_announcement_is_not_sent() {
    let mut scene = EngineScene::power_on(&["x1"]);
    scene.decide();
    let looked = EngineEvent::Looked { ids: vec![scene.id(1)], asked_at: scene.now.instant, outcome: Ok(()) };
    let commands = scene.engine.apply(looked, &scene.facts, scene.now);
    let announcement = commands.into_iter().find_map(|command| match command {
        EngineCommand::Announce { announcement, .. } => Some(announcement),
        _ => None,
    });
    let mut marked = scene.transition(1);
    marked.abandoned_at = Some(scene.now.at);
    scene.log.clear();
    scene.tell("an operator abandons T1", EngineEvent::Abandoned(Arc::new(marked)));
    scene.due(1);
    let answer = EngineEvent::Announced { announcement: announcement.unwrap(), stale: HashSet::new() };
    scene.tell("the registry answers", answer);
    assert!(scene.engine.transitions.get(&scene.id(1)).is_none());
    check(
        &scene,
        &expect![[r#"
        an operator abandons T1:
            step T1 in 0 s
        T1 is due:
        the registry answers:
            report x1 attempt 1 failed
            write T1 Finished [x1]
            read x1
            decide on x1 in 0 s
    "#]],
    );
}

#[test]
fn transition_is_announced_once_at_a_time() {
    let mut scene = EngineScene::power_on(&["x1"]);
    scene.decide();
    let step = |scene: &mut EngineScene| {
        scene.engine.apply(EngineEvent::Due(vec![scene.id(1)]), &scene.facts, scene.now)
    };
    let looks = step(&mut scene);
    assert!(matches!(looks[..], [EngineCommand::Ask(UpstreamCall::Look { .. })]), "{looks:?}");
    assert!(step(&mut scene).is_empty(), "the upstream has not answered yet");
    let looked = EngineEvent::Looked { ids: vec![scene.id(1)], asked_at: scene.now.instant, outcome: Ok(()) };
    let mut commands = scene.engine.apply(looked, &scene.facts, scene.now);
    assert!(step(&mut scene).is_empty(), "the registry has not answered yet");
    let Some(EngineCommand::Announce { announcement, .. }) = commands.pop() else { panic!("{commands:?}") };
    let stale = HashSet::from(["x1".to_owned()]);
    scene.log.clear();
    scene.tell("the registry refuses", EngineEvent::Announced { announcement, stale });
    assert!(step(&mut scene).is_empty(), "the transition is gone");
    check(
        &scene,
        &expect![[r#"
        the registry refuses:
            write without T1
            decide on x1 in 0.1 s
            read x1
    "#]],
    );
}

#[test]
fn transition_is_not_polled_before_its_last_results_are_on_record() {
    let mut scene = EngineScene::power_on(&["x1", "x2"]);
    scene.accepted();
    let id = scene.id(1);
    let (began, asked_at) = (scene.now.instant, scene.now.at);
    let poll_due = |scene: &mut EngineScene| {
        scene.pass(2);
        scene.engine.apply(EngineEvent::PollDue(Arc::clone(&id)), &scene.facts, scene.now)
    };
    assert!(matches!(poll_due(&mut scene)[..], [EngineCommand::Ask(UpstreamCall::Poll { .. })]));
    let answer = Ok(progress("x1:no-power x2:pending", false));
    let answer = PollAnswer { id: Arc::clone(&id), began, asked_at, clock: None, answer };
    let commands = scene.engine.apply(EngineEvent::Heard(vec![answer]), &scene.facts, scene.now);
    assert!(
        matches!(poll_due(&mut scene)[..], [EngineCommand::Poll { .. }]),
        "the report and the write take time"
    );
    let recorded = commands.into_iter().find_map(|command| match command {
        EngineCommand::Tell(event) => Some(event),
        _ => None,
    });
    scene.engine.apply(recorded.unwrap(), &scene.facts, scene.now);
    assert!(matches!(poll_due(&mut scene)[..], [EngineCommand::Ask(UpstreamCall::Poll { .. })]));
}

#[test]
fn abandoned_transition_ends_whatever_its_state() {
    let mut log = String::new();
    for state in ["prepared", "in doubt", "accepted"] {
        let mut scene = if state == "in doubt" { in_doubt() } else { EngineScene::power_on(&["x1"]) };
        match state {
            "prepared" => scene.decide(),
            "accepted" => scene.accepted(),
            _ => {}
        }
        let mut marked = scene.transition(1);
        marked.abandoned_at = Some(scene.now.at);
        scene.log = format!("{state}\n");
        scene.tell("an operator abandons T1", EngineEvent::Abandoned(Arc::new(marked)));
        match state {
            "accepted" => scene.tell("T1 is due for a poll", EngineEvent::PollDue(scene.id(1))),
            _ => scene.due(1),
        }
        assert!(scene.engine.transitions.get(&scene.id(1)).is_none());
        log += &scene.log;
    }
    expect![[r#"
        prepared
        an operator abandons T1:
            step T1 in 0 s
        T1 is due:
            write T1 Finished [x1]
            read x1
            decide on x1 in 0 s
        in doubt
        an operator abandons T1:
            step T1 in 0 s
        T1 is due:
            report x1 attempt 1 failed
            write T1 Finished [x1]
            read x1
            decide on x1 in 0 s
        accepted
        an operator abandons T1:
            poll T1 in 0 s, failure 0
        T1 is due for a poll:
            give up t-1
            write T1 Finished [x1]
            read x1
            decide on x1 in 0 s
    "#]]
    .assert_eq(&log);
}

/// Returns a shutdown that the upstream never got, with the mark of an operator who gave it up. `in_doubt`: the upstream
/// may have got it; `restart`: another process goes on with it.
fn given_up(in_doubt: bool, restart: bool) -> EngineScene {
    let mut scene = EngineScene::power_off(&["x1"]);
    scene.decide();
    scene.due(1);
    let away = || "PCS is away".to_owned();
    let failure =
        if in_doubt { DriverFailure::Ambiguous(away()) } else { DriverFailure::Unreachable(away()) };
    scene.answer(1, Err(failure));
    let marked = Arc::new(PowerTransition { abandoned_at: Some(scene.now.at), ..scene.transition(1) });
    if restart {
        let polls = PollSchedule::new(Duration::from_secs(1), Duration::from_secs(5), None);
        scene.engine = PowerEngine::new(&[Arc::clone(&marked)], polls, scene.engine.upstream);
        let begins = EngineEvent::TookOver { follows_another: false, is_told: true, is_after_loss: false };
        scene.tell("another term begins", begins);
        scene.tell("transitions are listed", found(Vec::new()));
    }
    scene.tell("T1 is abandoned", EngineEvent::Abandoned(marked));
    scene
}

/// Reads the power of the node, and lets a second pass before.
fn read(scene: &mut EngineScene) {
    scene.pass(1);
    let id = ComponentId::parse("x1").unwrap();
    scene.engine.nodes.read(&id, scene.now.instant, None, None);
}

#[test]
fn an_unsent_shutdown_that_was_given_up_is_asked_for_again_and_never_forced() {
    for (in_doubt, restart) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut scene = given_up(in_doubt, restart);
        scene.due(1);
        let component = &scene.facts.components["x1"];
        assert!(component.last_action_failed() && component.power.trouble.is_none(), "{in_doubt} {restart}");
        read(&mut scene);
        scene.pass(1_000);
        scene.log.clear();
        scene.decide();
        scene.due(2);
        check(
            &scene,
            &expect![[r#"
                nodes changed:
                    begin T2 Prepared [x1]
                    step T2 in 0 s
                T2 is due:
                    announce x1 attempt 2
                    write T2 Sent [x1]
                    ask for powering_off_gracefully of x1
            "#]],
        );
    }
}

#[test]
fn a_wait_that_arrives_after_the_end_of_its_transition_goes_away() {
    for (restart, kind, failed) in [
        (false, TroubleKind::Waiting, true),
        (true, TroubleKind::Waiting, true),
        (false, TroubleKind::NoResults, true),
    ] {
        let mut scene = given_up(false, restart);
        scene.due(1);
        let late = Trouble::own(kind, "waiting for transition t-1 of the power upstream to end");
        scene.change("x1", |one| one.power.trouble = Some(late.into()));
        scene.log.clear();
        scene.decide();
        let component = &scene.facts.components["x1"];
        assert_eq!((component.power.trouble.as_ref(), component.last_action_failed()), (None, failed));
        assert!(scene.log.contains("report x1 attempt 1 failed\n"), "{}", scene.log);
        scene.log.clear();
        scene.decide();
        assert!(!scene.log.contains("report"), "once: {}", scene.log);
    }
}

#[test]
fn a_wait_for_an_attempt_that_is_open_or_was_taken_fails_nothing() {
    let mut scene = EngineScene::power_off(&["x1"]);
    scene.decide();
    scene.due(1);
    scene.answer(1, Err(DriverFailure::Unreachable("PCS is away".to_owned())));
    scene.log.clear();
    scene.decide();
    assert!(!scene.log.contains("report"), "it is open: {}", scene.log);
    scene.due(1);
    scene.answer(1, Ok("t-1".to_owned()));
    scene.poll(1, Ok(progress("x1:succeeded", true)));
    // The record of the component arrives late.
    scene.change("x1", |one| one.power.trouble = Some(Trouble::waiting_for("PCS is away").into()));
    scene.log.clear();
    scene.decide();
    assert!(scene.log.contains("report x1 attempt 1\n"), "it has not failed: {}", scene.log);
}

#[test]
fn a_service_that_refuses_everybody_spends_no_attempt_of_a_lone_node() {
    let refused = || Err(DriverFailure::Refused("no".to_owned()));
    let mut scene = EngineScene::power_off(&["x1"]);
    scene.decide();
    for _ in 0..20 {
        scene.due(1);
        scene.answer(1, refused());
        scene.pass(30);
    }
    let waiting = &scene.facts.components["x1"];
    assert_eq!((waiting.attempts(Action::PoweringOffGracefully), waiting.last_action_failed()), (1, false));
    assert!(waiting.waits_for_power_upstream());
    // Another client's node is taken, and this one is refused again: it is to blame, in this generation and process.
    scene.engine.transitions.taken(&PowerTransition::default(), scene.now.instant);
    scene.pass(1);
    scene.due(1);
    scene.answer(1, refused());
    assert!(scene.facts.components["x1"].last_action_failed());
}
