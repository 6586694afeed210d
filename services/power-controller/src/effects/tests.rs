use std::time::Duration;

use chassis::kinds::component::action_to_wire;
use domain::boot::component::{ActualState, BegunBoot, EventStats, LastAction, NumberedToken};
use expect_test::expect;
use proto::power::{PowerReading, TaskOutcome, TransitionMember};

use super::*;

const NOW: Timestamp = Timestamp(1_000_000);
const ON: Action = Action::PoweringOn;
const OFF: Action = Action::PoweringOffGracefully;
const FORCE: Action = Action::PoweringOffForcefully;

fn transition(action: Action, generation: u64) -> Transition {
    let member = TransitionMember { id: "x1".into(), generation, attempt: 1, ..TransitionMember::default() };
    Transition { action: action_to_wire(action).into(), members: vec![member], ..Transition::default() }
}

fn state(reading: PowerReading) -> PowerState {
    PowerState { id: "x1".into(), reading: reading.into(), generation: 1, ..PowerState::default() }
}

/// Returns until when a reading is no evidence for the second generation, in seconds from now.
fn wait(effects: &Effects, reading: PowerReading) -> String {
    match effects.outlook(&state(reading), 2, &Options::default(), NOW) {
        Outlook::Settled => "settled".into(),
        Outlook::Pending { until: None } => "pending".into(),
        Outlook::Pending { until: Some(until) } => format!("pending {} s", until.since(NOW).as_secs()),
    }
}

fn settle(effects: &Effects, reading: PowerReading) -> Option<u64> {
    effects.settle(&state(reading), &Options::default(), NOW)
}

fn id() -> ComponentId {
    ComponentId::parse("x1").unwrap()
}

#[test]
fn an_action_is_awaited_from_before_it_is_taken_until_its_effect_is_seen() {
    let effects = Effects::default();
    assert_eq!(wait(&effects, PowerReading::Off), "settled");
    effects.begin(&transition(ON, 1));
    assert_eq!(wait(&effects, PowerReading::Off), "pending");
    effects.accepted(&transition(ON, 1), NOW);
    assert_eq!(wait(&effects, PowerReading::Off), "pending 120 s");
    assert_eq!(wait(&effects, PowerReading::On), "settled");
    assert_eq!(settle(&effects, PowerReading::Off), None);
    assert_eq!(settle(&effects, PowerReading::On), Some(1));
    assert_eq!(
        wait(&effects, PowerReading::Off),
        "settled",
        "what happens to the node later is not its effect"
    );
}

#[test]
fn an_effect_that_is_seen_before_the_answer_is_not_awaited_after_it() {
    let effects = Effects::default();
    effects.begin(&transition(OFF, 1));
    assert_eq!(settle(&effects, PowerReading::Off), Some(1));
    effects.accepted(&transition(OFF, 1), NOW);
    assert_eq!(wait(&effects, PowerReading::On), "settled");
}

/// Returns a node whose power-on of that generation is under way, and which has reported its boot or not.
fn booting(generation: u64, reported: bool) -> Component {
    let token = NumberedToken { token: "t1".into(), number: 1 };
    Component {
        generation,
        last_action: Some(LastAction { action: Some(ON), ..LastAction::default() }),
        event_stats: Some(EventStats { power_on_attempts: Some(1), ..EventStats::default() }),
        boot: Some(BegunBoot { token, generation, attempt: 1, reported }),
        actual_state: Some(ActualState {
            bss_token: Some("t1".into()),
            last_updated: Some(NOW),
            ..ActualState::default()
        }),
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
        let effects = Effects::default();
        effects.begin(&transition(action, 1));
        effects.note_report(&component);
        effects.ended(&transition(action, 1), NOW);
        effects.leave_open(&transition(action, 1), NOW);
        let reading = if action == ON { PowerReading::Off } else { PowerReading::On };
        assert_eq!(wait(&effects, reading), expected, "{name}");
        assert_eq!(effects.is_left_open("x1"), left_open, "{name}");
    }
}

#[test]
fn an_action_matters_to_newer_generations_only() {
    let effects = Effects::default();
    effects.begin(&transition(OFF, 2));
    let outlook =
        |generation| effects.outlook(&state(PowerReading::On), generation, &Options::default(), NOW);
    assert_eq!([1, 2].map(outlook), [Outlook::Settled; 2]);
    assert_eq!(outlook(3), Outlook::Pending { until: None });
}

#[test]
fn forcing_supersedes_asking() {
    let effects = Effects::default();
    effects.begin(&transition(OFF, 1));
    effects.accepted(&transition(OFF, 1), Timestamp(NOW.0 - 299_000));
    assert_eq!(wait(&effects, PowerReading::On), "pending 1 s");
    effects.begin(&transition(FORCE, 1));
    effects.accepted(&transition(FORCE, 1), NOW);
    assert_eq!(wait(&effects, PowerReading::On), "pending 300 s");
}

#[test]
fn what_is_not_taken_is_not_awaited_and_what_is_taken_stays() {
    let effects = Effects::default();
    effects.begin(&transition(ON, 1));
    effects.cancel(&id());
    assert_eq!(wait(&effects, PowerReading::Off), "settled");
    effects.begin(&transition(ON, 1));
    effects.accepted(&transition(ON, 1), NOW);
    effects.cancel(&id());
    assert_eq!(wait(&effects, PowerReading::Off), "pending 120 s");
}

#[test]
fn a_restart_knows_what_may_still_come() {
    let old = |action, delivery: Delivery, age: u64| {
        let at = Timestamp(NOW.0 - i64::try_from(Duration::from_secs(age).as_millis()).unwrap());
        let at = Some(time::to_wire(at));
        let sent_at = at.filter(|_| delivery != Delivery::Prepared);
        let record = transition(action, 1);
        Arc::new(Transition { delivery: delivery.into(), created_at: at, sent_at, ..record })
    };
    let resolved = |transition: Arc<Transition>| {
        let mut transition = Transition::clone(&transition);
        transition.members[0].outcome = TaskOutcome::Failed.into();
        Arc::new(transition)
    };
    let mut rows = String::new();
    for (name, transitions) in [
        ("prepared", vec![old(ON, Delivery::Prepared, 500)]),
        ("sent", vec![old(ON, Delivery::Sent, 500)]),
        ("in doubt", vec![old(ON, Delivery::Unknown, 500)]),
        ("refused", vec![old(ON, Delivery::Refused, 1)]),
        ("accepted", vec![old(ON, Delivery::Accepted, 500)]),
        ("finished", vec![old(ON, Delivery::Finished, 20)]),
        ("finished long ago", vec![old(ON, Delivery::Finished, 120)]),
        ("finished with a result", vec![resolved(old(ON, Delivery::Finished, 20))]),
        ("accepted, with a result", vec![resolved(old(ON, Delivery::Accepted, 20))]),
        ("asked, then forced", vec![old(FORCE, Delivery::Finished, 1), old(OFF, Delivery::Finished, 301)]),
        ("off and on again", vec![old(ON, Delivery::Finished, 1), old(OFF, Delivery::Finished, 9)]),
    ] {
        let effects = Effects::recall(transitions);
        let waits = [PowerReading::Off, PowerReading::On].map(|reading| wait(&effects, reading));
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
    let effects = Effects::default();
    let on = Transition { upstream_id: "t-1".into(), ..transition(ON, 1) };
    effects.begin(&on);
    assert!(!effects.is_followed("x1"), "nobody answered yet");
    effects.follow(&on, true);
    assert!(effects.is_followed("x1") && !effects.is_followed("x2"));
    effects.follow(&on, false);
    assert!(!effects.is_followed("x1"), "the upstream is silent");
    effects.follow(&on, true);
    effects.cancel(&id());
    assert!(!effects.is_followed("x1"), "it failed");
    effects.begin(&on);
    effects.follow(&on, true);
    assert_eq!(settle(&effects, PowerReading::On), Some(1));
    assert!(!effects.is_followed("x1"), "it succeeded");
    effects.begin(&on);
    effects.follow(&on, true);
    effects.accepted(&on, NOW);
    assert!(!effects.is_followed("x1"), "the upstream will tell no more");
    assert_eq!(wait(&effects, PowerReading::Off), "pending 120 s");
    effects.follow(&on, true);
    assert!(!effects.is_followed("x1"), "another replica has seen its end before this one heard the answer");
    effects.begin(&transition(ON, 2));
    effects.follow(&on, true);
    assert!(!effects.is_followed("x1"), "this is about an older action");
}

#[test]
fn a_reading_says_little_while_the_effect_that_it_lacks_may_come() {
    let taken = Some(OpenAction::Taken("t-1".into()));
    for (action, lacking, shown) in
        [(ON, PowerReading::Off, PowerReading::On), (FORCE, PowerReading::On, PowerReading::Off)]
    {
        let effects = Effects::default();
        let accepted = Transition { upstream_id: "t-1".into(), ..transition(action, 1) };
        let open = || effects.open_against("x1", lacking);
        effects.begin(&accepted);
        assert_eq!(open(), Some(OpenAction::InDoubt), "nobody answered yet");
        for is_followed in [true, false] {
            effects.follow(&accepted, is_followed);
            assert_eq!(open(), taken, "whether the upstream tells of it or not: {is_followed}");
        }
        assert_eq!(effects.open_against("x1", shown), None, "{action:?}");
        effects.follow(&transition(action, 1), false);
        assert_eq!(open(), Some(OpenAction::InDoubt), "it is another one's");
        effects.ended(&accepted, NOW);
        assert_eq!(open(), None);
    }
    let effects = Effects::default();
    effects.begin(&transition(OFF, 1));
    assert_eq!(effects.open_against("x1", PowerReading::On), None, "what is read withdraws a shutdown");
}

#[test]
fn a_restart_knows_which_transition_is_open() {
    let accepted = Transition { upstream_id: "t-1".into(), ..transition(ON, 1) };
    for (delivery, expected) in [
        (Delivery::Accepted, Some(OpenAction::Taken("t-1".into()))),
        (Delivery::Sent, Some(OpenAction::InDoubt)),
        (Delivery::Finished, None),
    ] {
        let upstream_id = if delivery == Delivery::Sent { "" } else { "t-1" }.to_owned();
        let record = Transition { delivery: delivery.into(), upstream_id, ..accepted.clone() };
        let effects = Effects::recall(vec![Arc::new(record)]);
        assert_eq!(effects.open_against("x1", PowerReading::Off), expected, "{delivery:?}");
        assert!(!effects.is_followed("x1"), "{delivery:?}: nobody was asked yet");
    }
}
