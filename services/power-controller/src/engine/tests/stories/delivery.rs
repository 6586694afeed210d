//! Stories of delivery: from the intent to the answer of the upstream.

use super::*;

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
