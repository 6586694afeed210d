//! Stories of transitions that the upstream has and the journal has not.

use super::*;

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
