//! Stories of announcements: attempts are counted before they are sent, results recorded before the next poll.

use super::*;

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
