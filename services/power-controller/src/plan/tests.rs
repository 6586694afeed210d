use chassis::convert::component::action_to_wire;
use domain::component::{BootPreparation, EventStats, LastAction, Phase, Status};
use expect_test::expect;

use super::*;

const ON: Action = Action::PoweringOn;
const OFF: Action = Action::PoweringOffGracefully;
const FORCE: Action = Action::PoweringOffForcefully;

fn id(text: &str) -> ComponentId {
    ComponentId::parse(text).unwrap()
}

fn attempt(generation: u64, action: Action, number: u32) -> Attempt {
    Attempt { generation, action, number }
}

fn member(id: &str) -> TransitionMember {
    TransitionMember { id: id.into(), generation: 1, attempt: 1 }
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
        for (action, members) in batches(attempts, &options) {
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
    for (most, sizes) in
        [(0, vec![2500; 4]), (2800, vec![2500; 4]), (4000, vec![2500; 4]), (2000, vec![2000; 5])]
    {
        let options = Options { max_component_batch_size: most, ..Options::default() };
        let made: Vec<_> = batches(attempts.clone(), &options).iter().map(|(_, all)| all.len()).collect();
        assert_eq!(made, sizes, "at most {most}");
    }
}

#[test]
fn halving_isolates_one_bad_node_among_thousands() {
    let all: Vec<_> = (0..2500).map(|n| member(&format!("x{n:04}"))).collect();
    let (mut waiting, mut calls, mut good, mut bad) = (vec![all], 0, 0, Vec::new());
    while let Some(members) = waiting.pop() {
        calls += 1;
        if names(&members).contains(&"x1234") {
            match halves(&members) {
                Some(halves) => waiting.extend(halves),
                None => bad.extend(members),
            }
        } else {
            good += members.len();
        }
    }
    assert_eq!((calls, good, names(&bad)), (25, 2499, vec!["x1234"]));
    assert_eq!(halves(&[]), None);
}

#[test]
fn an_attempt_is_opened_once_and_none_while_another_is_open() {
    let mut intents = Intents::default();
    let node = id("x1");
    let first = attempt(1, OFF, 1);
    assert!(intents.open(&node, first));
    assert!(!intents.open(&node, first));
    assert!(!intents.open(&node, attempt(2, ON, 1)), "an earlier one is open");
    intents.forget(&node);
    assert!(!intents.open(&node, attempt(2, ON, 1)), "the component went and came while it is open");
    intents.close(&node);
    assert!(!intents.open(&node, first), "it was made");
    assert!(intents.open(&node, attempt(2, ON, 1)));
    intents.withdraw(&node);
    assert!(intents.open(&node, attempt(2, ON, 1)), "it was not made");
}

#[test]
fn the_open_attempt_is_recalled_whatever_the_order() {
    for open_first in [true, false] {
        let mut intents = Intents::default();
        let mut recalled = [(attempt(1, ON, 2), true), (attempt(1, ON, 1), false)];
        if !open_first {
            recalled.reverse();
        }
        recalled.into_iter().for_each(|(attempt, open)| intents.recall(id("x1"), attempt, open));
        assert!(!intents.open(&id("x1"), attempt(1, ON, 3)));
        intents.close(&id("x1"));
        assert!(!intents.open(&id("x1"), attempt(1, ON, 2)));
    }
}

fn component(phase: Phase, last: Option<Action>, counted: [u32; 3]) -> Component {
    let [on, off, force] = counted.map(Some);
    Component {
        enabled: Some(true),
        generation: 1,
        status: Some(Status { phase: Some(phase), status_override: None }),
        last_action: Some(LastAction { action: last, failed: Some(false), last_updated: Some(Timestamp(0)) }),
        event_stats: Some(EventStats {
            power_on_attempts: on,
            power_off_graceful_attempts: off,
            power_off_forceful_attempts: force,
        }),
        preparation: Some(BootPreparation { generation: 1, attempt: on.unwrap() + 1, error: String::new() }),
        ..Component::new(id("x1"))
    }
}

fn readings() -> [PowerObservation; 5] {
    let undefined = PowerObservation::Undefined { error: "no answer".into() };
    [
        PowerObservation::On,
        PowerObservation::Off,
        PowerObservation::Unknown,
        PowerObservation::Missing,
        undefined,
    ]
}

#[test]
fn an_unsent_attempt_stays_due_until_the_component_moves_on() {
    let off = component(Phase::PoweringOff, None, [0; 3]);
    let off_counted = component(Phase::PoweringOff, Some(OFF), [0, 1, 0]);
    let forced = component(Phase::PoweringOff, Some(FORCE), [0, 1, 1]);
    let on = component(Phase::PoweringOn, None, [0; 3]);
    let on_counted = component(Phase::PoweringOn, Some(ON), [1, 0, 0]);
    let failed = |mut component: Component| {
        component.last_action.as_mut().unwrap().failed = Some(true);
        component
    };
    let held = |mut component: Component| {
        component.status.as_mut().unwrap().status_override = Some("on_hold".into());
        component
    };
    let soon = Timestamp(1_000);
    let late = Timestamp(1_000_000);
    let rows = [
        ("not counted yet", OFF, off.clone(), soon, true),
        ("counted", OFF, off_counted.clone(), soon, true),
        ("its time has passed and force is due", OFF, off_counted.clone(), late, false),
        ("counted, and its time has passed unused", FORCE, forced, late, true),
        ("wanted on by now", OFF, on.clone(), soon, false),
        ("not counted yet", ON, on.clone(), soon, true),
        ("counted", ON, on_counted.clone(), late, true),
        ("given up for the next attempt", ON, failed(on_counted.clone()), late, false),
        ("held", ON, held(on_counted.clone()), soon, false),
        ("wanted off by now", ON, off_counted, soon, false),
        ("done", ON, component(Phase::None, Some(ON), [1, 0, 0]), soon, false),
        ("disabled", ON, Component { enabled: Some(false), ..on_counted.clone() }, soon, false),
        ("a newer generation", ON, Component { generation: 2, ..on_counted }, soon, false),
    ];
    for (why, action, component, now, due) in rows {
        let member = member("x1");
        for power in readings() {
            let known = power == if action == ON { PowerObservation::Off } else { PowerObservation::On };
            assert_eq!(
                still_due(&component, &power, action, &member, &Options::default(), now),
                due && known,
                "{}: {why}, {power:?}",
                action.word()
            );
        }
    }
}

#[test]
fn a_transition_is_recognised_by_action_and_nodes() {
    let ours = Transition {
        action: action_to_wire(OFF).into(),
        members: ["x2", "x1"].map(member).to_vec(),
        ..Transition::default()
    };
    let theirs = |id: &str, action, ids: &[&str]| Accepted {
        id: id.into(),
        action,
        ids: ids.iter().map(ToString::to_string).collect(),
        at: Timestamp(0),
    };
    let same = theirs("t1", Some(OFF), &["x1", "x2"]);
    let again = theirs("t2", Some(OFF), &["x1", "x2"]);
    let rows = [
        ("the same", vec![same.clone()], Some("t1")),
        (
            "the same, but the first belongs to an earlier attempt",
            vec![theirs("old", Some(OFF), &["x1", "x2"]), again],
            Some("t2"),
        ),
        ("another action", vec![theirs("t1", Some(FORCE), &["x1", "x2"])], None),
        ("an action without a name", vec![theirs("t1", None, &["x1", "x2"])], None),
        ("fewer nodes", vec![theirs("t1", Some(OFF), &["x1"])], None),
        ("more nodes", vec![theirs("t1", Some(OFF), &["x1", "x2", "x3"])], None),
        ("nothing", vec![], None),
    ];
    for (what, accepted, found) in rows {
        assert_eq!(adopt(&ours, &accepted, |id| id == "old"), found, "{what}");
    }
    assert_eq!(adopt(&Transition { action: 0, ..ours }, &[same], |_| false), None);
}
