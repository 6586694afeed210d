//! Stories of transitions of other clients that begin in mid-term.

use domain::boot::power::Outlook;
use expect_test::expect;
use proto::power::{PowerReading, PowerState};

use super::{
    stories::{answer, check, found},
    *,
};

const OFF: Action = Action::PoweringOffGracefully;

#[test]
fn node_that_another_client_switches_is_left_out_of_the_call() {
    let mut scene = EngineScene::power_on(&["x1", "x2"]);
    scene.decide();
    scene.look = Some(Ok(answer(vec![record("t-0", OFF, &["x1"], true)])));
    scene.due(1);
    scene.look = Some(Ok(answer(vec![record("t-0", OFF, &["x1"], true)])));
    scene.decide();
    scene.tell("t-0 has ended", found(Vec::new()));
    check(
        &scene,
        &expect![[r#"
        nodes changed:
            begin T1 Prepared [x1, x2]
            step T1 in 0 s
        T1 is due:
            look before T1
            read x1
            decide on x1 in 0 s
            ask for foreign transitions in 5 s
            announce x2 attempt 1
            write T1 Sent [x2]
            decide on x1 in 0.1 s
            read x1
            ask for powering_on of x2
        nodes changed:
        t-0 has ended:
            read x1
            decide on x1 in 0 s
            ask for foreign transitions in 30 s
    "#]],
    );
    assert!(scene.engine.nodes.is_left_open("x1"), "a newer reading is needed");
}

#[test]
fn nothing_is_sent_while_the_nodes_of_another_transition_are_unknown() {
    let away = || Err(DriverFailure::Unreachable("PCS is away".to_owned()));
    let expanding = record("t-0", OFF, &[], false);
    let mut scene = EngineScene::power_on(&["x1"]);
    scene.decide();
    for look in [away(), Ok(answer(vec![expanding])), Ok(answer(Vec::new()))] {
        scene.look = Some(look);
        scene.due(1);
    }
    check(
        &scene,
        &expect![[r#"
        nodes changed:
            begin T1 Prepared [x1]
            step T1 in 0 s
        T1 is due:
            look before T1
            ask for foreign transitions after failure 1
            write T1 Prepared [x1]
            report x1 attempt 1 'waiting for PCS is away'
            step T1 after failure 1
        T1 is due:
            look before T1
            ask for foreign transitions in 5 s
            write T1 Prepared [x1]
            step T1 after failure 2
        T1 is due:
            look before T1
            ask for foreign transitions in 30 s
            announce x1 attempt 1 'waiting for PCS is away'
            write T1 Sent [x1]
            ask for powering_on of x1
    "#]],
    );
}

#[test]
fn look_of_before_a_slow_registry_is_repeated() {
    let mut scene = EngineScene::power_on(&["x1"]);
    scene.decide();
    let id = scene.id(1);
    let looked = EngineEvent::Looked { ids: vec![id], asked_at: scene.now.instant, outcome: Ok(()) };
    scene.pass(11);
    scene.tell("the registry has answered late", looked);
    scene.due(1);
    check(
        &scene,
        &expect![[r#"
        nodes changed:
            begin T1 Prepared [x1]
            step T1 in 0 s
        the registry has answered late:
            announce x1 attempt 1
            step T1 after failure 1
        T1 is due:
            announce x1 attempt 1
            write T1 Sent [x1]
            ask for powering_on of x1
    "#]],
    );
}

#[test]
fn transition_found_during_the_announcement_stops_the_call() {
    let mut scene = EngineScene::power_on(&["x1"]);
    scene.decide();
    let looked = EngineEvent::Looked { ids: vec![scene.id(1)], asked_at: scene.now.instant, outcome: Ok(()) };
    let commands = scene.engine.apply(looked, &scene.facts, scene.now);
    scene.tell("another look finds t-0", found(vec![record("t-0", OFF, &["x1"], true)]));
    let announced = commands.into_iter().find_map(|command| match command {
        EngineCommand::Announce { announcement, .. } => Some(announcement),
        _ => None,
    });
    let announcement = announced.unwrap();
    scene.tell("the registry answers", EngineEvent::Announced { announcement, stale: HashSet::new() });
    assert!(scene.engine.nodes.is_held_by_another("x1"));
    check(
        &scene,
        &expect![[r#"
        nodes changed:
            begin T1 Prepared [x1]
            step T1 in 0 s
        another look finds t-0:
            read x1
            decide on x1 in 0 s
            ask for foreign transitions in 5 s
        the registry answers:
            step T1 after failure 1
    "#]],
    );
}

#[test]
fn own_transition_without_an_answer_is_not_taken_for_another_clients() {
    let mut scene = EngineScene::power_on(&["x1"]);
    scene.decide();
    scene.due(1);
    let ours = || found(vec![record("t-1", Action::PoweringOn, &["x1"], true)]);
    scene.tell("the list has it before the answer", ours());
    assert!(!scene.engine.nodes.is_held_by_another("x1"));
    scene.answer(1, Err(DriverFailure::Ambiguous("no answer".to_owned())));
    scene.tell("in doubt", ours());
    assert!(!scene.engine.nodes.is_held_by_another("x1"));
}

#[test]
fn no_reading_counts_while_another_client_switches_the_node() {
    let state = |reading: PowerReading| PowerState {
        id: "x1".to_owned(),
        reading: reading.into(),
        ..PowerState::default()
    };
    let mut rows = String::new();
    for action in [Some(Action::PoweringOn), Some(OFF), Some(Action::PoweringOffForcefully), None] {
        let mut scene = EngineScene::power_on(&["x1"]);
        let one = UpstreamTransition { action, ..record("t-0", OFF, &["x1"], true) };
        scene.tell("it begins", found(vec![one.clone()]));
        let mut outlooks = [PowerReading::On, PowerReading::Off].map(|reading| {
            scene.engine.nodes.settle(&state(reading), &Options::default(), START);
            scene.engine.nodes.outlook(&state(reading), 1, &Options::default(), START)
        });
        assert_eq!(outlooks, [Outlook::Pending { until: None }; 2]);
        scene.tell("it has ended", found(vec![UpstreamTransition { open: false, ..one }]));
        assert!(scene.engine.nodes.is_left_open("x1"));
        outlooks = [PowerReading::On, PowerReading::Off]
            .map(|reading| scene.engine.nodes.outlook(&state(reading), 1, &Options::default(), START));
        let waits = outlooks.map(|outlook| match outlook {
            Outlook::Settled => "counts".to_owned(),
            Outlook::Pending { until } => format!("waits {:?}", until.map(|until| until.since(START))),
        });
        rows +=
            &format!("{}: then on {}, off {}\n", action.map_or("restart", Action::word), waits[0], waits[1]);
    }
    expect![[r#"
        powering_on: then on counts, off waits Some(10s)
        powering_off_gracefully: then on waits Some(300s), off counts
        powering_off_forcefully: then on waits Some(10s), off counts
        restart: then on counts, off counts
    "#]]
    .assert_eq(&rows);
}

#[test]
fn transition_that_began_and_ended_between_looks_needs_a_newer_reading() {
    let mut scene = EngineScene::power_on(&["x1"]);
    let over = UpstreamTransition { open: false, ..record("t-0", OFF, &["x1"], true) };
    scene.tell("it has ended", found(vec![over]));
    assert!(scene.engine.nodes.is_left_open("x1") && !scene.engine.nodes.is_held_by_another("x1"));
}

#[test]
fn restart_finds_the_same_transition_again() {
    let mut scene = EngineScene::power_on(&["x1"]);
    let open = || found(vec![record("t-0", OFF, &["x1"], true)]);
    scene.tell("it begins", open());
    let waits = |scene: &EngineScene| {
        scene.engine.waits_for_holder("x1", 1).map(|trouble| trouble.text().to_string())
    };
    let before = waits(&scene);
    let polls = PollSchedule::new(Duration::from_secs(1), Duration::from_secs(5), None);
    scene.engine = PowerEngine::new(&[], polls, scene.engine.upstream);
    scene.tell("the list of the next term", open());
    assert!(before.is_some());
    assert_eq!(waits(&scene), before, "with the same text");
}
