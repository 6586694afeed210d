//! Stories of waits that arrive late, and of refusals.

use super::*;

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
    // Nodes of others are taken twice, and this one is refused again: it is to blame, in this generation and process.
    for is_blamed in [false, true] {
        scene.pass(5);
        scene.engine.transitions.taken(&PowerTransition::default(), scene.now.instant);
        scene.pass(10);
        scene.due(1);
        scene.answer(1, refused());
        assert_eq!(scene.facts.components["x1"].last_action_failed(), is_blamed);
    }
    assert!(scene.facts.components["x1"].last_action_failed());
}
