use std::time::Duration;

use domain::boot::{
    bos::options::Options,
    component::{
        ActualState, BegunBoot, Component, ComponentPower, EventStats, LastAction, NumberedToken,
        ReportedBoots,
    },
    power::{
        Outlook,
        transition::{TaskOutcome, TransitionMember},
    },
};
use expect_test::expect;
use proto::power::{PowerReading, PowerState};

use super::*;
use crate::engine::PointInTime;

const NOW: Timestamp = Timestamp(1_000_000);
const ON: Action = Action::PoweringOn;
const OFF: Action = Action::PoweringOffGracefully;
const FORCE: Action = Action::PoweringOffForcefully;

fn transition(action: Action, generation: u64) -> PowerTransition {
    let member = TransitionMember { id: "x1".into(), generation, attempt: 1, ..TransitionMember::default() };
    PowerTransition { action: Some(action), members: vec![member], ..PowerTransition::default() }
}

fn state(reading: PowerReading) -> PowerState {
    PowerState { id: "x1".into(), reading: reading.into(), generation: 1, ..PowerState::default() }
}

/// Returns until when a reading is no evidence for the second generation, in seconds from now.
fn wait(nodes: &NodeRecords, reading: PowerReading) -> String {
    match nodes.outlook(&state(reading), 2, &Options::default(), NOW) {
        Outlook::Settled => "settled".into(),
        Outlook::Pending { until: None } => "pending".into(),
        Outlook::Pending { until: Some(until) } => format!("pending {} s", until.since(NOW).as_secs()),
    }
}

fn settle(nodes: &mut NodeRecords, reading: PowerReading) -> Option<u64> {
    nodes.settle(&state(reading), &Options::default(), NOW)
}

fn holder() -> NodeHolder {
    NodeHolder { transition: "".into(), upstream_id: "t-1".into(), generation: 1 }
}

fn now() -> PointInTime {
    PointInTime { at: NOW, instant: Instant::now() }
}

fn id() -> ComponentId {
    ComponentId::parse("x1").unwrap()
}

#[test]
fn an_action_is_awaited_from_before_it_is_taken_until_its_effect_is_seen() {
    let mut nodes = NodeRecords::default();
    assert_eq!(wait(&nodes, PowerReading::Off), "settled");
    nodes.begin(&transition(ON, 1));
    assert_eq!(wait(&nodes, PowerReading::Off), "pending");
    nodes.accepted(&transition(ON, 1), NOW);
    assert_eq!(wait(&nodes, PowerReading::Off), "pending 120 s");
    assert_eq!(wait(&nodes, PowerReading::On), "settled");
    assert_eq!(settle(&mut nodes, PowerReading::Off), None);
    assert_eq!(settle(&mut nodes, PowerReading::On), Some(1));
    assert_eq!(
        wait(&nodes, PowerReading::Off),
        "settled",
        "what happens to the node later is not its effect"
    );
}

#[test]
fn an_effect_that_is_seen_before_the_answer_is_not_awaited_after_it() {
    let mut nodes = NodeRecords::default();
    nodes.begin(&transition(OFF, 1));
    assert_eq!(settle(&mut nodes, PowerReading::Off), Some(1));
    nodes.accepted(&transition(OFF, 1), NOW);
    assert_eq!(wait(&nodes, PowerReading::On), "settled");
}

#[test]
fn an_action_without_a_record_is_older_than_any_generation() {
    let foreign = |action| PowerTransition { upstream_id: "t-0".into(), ..transition(action, 0) };
    let outlook = |nodes: &NodeRecords, reading| nodes.outlook(&state(reading), 1, &Options::default(), NOW);
    let mut log = String::new();
    for action in [ON, OFF, FORCE] {
        let mut nodes = NodeRecords::default();
        nodes.hold(&foreign(action));
        for reading in [PowerReading::On, PowerReading::Off] {
            let open = outlook(&nodes, reading);
            let mut ended = NodeRecords::default();
            ended.hold(&foreign(action));
            ended.release(&PowerTransition { upstream_id: "t-9".into(), ..foreign(action) }, now());
            assert_eq!(outlook(&ended, reading), open, "another one has ended");
            ended.release(&foreign(action), now());
            log += &format!("{} {reading:?}: {open:?}, then {:?}\n", action.word(), outlook(&ended, reading));
        }
    }
    expect![[r#"
        powering_on On: Pending { until: None }, then Settled
        powering_on Off: Pending { until: None }, then Pending { until: Some(Timestamp(1010000)) }
        powering_off_gracefully On: Pending { until: None }, then Pending { until: Some(Timestamp(1300000)) }
        powering_off_gracefully Off: Pending { until: None }, then Settled
        powering_off_forcefully On: Pending { until: None }, then Pending { until: Some(Timestamp(1010000)) }
        powering_off_forcefully Off: Pending { until: None }, then Settled
    "#]]
    .assert_eq(&log);
    let mut nodes = NodeRecords::default();
    nodes.hold(&foreign(OFF));
    nodes.begin(&transition(ON, 1));
    nodes.cancel(&id());
    nodes.ended(&transition(ON, 1), NOW);
    assert!(nodes.is_held_by_another("x1"), "an action on record changes nothing about it");
    nodes.release(&foreign(OFF), now());
    assert!(!nodes.is_held_by_another("x1") && nodes.is_left_open("x1"));
}

/// Returns a node whose power-on of that generation is under way, and which has reported its boot or not.
fn booting(generation: u64, reported: bool) -> Component {
    let token = NumberedToken { token: "t1".into(), number: 1 };
    Component {
        generation,
        power: ComponentPower {
            last_action: Some(LastAction { action: Some(ON), ..LastAction::default() }),
            event_stats: Some(EventStats { power_on_attempts: Some(1), ..EventStats::default() }),
            ..ComponentPower::default()
        }
        .into(),
        reported: ReportedBoots {
            boot: Some(BegunBoot { token, generation, attempt: 1, reported }.into()),
            actual_state: Some(ActualState {
                bss_token: Some("t1".into()),
                last_updated: Some(NOW),
                ..ActualState::default()
            }),
            ..ReportedBoots::default()
        },
        ..Component::new(id())
    }
}

#[test]
fn the_report_of_a_boot_shows_the_effect_of_its_power_on() {
    let rows = [
        ("its own report", ON, booting(1, true), "settled", false),
        ("no report", ON, booting(1, false), "pending 10 s", true),
        ("a report of another generation", ON, booting(2, true), "pending 10 s", true),
        ("a shutdown", OFF, booting(1, true), "pending 300 s", true),
    ];
    for (name, action, component, expected, left_open) in rows {
        let mut nodes = NodeRecords::default();
        nodes.begin(&transition(action, 1));
        nodes.note_report(&component);
        nodes.ended(&transition(action, 1), NOW);
        nodes.leave_open(&transition(action, 1), now());
        let reading = if action == ON { PowerReading::Off } else { PowerReading::On };
        assert_eq!(wait(&nodes, reading), expected, "{name}");
        assert_eq!(nodes.is_left_open("x1"), left_open, "{name}");
    }
}

#[test]
fn an_action_matters_to_newer_generations_only() {
    let mut nodes = NodeRecords::default();
    nodes.begin(&transition(OFF, 2));
    let outlook = |generation| nodes.outlook(&state(PowerReading::On), generation, &Options::default(), NOW);
    assert_eq!([1, 2].map(outlook), [Outlook::Settled; 2]);
    assert_eq!(outlook(3), Outlook::Pending { until: None });
}

#[test]
fn forcing_supersedes_asking() {
    let mut nodes = NodeRecords::default();
    nodes.begin(&transition(OFF, 1));
    nodes.accepted(&transition(OFF, 1), Timestamp(NOW.0 - 299_000));
    assert_eq!(wait(&nodes, PowerReading::On), "pending 1 s");
    nodes.begin(&transition(FORCE, 1));
    nodes.accepted(&transition(FORCE, 1), NOW);
    assert_eq!(wait(&nodes, PowerReading::On), "pending 300 s");
}

#[test]
fn what_is_not_taken_is_not_awaited_and_what_is_taken_stays() {
    let mut nodes = NodeRecords::default();
    nodes.begin(&transition(ON, 1));
    nodes.cancel(&id());
    assert_eq!(wait(&nodes, PowerReading::Off), "settled");
    nodes.begin(&transition(ON, 1));
    nodes.accepted(&transition(ON, 1), NOW);
    nodes.cancel(&id());
    assert_eq!(wait(&nodes, PowerReading::Off), "pending 120 s");
}

#[test]
fn a_restart_knows_what_may_still_come() {
    let old = |action, delivery: TransitionDelivery, age: u64| {
        let at = Timestamp(NOW.0 - i64::try_from(Duration::from_secs(age).as_millis()).unwrap());
        let at = Some(at);
        let sent_at = at.filter(|_| delivery != TransitionDelivery::Prepared);
        let record = transition(action, 1);
        Arc::new(PowerTransition { delivery, created_at: at, sent_at, ..record })
    };
    let resolved = |transition: Arc<PowerTransition>| {
        let mut transition = PowerTransition::clone(&transition);
        transition.members[0].outcome = TaskOutcome::Failed;
        Arc::new(transition)
    };
    let mut rows = String::new();
    for (name, transitions) in [
        ("prepared", vec![old(ON, TransitionDelivery::Prepared, 500)]),
        ("sent", vec![old(ON, TransitionDelivery::Sent, 500)]),
        ("in doubt", vec![old(ON, TransitionDelivery::Unknown, 500)]),
        ("refused", vec![old(ON, TransitionDelivery::Refused, 1)]),
        ("accepted", vec![old(ON, TransitionDelivery::Accepted, 500)]),
        ("finished", vec![old(ON, TransitionDelivery::Finished, 20)]),
        ("finished long ago", vec![old(ON, TransitionDelivery::Finished, 120)]),
        ("finished with a result", vec![resolved(old(ON, TransitionDelivery::Finished, 20))]),
        ("accepted, with a result", vec![resolved(old(ON, TransitionDelivery::Accepted, 20))]),
        (
            "asked, then forced",
            vec![old(FORCE, TransitionDelivery::Finished, 1), old(OFF, TransitionDelivery::Finished, 301)],
        ),
        (
            "off and on again",
            vec![old(ON, TransitionDelivery::Finished, 1), old(OFF, TransitionDelivery::Finished, 9)],
        ),
    ] {
        let nodes = NodeRecords::recall(transitions);
        let waits = [PowerReading::Off, PowerReading::On].map(|reading| wait(&nodes, reading));
        rows += &format!("{name}: off {}, on {}\n", waits[0], waits[1]);
    }
    expect![[r#"
        prepared: off pending, on settled
        sent: off pending, on settled
        in doubt: off pending, on settled
        refused: off settled, on settled
        accepted: off pending, on settled
        finished: off pending 100 s, on settled
        finished long ago: off settled, on settled
        finished with a result: off settled, on settled
        accepted, with a result: off settled, on settled
        asked, then forced: off settled, on pending 299 s
        off and on again: off pending 119 s, on settled
    "#]]
    .assert_eq(&rows);
}

#[test]
fn a_node_is_followed_from_when_the_upstream_answers_until_its_result() {
    let mut nodes = NodeRecords::default();
    let on = PowerTransition { upstream_id: "t-1".into(), ..transition(ON, 1) };
    nodes.begin(&on);
    assert!(!nodes.is_followed("x1"), "nobody answered yet");
    nodes.follow(&on, true);
    assert!(nodes.is_followed("x1") && !nodes.is_followed("x2"));
    nodes.follow(&on, false);
    assert!(!nodes.is_followed("x1"), "the upstream is silent");
    nodes.follow(&on, true);
    nodes.cancel(&id());
    assert!(!nodes.is_followed("x1"), "it failed");
    nodes.begin(&on);
    nodes.follow(&on, true);
    assert_eq!(settle(&mut nodes, PowerReading::On), Some(1));
    assert!(!nodes.is_followed("x1"), "it succeeded");
    nodes.begin(&on);
    nodes.follow(&on, true);
    nodes.accepted(&on, NOW);
    assert!(!nodes.is_followed("x1"), "the upstream will tell no more");
    assert_eq!(wait(&nodes, PowerReading::Off), "pending 120 s");
    nodes.follow(&on, true);
    assert!(!nodes.is_followed("x1"), "another replica has seen its end before this one heard the answer");
    nodes.begin(&transition(ON, 2));
    nodes.follow(&on, true);
    assert!(!nodes.is_followed("x1"), "this is about an older action");
}

#[test]
fn a_reading_says_little_while_the_effect_that_it_lacks_may_come() {
    let taken = Some(OpenAction::Taken(holder()));
    for (action, lacking, shown) in
        [(ON, PowerReading::Off, PowerReading::On), (FORCE, PowerReading::On, PowerReading::Off)]
    {
        let mut nodes = NodeRecords::default();
        let accepted = PowerTransition { upstream_id: "t-1".into(), ..transition(action, 1) };
        let open = |nodes: &NodeRecords| nodes.open_against("x1", lacking);
        nodes.begin(&accepted);
        assert_eq!(open(&nodes), Some(OpenAction::InDoubt), "nobody answered yet");
        for is_followed in [true, false] {
            nodes.follow(&accepted, is_followed);
            assert_eq!(open(&nodes), taken, "whether the upstream tells of it or not: {is_followed}");
        }
        assert_eq!(nodes.open_against("x1", shown), None, "{action:?}");
        nodes.follow(&transition(action, 1), false);
        assert_eq!(open(&nodes), Some(OpenAction::InDoubt), "it is another one's");
        nodes.ended(&accepted, NOW);
        assert_eq!(open(&nodes), None);
    }
    let mut nodes = NodeRecords::default();
    nodes.begin(&transition(OFF, 1));
    assert_eq!(nodes.open_against("x1", PowerReading::On), None, "what is read withdraws a shutdown");
}

#[test]
fn a_restart_knows_which_transition_is_open() {
    let accepted = PowerTransition { upstream_id: "t-1".into(), ..transition(ON, 1) };
    for (delivery, expected) in [
        (TransitionDelivery::Accepted, Some(OpenAction::Taken(holder()))),
        (TransitionDelivery::Sent, Some(OpenAction::InDoubt)),
        (TransitionDelivery::Finished, None),
    ] {
        let upstream_id = if delivery == TransitionDelivery::Sent { "" } else { "t-1" }.to_owned();
        let record = PowerTransition { delivery, upstream_id, ..accepted.clone() };
        let nodes = NodeRecords::recall(vec![Arc::new(record)]);
        assert_eq!(nodes.open_against("x1", PowerReading::Off), expected, "{delivery:?}");
        assert!(!nodes.is_followed("x1"), "{delivery:?}: nobody was asked yet");
    }
}

fn node_id(text: &str) -> ComponentId {
    ComponentId::parse(text).unwrap()
}

fn attempt(generation: u64, action: Action, number: u32) -> PowerAttempt {
    PowerAttempt { generation, action, number }
}

#[test]
fn an_attempt_is_opened_once_and_none_while_another_is_open() {
    use AttemptOpening::{Blocked, Opened, Repeated};
    let mut nodes = NodeRecords::default();
    let node = node_id("x1");
    let first = attempt(1, OFF, 1);
    assert_eq!(nodes.open(&node, first), Opened);
    assert_eq!(nodes.open(&node, first), Repeated);
    assert_eq!(nodes.open(&node, attempt(2, ON, 1)), Blocked);
    nodes.forget(&node);
    assert_eq!(nodes.open(&node, attempt(2, ON, 1)), Blocked, "the component went and came back");
    nodes.close(&node, attempt(2, ON, 1), false);
    assert_eq!(nodes.open(&node, attempt(2, ON, 1)), Blocked, "that is not the one that is open");
    assert_eq!(nodes.fate("x1", first), AttemptFate::Open);
    nodes.close(&node, first, true);
    assert_eq!(nodes.fate("x1", first), AttemptFate::Taken);
    assert_eq!(nodes.fate("x1", attempt(2, ON, 1)), AttemptFate::Dropped);
    assert_eq!(nodes.open(&node, first), Repeated, "it was made");
    assert_eq!(nodes.open(&node, attempt(2, ON, 1)), Opened);
    nodes.withdraw(&node);
    assert_eq!(nodes.open(&node, attempt(2, ON, 1)), Opened, "it was not made");
    nodes.withdraw_attempt(&node, first);
    assert_eq!(nodes.open(&node, first), Blocked);
    nodes.withdraw_attempt(&node, attempt(2, ON, 1));
    assert_eq!(nodes.open(&node, first), Opened);
}

#[test]
fn only_open_attempts_are_withdrawn() {
    use AttemptOpening::{Blocked, Opened, Repeated};
    let mut nodes = NodeRecords::default();
    for name in ["x1", "x2", "x3"] {
        nodes.open(&node_id(name), attempt(1, ON, 1));
    }
    nodes.close(&node_id("x1"), attempt(1, ON, 1), true);
    ["x1", "x2"].iter().for_each(|name| nodes.withdraw_attempt(&node_id(name), attempt(1, ON, 1)));
    assert_eq!(nodes.open(&node_id("x1"), attempt(1, ON, 1)), Repeated, "it was made");
    assert_eq!(nodes.open(&node_id("x2"), attempt(1, ON, 1)), Opened);
    assert_eq!(nodes.open(&node_id("x3"), attempt(1, ON, 2)), Blocked);
}

#[test]
fn the_open_attempt_is_recalled_whatever_the_order() {
    for open_first in [true, false] {
        let mut nodes = NodeRecords::default();
        let mut recalled = [(attempt(1, ON, 2), true), (attempt(1, ON, 1), false)];
        if !open_first {
            recalled.reverse();
        }
        for (attempt, is_open) in recalled {
            nodes.recall_attempt(node_id("x1"), LatestAttempt { attempt, is_open, was_taken: false });
        }
        assert_eq!(nodes.open(&node_id("x1"), attempt(1, ON, 3)), AttemptOpening::Blocked);
        nodes.close(&node_id("x1"), attempt(1, ON, 2), true);
        assert_eq!(nodes.open(&node_id("x1"), attempt(1, ON, 2)), AttemptOpening::Repeated);
    }
}

type NodeChange = fn(&mut NodeRecords, &PowerTransition);

#[test]
fn older_transition_holds_its_node_until_it_ends_or_is_seen() {
    let (on, newer) = (PowerTransition { upstream_id: "t-1".into(), ..transition(ON, 1) }, 2);
    let held =
        |nodes: &NodeRecords| nodes.older_holder("x1", newer).map(|holder| holder.upstream_id.to_string());
    let ends: [(&str, NodeChange); 5] = [
        ("effect seen", |nodes, _| assert_eq!(settle(nodes, PowerReading::On), Some(1))),
        ("ended", |nodes, one| nodes.ended(one, NOW)),
        ("outcome on record", |nodes, one| {
            attempts(one).for_each(|(id, attempt)| nodes.close(&id, attempt, true));
        }),
        ("in doubt again", |nodes, one| {
            nodes.follow(&PowerTransition { upstream_id: String::new(), ..one.clone() }, false);
        }),
        ("another action begins", NodeRecords::begin),
    ];
    for (name, end) in ends {
        let mut nodes = NodeRecords::default();
        attempts(&on).for_each(|(id, attempt)| assert_eq!(nodes.open(&id, attempt), AttemptOpening::Opened));
        nodes.begin(&on);
        assert_eq!(held(&nodes), None, "{name}: nobody answered yet");
        nodes.follow(&on, true);
        assert_eq!(held(&nodes).as_deref(), Some("t-1"), "{name}");
        assert_eq!(nodes.older_holder("x1", 1), None, "{name}: it is of the same generation");
        end(&mut nodes, &on);
        assert_eq!(held(&nodes), None, "{name}");
    }
}
