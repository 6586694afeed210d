//! Stories of polls, and of withdrawals.

use super::*;

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
    not_begun.record = UpstreamRecord::Found(record("t-1", Action::PoweringOffGracefully, &[], false));
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
