use std::time::Duration;

use domain::boot::component::{
    BootPreparation, ComponentEvaluation, ComponentInventory, ComponentPower, ComponentPreparation,
    ComponentWish, EventStats, InventoryPresence, LastAction, PauseMark, Phase, Status,
};
use expect_test::expect;

use super::*;

const ON: Action = Action::PoweringOn;
const OFF: Action = Action::PoweringOffGracefully;
const FORCE: Action = Action::PoweringOffForcefully;

fn id(text: &str) -> ComponentId {
    ComponentId::parse(text).unwrap()
}

fn attempt(generation: u64, action: Action, number: u32) -> PowerAttempt {
    PowerAttempt { generation, action, number }
}

fn member(id: &str) -> TransitionMember {
    TransitionMember { id: id.into(), generation: 1, attempt: 1, ..TransitionMember::default() }
}

fn names(members: &[TransitionMember]) -> Vec<&str> {
    members.iter().map(|member| member.id.as_str()).collect()
}

#[test]
fn attempts_are_put_together_by_action_in_sorted_batches() {
    let attempts = [("x3", ON), ("x1", OFF), ("x2", ON), ("x1b", ON), ("x0", FORCE)];
    let mut seen = String::new();
    for most in [0, 2, 1, 131_071] {
        let options = Options { max_component_batch_size: most, ..Options::default() };
        let attempts = attempts.map(|(name, action)| (id(name), attempt(1, action, 1))).to_vec();
        for (action, members) in batches(attempts, &options, 2500) {
            seen += &format!("at most {most}: {} {:?}\n", action.word(), names(&members));
        }
    }
    expect![[r#"
        at most 0: powering_off_forcefully ["x0"]
        at most 0: powering_off_gracefully ["x1"]
        at most 0: powering_on ["x1b", "x2", "x3"]
        at most 2: powering_off_forcefully ["x0"]
        at most 2: powering_off_gracefully ["x1"]
        at most 2: powering_on ["x1b", "x2"]
        at most 2: powering_on ["x3"]
        at most 1: powering_off_forcefully ["x0"]
        at most 1: powering_off_gracefully ["x1"]
        at most 1: powering_on ["x1b"]
        at most 1: powering_on ["x2"]
        at most 1: powering_on ["x3"]
        at most 131071: powering_off_forcefully ["x0"]
        at most 131071: powering_off_gracefully ["x1"]
        at most 131071: powering_on ["x1b", "x2", "x3"]
    "#]]
    .assert_eq(&seen);
}

#[test]
fn a_transition_is_never_larger_than_upstreams_take() {
    let attempts: Vec<_> = (0..10_000).map(|n| (id(&format!("x{n:05}")), attempt(1, ON, 1))).collect();
    for (most, takes, sizes) in [
        (0, 2500, vec![2500; 4]),
        (2800, 2500, vec![2500; 4]),
        (2800, 5000, vec![2800, 2800, 2800, 1600]),
        (2000, 2500, vec![2000; 5]),
        (0, 5000, vec![5000; 2]),
    ] {
        let options = Options { max_component_batch_size: most, ..Options::default() };
        let made: Vec<_> =
            batches(attempts.clone(), &options, takes).iter().map(|(_, all)| all.len()).collect();
        assert_eq!(made, sizes, "at most {most}, and {takes} for the upstream");
    }
}

fn component(phase: Phase, last: Option<Action>, counted: [u32; 3]) -> Component {
    let [on, off, force] = counted.map(Some);
    Component {
        generation: 1,
        wish: ComponentWish { enabled: Some(true), ..ComponentWish::default() }.into(),
        evaluation: ComponentEvaluation {
            status: Some(Status { phase: Some(phase), status_override: None }),
            ..ComponentEvaluation::default()
        }
        .into(),
        power: ComponentPower {
            last_action: Some(LastAction {
                action: last,
                failed: Some(false),
                last_updated: Some(Timestamp(0)),
            }),
            event_stats: Some(EventStats {
                power_on_attempts: on,
                power_off_graceful_attempts: off,
                power_off_forceful_attempts: force,
            }),
            ..ComponentPower::default()
        }
        .into(),
        preparation: ComponentPreparation {
            outcome: Some(BootPreparation { generation: 1, attempt: on.unwrap() + 1, trouble: None }),
            ..ComponentPreparation::default()
        }
        .into(),
        inventory: ComponentInventory {
            presence: InventoryPresence::Listed,
            ..ComponentInventory::default()
        }
        .into(),
        ..Component::new(id("x1"))
    }
}

#[test]
fn an_attempt_that_was_not_made_stays_due_until_the_component_moves_on() {
    let off = component(Phase::PoweringOff, None, [0; 3]);
    let off_counted = component(Phase::PoweringOff, Some(OFF), [0, 1, 0]);
    let forced = component(Phase::PoweringOff, Some(FORCE), [0, 1, 1]);
    let on = component(Phase::PoweringOn, None, [0; 3]);
    let on_counted = component(Phase::PoweringOn, Some(ON), [1, 0, 0]);
    let failed = |mut component: Component| {
        component.power.last_action.as_mut().unwrap().failed = Some(true);
        component
    };
    let held = |mut component: Component| {
        component.evaluation.status.as_mut().unwrap().status_override = Some("on_hold".into());
        component
    };
    let locked = |component: Component| component.with(|one| one.inventory.locked = true);
    let paused = |component: Component| {
        component.with(|one| one.wish.pause = Some(PauseMark::by("alice", Timestamp(0)).into()))
    };
    let soon = Timestamp(1_000);
    let late = Timestamp(1_000_000);
    let rows = [
        ("not counted yet", OFF, off.clone(), soon),
        ("counted", OFF, off_counted.clone(), soon),
        ("counted, and its time has passed unused", OFF, off_counted.clone(), late),
        ("counted, and its time has passed unused", FORCE, forced.clone(), late),
        ("another was counted after it", OFF, forced, soon),
        ("wanted on by now", OFF, on.clone(), soon),
        ("not counted yet", ON, on.clone(), soon),
        ("counted", ON, on_counted.clone(), late),
        ("counted, and believed to have failed", ON, failed(on_counted.clone()), late),
        ("not counted, and held", ON, held(on.clone()), late),
        ("counted, and held", ON, held(on_counted.clone()), late),
        ("not counted, and locked", ON, locked(on.clone()), late),
        ("counted, and locked", ON, locked(on_counted.clone()), late),
        ("counted, and locked", OFF, locked(off_counted.clone()), soon),
        ("not counted, and paused", ON, paused(on.clone()), late),
        ("counted, and paused", ON, paused(on_counted.clone()), late),
        ("wanted off by now", ON, off_counted, soon),
        ("done", ON, component(Phase::None, Some(ON), [1, 0, 0]), soon),
        ("counted, and disabled", ON, on_counted.clone().with(|one| one.wish.enabled = Some(false)), soon),
        ("counted, for an older generation", ON, Component { generation: 2, ..on_counted }, soon),
    ];
    let undefined = PowerObservation::Undefined { error: "no answer".into() };
    let powers = [
        ("on", PowerObservation::On),
        ("off", PowerObservation::Off),
        ("unknown", PowerObservation::Unknown),
        ("missing", PowerObservation::Missing),
        ("undefined", undefined),
    ];
    let mut table = String::new();
    for (why, action, component, now) in rows {
        table += &format!("{}, {why}\n   ", action.word());
        for (name, power) in &powers {
            let step = attempt_step(&component, power, action, &member("x1"), &Options::default(), now);
            table += &format!(" {name}: {step:?}");
        }
        table += "\n";
    }
    expect![[r#"
        powering_off_gracefully, not counted yet
            on: Due off: Gone unknown: Gone missing: Gone undefined: Gone
        powering_off_gracefully, counted
            on: Due off: Gone unknown: Later missing: Later undefined: Later
        powering_off_gracefully, counted, and its time has passed unused
            on: Due off: Gone unknown: Later missing: Later undefined: Later
        powering_off_forcefully, counted, and its time has passed unused
            on: Due off: Gone unknown: Later missing: Later undefined: Later
        powering_off_gracefully, another was counted after it
            on: Gone off: Gone unknown: Gone missing: Gone undefined: Gone
        powering_off_gracefully, wanted on by now
            on: Gone off: Gone unknown: Gone missing: Gone undefined: Gone
        powering_on, not counted yet
            on: Gone off: Due unknown: Gone missing: Gone undefined: Gone
        powering_on, counted
            on: Gone off: Due unknown: Later missing: Later undefined: Later
        powering_on, counted, and believed to have failed
            on: Gone off: Due unknown: Later missing: Later undefined: Later
        powering_on, not counted, and held
            on: Gone off: Gone unknown: Gone missing: Gone undefined: Gone
        powering_on, counted, and held
            on: Gone off: Later unknown: Later missing: Later undefined: Later
        powering_on, not counted, and locked
            on: Gone off: Gone unknown: Gone missing: Gone undefined: Gone
        powering_on, counted, and locked
            on: Gone off: Later unknown: Later missing: Later undefined: Later
        powering_off_gracefully, counted, and locked
            on: Later off: Gone unknown: Later missing: Later undefined: Later
        powering_on, not counted, and paused
            on: Gone off: Gone unknown: Gone missing: Gone undefined: Gone
        powering_on, counted, and paused
            on: Gone off: Later unknown: Later missing: Later undefined: Later
        powering_on, wanted off by now
            on: Gone off: Gone unknown: Gone missing: Gone undefined: Gone
        powering_on, done
            on: Gone off: Gone unknown: Gone missing: Gone undefined: Gone
        powering_on, counted, and disabled
            on: Gone off: Gone unknown: Gone missing: Gone undefined: Gone
        powering_on, counted, for an older generation
            on: Gone off: Gone unknown: Gone missing: Gone undefined: Gone
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_shutdown_is_overdue_when_a_node_of_it_is_to_be_forced_off() {
    let asked = component(Phase::PoweringOff, Some(OFF), [0, 1, 0]);
    let (early, late) = (Timestamp(1_000), Timestamp(1_000_000));
    let rows = [
        ("it has time", asked.clone(), PowerObservation::On, early, false),
        ("its time is over", asked.clone(), PowerObservation::On, late, true),
        ("it is off", asked.clone(), PowerObservation::Off, late, false),
        ("it is not known", asked.clone(), PowerObservation::Unknown, late, false),
        ("locked", asked.clone().with(|one| one.inventory.locked = true), PowerObservation::On, late, false),
        (
            "disabled",
            asked.clone().with(|one| one.wish.enabled = Some(false)),
            PowerObservation::On,
            late,
            false,
        ),
        ("newer wish", Component { generation: 2, ..asked }, PowerObservation::On, late, false),
        (
            "forced already",
            component(Phase::PoweringOff, Some(FORCE), [0, 1, 3]),
            PowerObservation::On,
            late,
            false,
        ),
    ];
    for (name, component, power, now, expected) in rows {
        let overdue = is_overdue(&component, &power, &member("x1"), &Options::default(), now);
        assert_eq!(overdue, expected, "{name}");
    }
}

fn theirs(id: &str, action: Option<Action>, ids: &[&str]) -> UpstreamTransition {
    UpstreamTransition {
        id: id.into(),
        action,
        ids: ids.iter().map(ToString::to_string).collect(),
        complete: true,
        at: Timestamp(50_000),
        resolution: Duration::ZERO,
        open: true,
    }
}

fn ours() -> PowerTransition {
    PowerTransition {
        action: Some(OFF),
        members: ["x2", "x1"].map(member).to_vec(),
        ..PowerTransition::default()
    }
}

/// Returns a window between 49 and 60 s by a clock that agrees with ours, in which the call was over at 52 s.
fn window() -> SearchWindow {
    let at = Timestamp(50_000);
    let clock = ClockOffset::measure(at, at, at, Duration::from_millis(1));
    let ours_until = Some(Timestamp(52_000));
    SearchWindow { from: Timestamp(49_000), ours_until, until: Timestamp(60_000), clock }
}

#[test]
fn a_lost_transition_is_recognised_by_action_nodes_and_time() {
    let same = theirs("t1", Some(OFF), &["x1", "x2"]);
    let at = |at: i64, one: &UpstreamTransition| UpstreamTransition { at: Timestamp(at), ..one.clone() };
    let begun = |one: UpstreamTransition| UpstreamTransition { complete: false, ..one };
    let undated = at(i64::MAX, &same);
    let cut = |at: i64| UpstreamTransition {
        at: Timestamp(at),
        resolution: Duration::from_secs(1),
        ..same.clone()
    };
    let rows = [
        ("the same", vec![same.clone()], TransitionEvidence::Found("t1")),
        ("it began long before ours was sent", vec![at(46_300, &same)], TransitionEvidence::Missing),
        (
            "it began before ours was sent, unless a clock was wrong",
            vec![at(48_800, &same)],
            TransitionEvidence::Undated { id: "t1", open: true },
        ),
        (
            "ours is beside it",
            vec![at(48_800, &theirs("t0", Some(OFF), &["x1", "x2"])), same.clone()],
            TransitionEvidence::Found("t1"),
        ),
        (
            "it began in the second in which ours was sent, as any other may have",
            vec![cut(49_000)],
            TransitionEvidence::Undated { id: "t1", open: true },
        ),
        (
            "two began while the call was under way",
            vec![same.clone(), at(50_001, &theirs("t2", Some(OFF), &["x1", "x2"]))],
            TransitionEvidence::Undated { id: "t2", open: true },
        ),
        (
            "two began in the same second, and one is over",
            vec![
                UpstreamTransition { open: false, ..cut(50_000) },
                UpstreamTransition { id: "t2".into(), ..cut(50_000) },
            ],
            TransitionEvidence::Undated { id: "t2", open: true },
        ),
        (
            "it began in the second before",
            vec![cut(47_000)],
            TransitionEvidence::Undated { id: "t1", open: true },
        ),
        ("it began seconds before", vec![cut(45_000)], TransitionEvidence::Missing),
        ("it began after our caller had gone", vec![at(60_200, &same)], TransitionEvidence::Missing),
        (
            "it began after our call was over",
            vec![at(55_000, &same)],
            TransitionEvidence::Undated { id: "t1", open: true },
        ),
        (
            "it began after our call was over, and is over",
            vec![UpstreamTransition { open: false, ..at(55_000, &same) }],
            TransitionEvidence::Missing,
        ),
        (
            "ours is there beside one that began later",
            vec![at(55_000, &theirs("t2", Some(OFF), &["x1", "x2"])), same.clone()],
            TransitionEvidence::Found("t1"),
        ),
        (
            "another of ours was taken under the id",
            vec![theirs("old", Some(OFF), &["x1", "x2"])],
            TransitionEvidence::Missing,
        ),
        (
            "nobody says when it began",
            vec![undated.clone()],
            TransitionEvidence::Undated { id: "t1", open: true },
        ),
        (
            "nobody says when it began, and it is over",
            vec![UpstreamTransition { open: false, ..undated.clone() }],
            TransitionEvidence::Undated { id: "t1", open: false },
        ),
        ("an undated one beside ours", vec![undated, at(50_001, &same)], TransitionEvidence::Found("t1")),
        ("another action", vec![theirs("t1", Some(FORCE), &["x1", "x2"])], TransitionEvidence::Missing),
        ("an action without a name", vec![theirs("t1", None, &["x1", "x2"])], TransitionEvidence::Missing),
        ("fewer nodes", vec![theirs("t1", Some(OFF), &["x1"])], TransitionEvidence::Missing),
        ("more nodes", vec![theirs("t1", Some(OFF), &["x1", "x2", "x3"])], TransitionEvidence::Missing),
        ("no nodes yet", vec![begun(theirs("t1", Some(OFF), &[]))], TransitionEvidence::Perhaps),
        (
            "some of the nodes so far",
            vec![begun(theirs("t1", Some(OFF), &["x2"]))],
            TransitionEvidence::Perhaps,
        ),
        ("other nodes so far", vec![begun(theirs("t1", Some(OFF), &["x3"]))], TransitionEvidence::Missing),
        (
            "no nodes yet of another",
            vec![begun(theirs("t0", Some(OFF), &[])), same.clone()],
            TransitionEvidence::Found("t1"),
        ),
        ("nothing", vec![], TransitionEvidence::Missing),
    ];
    for (what, accepted, found) in rows {
        assert_eq!(evidence(&ours(), &accepted, &window(), |one| one.id == "old"), found, "{what}");
    }
    let timeless = SearchWindow { clock: None, ..window() };
    let unknown = evidence(&ours(), std::slice::from_ref(&same), &timeless, |_| false);
    assert_eq!(
        unknown,
        TransitionEvidence::Undated { id: "t1", open: true },
        "a clock that is not known adopts nothing"
    );
    let unsent = SearchWindow { ours_until: None, ..window() };
    let unknown = evidence(&ours(), std::slice::from_ref(&same), &unsent, |_| false);
    assert_eq!(
        unknown,
        TransitionEvidence::Undated { id: "t1", open: true },
        "without the time of our call nothing is adopted"
    );
    let nameless = PowerTransition { action: None, ..ours() };
    assert_eq!(evidence(&nameless, &[same], &window(), |_| false), TransitionEvidence::Missing);
}

#[test]
fn an_id_is_believed_when_it_stands_for_what_was_asked() {
    let same = theirs("t1", Some(OFF), &["x1", "x2"]);
    let rows = [
        ("the same", same.clone(), ReadBack::Same),
        (
            "it is over, and its nodes are forgotten",
            UpstreamTransition { ids: vec![], open: false, ..same.clone() },
            ReadBack::Same,
        ),
        (
            "nobody says when it began",
            UpstreamTransition { at: Timestamp(i64::MAX), ..same.clone() },
            ReadBack::Same,
        ),
        (
            "its nodes are worked out",
            UpstreamTransition { ids: vec![], complete: false, ..same.clone() },
            ReadBack::Unclear,
        ),
        ("another action", theirs("t1", Some(ON), &["x1", "x2"]), ReadBack::Other),
        ("other nodes", theirs("t1", Some(OFF), &["x3", "x4"]), ReadBack::Other),
        (
            "other nodes so far",
            UpstreamTransition { complete: false, ..theirs("t1", Some(OFF), &["x3"]) },
            ReadBack::Other,
        ),
        (
            "it began before ours was sent",
            UpstreamTransition { at: Timestamp(40_000), ..same.clone() },
            ReadBack::Other,
        ),
        (
            "it began in the second in which ours was sent",
            UpstreamTransition { at: Timestamp(48_000), resolution: Duration::from_secs(1), ..same },
            ReadBack::Same,
        ),
    ];
    for (what, record, expected) in rows {
        assert_eq!(read_back(&ours(), &UpstreamRecord::Found(record), &window()), expected, "{what}");
    }
    assert_eq!(read_back(&ours(), &UpstreamRecord::NotKept, &window()), ReadBack::Same);
    assert_eq!(read_back(&ours(), &UpstreamRecord::Missing, &window()), ReadBack::Missing);
}
