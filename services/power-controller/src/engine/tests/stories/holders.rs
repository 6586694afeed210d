//! Stories of nodes that another transition holds.

use super::*;

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
            report x1 attempt 1 'waiting for the end of a reservation of the node at the power upstream; its holder is unknown or was given up'
            write T1 Finished [x1 Refused reserved 1]; T2 Prepared [x1 reserved 1]
            step T2 in 2 s
        T2 is due:
            announce x1 attempt 1 'waiting for the end of a reservation of the node at the power upstream; its holder is unknown or was given up'
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
