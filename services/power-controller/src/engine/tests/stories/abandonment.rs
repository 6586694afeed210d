//! Stories of transitions that an operator gives up.

use super::*;

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
