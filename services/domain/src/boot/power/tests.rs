use std::fmt::Write as _;

use expect_test::expect;

use super::*;
use crate::boot::component::{
    BootPreparation, ComponentEvaluation, ComponentPower, ComponentWish, EventStats, LastAction, PauseMark,
    Phase, PowerTurns, Status,
    view::{bare, trouble},
};

const NOW: Timestamp = Timestamp(1_000_000);

fn component(phase: Phase, last: Action, age: i64, tries: [u32; 3]) -> Component {
    let [on, graceful, forceful] = tries.map(Some);
    Component {
        generation: 7,
        wish: ComponentWish { enabled: Some(true), ..ComponentWish::default() }.into(),
        evaluation: ComponentEvaluation {
            status: Some(Status { phase: Some(phase), status_override: Some("".into()) }),
            ..ComponentEvaluation::default()
        }
        .into(),
        power: ComponentPower {
            last_action: Some(LastAction {
                action: Some(last),
                failed: Some(false),
                last_updated: Some(Timestamp(NOW.0 - age)),
            }),
            event_stats: Some(EventStats {
                power_on_attempts: on,
                power_off_graceful_attempts: graceful,
                power_off_forceful_attempts: forceful,
            }),
            ..ComponentPower::default()
        }
        .into(),
        ..bare()
    }
}

fn act(action: Action, attempt: u32) -> PowerDecision {
    PowerDecision::Act { action, attempt }
}

#[test]
fn power_on_needs_a_preparation_of_this_attempt() {
    let pending = component(Phase::PoweringOn, Action::SessionSetup, 0, [1, 0, 0]);
    let prepared = |generation, attempt, error: &str| {
        pending.clone().with(|one| {
            one.preparation.outcome = Some(BootPreparation { generation, attempt, trouble: trouble(error) })
        })
    };
    let limited = |limit| prepared(7, 2, "").with(|one| one.wish.retry_policy = Some(limit));
    let rows = [
        ("never prepared", pending.clone(), nothing(PowerIdle::NotPrepared)),
        ("an older generation", prepared(6, 2, ""), nothing(PowerIdle::NotPrepared)),
        ("the attempt before", prepared(7, 1, ""), nothing(PowerIdle::NotPrepared)),
        ("refused", prepared(7, 2, "no"), nothing(PowerIdle::PreparationFailed)),
        ("prepared", prepared(7, 2, ""), act(Action::PoweringOn, 2)),
        ("prepared, one left", limited(2), act(Action::PoweringOn, 2)),
        ("prepared, none left", limited(1), nothing(PowerIdle::Exhausted)),
    ];
    for (name, component, expected) in rows {
        assert_eq!(decide(&component, &PowerObservation::Off, &Options::default(), NOW), expected, "{name}");
    }
}

#[test]
fn power_off_is_asked_for_and_then_forced() {
    use Action::{PoweringOffForcefully as Force, PoweringOffGracefully as Ask, PoweringOn as On};
    let off = |last, age, tries| component(Phase::PoweringOff, last, age, tries);
    let wait = |ms| PowerDecision::Wait { until: Timestamp(NOW.0 + ms) };
    let exhausted = nothing(PowerIdle::Exhausted);
    let rows = [
        ("pending", off(On, 0, [1, 0, 0]), act(Ask, 1)),
        ("pending again", off(On, 0, [1, 2, 0]), act(Ask, 3)),
        ("pending, none left", off(On, 0, [1, 3, 0]), exhausted),
        ("just asked", off(Ask, 0, [0, 1, 0]), wait(300_001)),
        ("asked as long ago as allowed", off(Ask, 300_000, [0, 1, 0]), wait(1)),
        ("asked longer ago", off(Ask, 300_001, [0, 1, 0]), act(Force, 1)),
        ("forced", off(Force, 300_000, [0, 1, 1]), wait(1)),
        ("forced longer ago", off(Force, 300_001, [0, 1, 1]), act(Force, 2)),
        ("forced, none left", off(Force, 300_001, [0, 1, 3]), exhausted),
        ("asked before it was off and on again", off(Ask, 300_001, [0, 0, 0]), act(Ask, 1)),
        ("forced before it was off and on again", off(Force, 0, [0, 0, 0]), act(Ask, 1)),
    ];
    for (name, component, expected) in rows {
        assert_eq!(decide(&component, &PowerObservation::On, &Options::default(), NOW), expected, "{name}");
    }
    let mut undated = off(Ask, 0, [0, 1, 0]);
    undated.power.last_action =
        Some(LastAction { last_updated: None, ..undated.power.last_action.clone().expect("given") });
    assert_eq!(decide(&undated, &PowerObservation::On, &Options::default(), NOW), act(Force, 1));
}

#[test]
fn node_that_was_off_since_it_was_asked_is_asked_again() {
    use Action::{PoweringOffForcefully as Force, PoweringOffGracefully as Ask};
    let off = |last, age, tries| component(Phase::PoweringOff, last, age, tries);
    let rows = [
        ("just asked", off(Ask, 0, [0, 1, 0]), act(Ask, 2)),
        ("asked longer ago than allowed", off(Ask, 300_001, [0, 1, 0]), act(Ask, 2)),
        ("forced", off(Force, 300_001, [0, 1, 1]), act(Ask, 2)),
        ("it cannot be asked again", off(Ask, 300_001, [0, 3, 0]), nothing(PowerIdle::Exhausted)),
    ];
    for (name, component, expected) in rows {
        let decision = decide(&component, &PowerObservation::OnAgain, &Options::default(), NOW);
        assert_eq!(decision, expected, "{name}");
    }
}

#[test]
fn nothing_is_done_to_a_component_that_does_not_ask_for_it() {
    let pending = component(Phase::PoweringOff, Action::SessionSetup, 0, [0, 0, 0]);
    let with = |word: &str| {
        let mut component = pending.clone();
        component.evaluation.status.get_or_insert_default().status_override = Some(word.into());
        component
    };
    let called = component(Phase::PoweringOn, Action::PoweringOn, 0, [1, 0, 0]);
    let rows = [
        ("disabled", pending.clone().with(|one| one.wish.enabled = Some(false)), PowerIdle::NotEnabled),
        ("never enabled", pending.clone().with(|one| one.wish.enabled = None), PowerIdle::NotEnabled),
        ("held", with("on_hold"), PowerIdle::Overridden),
        ("failed", with("failed"), PowerIdle::Overridden),
        ("in other hands", with("gone fishing"), PowerIdle::Overridden),
        // An override may be any text, so also the word of a status.
        ("misleading", with("power_off_pending"), PowerIdle::Overridden),
        ("called", called, PowerIdle::NotWanted),
        (
            "configuring",
            component(Phase::Configuring, Action::PoweringOn, 0, [1, 0, 0]),
            PowerIdle::NotWanted,
        ),
        ("stable", component(Phase::None, Action::PoweringOn, 0, [0, 0, 0]), PowerIdle::NotWanted),
    ];
    for (name, component, reason) in rows {
        for power in readings() {
            let decision = decide(&component, &power, &Options::default(), NOW);
            assert_eq!(decision, nothing(reason), "{name}, {power:?}");
        }
    }
}

fn readings() -> [PowerObservation; 6] {
    let undefined = |error: &str| PowerObservation::Undefined { error: error.to_owned() };
    [
        PowerObservation::On,
        PowerObservation::Off,
        PowerObservation::Unknown,
        PowerObservation::Missing,
        undefined(""),
        undefined("controller does not respond"),
    ]
}

#[test]
fn an_action_needs_a_reading_that_it_would_change() {
    let prepared = component(Phase::PoweringOn, Action::SessionSetup, 0, [0, 0, 0]).with(|one| {
        one.preparation.outcome = Some(BootPreparation { generation: 7, attempt: 1, trouble: None })
    });
    let asked = |age| component(Phase::PoweringOff, Action::PoweringOffGracefully, age, [0, 1, 0]);
    let components = [
        ("on", prepared),
        ("ask", component(Phase::PoweringOff, Action::SessionSetup, 0, [0, 0, 0])),
        ("wait", asked(0)),
        ("force", asked(300_001)),
    ];
    let mut rows = String::new();
    for power in readings() {
        for (name, component) in &components {
            let decision = match decide(component, &power, &Options::default(), NOW) {
                PowerDecision::Act { action, attempt } => format!("{} {attempt}", action.word()),
                PowerDecision::Wait { until } => format!("wait {}", until.0 - NOW.0),
                PowerDecision::Nothing { reason } => format!("{reason:?}"),
            };
            rows += &format!("{power:?}, {name}: {decision}\n");
        }
    }
    expect![[r#"
        On, on: AwaitingPower
        On, ask: powering_off_gracefully 1
        On, wait: wait 300001
        On, force: powering_off_forcefully 1
        Off, on: powering_on 1
        Off, ask: AwaitingPower
        Off, wait: wait 300001
        Off, force: AwaitingPower
        Unknown, on: AwaitingPower
        Unknown, ask: AwaitingPower
        Unknown, wait: wait 300001
        Unknown, force: AwaitingPower
        Missing, on: AwaitingPower
        Missing, ask: AwaitingPower
        Missing, wait: wait 300001
        Missing, force: AwaitingPower
        Undefined { error: "" }, on: AwaitingPower
        Undefined { error: "" }, ask: AwaitingPower
        Undefined { error: "" }, wait: wait 300001
        Undefined { error: "" }, force: AwaitingPower
        Undefined { error: "controller does not respond" }, on: AwaitingPower
        Undefined { error: "controller does not respond" }, ask: AwaitingPower
        Undefined { error: "controller does not respond" }, wait: wait 300001
        Undefined { error: "controller does not respond" }, force: AwaitingPower
    "#]]
    .assert_eq(&rows);
}

#[test]
fn no_other_action_changes_the_power() {
    let others =
        [Action::ActualStateCleanup, Action::ApplyStaged, Action::NewlyDiscovered, Action::SessionSetup];
    for action in others {
        for power in readings() {
            assert!(!would_change(action, &power), "{} {power:?}", action.word());
            let outlook = outlook(action, Course::Open, &power, &Options::default(), NOW);
            assert_eq!(outlook, Outlook::Settled, "{} {power:?}", action.word());
        }
    }
}

#[test]
fn an_effect_is_pending_until_it_is_seen_or_its_time_has_passed() {
    let mut rows = String::new();
    for action in [Action::PoweringOn, Action::PoweringOffGracefully, Action::PoweringOffForcefully] {
        let wait = if action == Action::PoweringOn { 120_000 } else { 300_000 };
        let ago = |age| Timestamp(NOW.0 - age);
        let courses = [
            Course::Open,
            Course::Taken(ago(0)),
            Course::Taken(ago(wait - 1)),
            Course::Taken(ago(wait)),
            Course::Ended(ago(0)),
            Course::Ended(ago(10_000)),
        ];
        for power in readings() {
            let outlooks =
                courses.map(|course| match outlook(action, course, &power, &Options::default(), NOW) {
                    Outlook::Settled => "settled".to_owned(),
                    Outlook::Pending { until: None } => "pending".to_owned(),
                    Outlook::Pending { until: Some(until) } => format!("pending {}", until.0 - NOW.0),
                });
            rows += &format!("{}, {power:?}: {}\n", action.word(), outlooks.join(", "));
        }
    }
    expect![[r#"
        powering_on, On: settled, settled, settled, settled, settled, settled
        powering_on, Off: pending, pending 120000, pending 1, settled, pending 10000, settled
        powering_on, Unknown: pending, pending 120000, pending 1, settled, pending 10000, settled
        powering_on, Missing: pending, pending 120000, pending 1, settled, pending 10000, settled
        powering_on, Undefined { error: "" }: pending, pending 120000, pending 1, settled, pending 10000, settled
        powering_on, Undefined { error: "controller does not respond" }: pending, pending 120000, pending 1, settled, pending 10000, settled
        powering_off_gracefully, On: pending, pending 300000, pending 1, settled, pending 300000, pending 290000
        powering_off_gracefully, Off: settled, settled, settled, settled, settled, settled
        powering_off_gracefully, Unknown: pending, pending 300000, pending 1, settled, pending 300000, pending 290000
        powering_off_gracefully, Missing: pending, pending 300000, pending 1, settled, pending 300000, pending 290000
        powering_off_gracefully, Undefined { error: "" }: pending, pending 300000, pending 1, settled, pending 300000, pending 290000
        powering_off_gracefully, Undefined { error: "controller does not respond" }: pending, pending 300000, pending 1, settled, pending 300000, pending 290000
        powering_off_forcefully, On: pending, pending 300000, pending 1, settled, pending 10000, settled
        powering_off_forcefully, Off: settled, settled, settled, settled, settled, settled
        powering_off_forcefully, Unknown: pending, pending 300000, pending 1, settled, pending 10000, settled
        powering_off_forcefully, Missing: pending, pending 300000, pending 1, settled, pending 10000, settled
        powering_off_forcefully, Undefined { error: "" }: pending, pending 300000, pending 1, settled, pending 10000, settled
        powering_off_forcefully, Undefined { error: "controller does not respond" }: pending, pending 300000, pending 1, settled, pending 10000, settled
    "#]].assert_eq(&rows);
}

#[test]
fn only_a_listed_node_is_switched() {
    let unlisted = [
        InventoryPresence::default(),
        InventoryPresence::Doubtful { since: NOW },
        InventoryPresence::Absent { since: NOW },
    ];
    for presence in unlisted {
        for phase in [Phase::PoweringOn, Phase::PoweringOff] {
            let component = component(phase, Action::SessionSetup, 0, [0, 0, 0]);
            let component = component.with(|one| one.inventory.presence = presence.clone());
            for power in readings() {
                let decision = decide(&component, &power, &Options::default(), NOW);
                assert_eq!(decision, nothing(PowerIdle::NotListed), "{presence:?} {phase:?} {power:?}");
            }
        }
    }
}

#[test]
fn power_is_not_turned_more_often_than_one_wish_explains() {
    let off = component(Phase::PoweringOff, Action::PoweringOn, 0, [0, 0, 0]);
    for (count, expected) in
        [(11, act(Action::PoweringOffGracefully, 1)), (12, nothing(PowerIdle::TurnedTooOften))]
    {
        let turns = PowerTurns { count, last: Some(Action::PoweringOn) };
        let component = off.clone().with(|one| one.power.turns = turns);
        assert_eq!(decide(&component, &PowerObservation::On, &Options::default(), NOW), expected);
    }
}

#[test]
fn a_locked_node_is_left_alone() {
    let asked = component(Phase::PoweringOff, Action::PoweringOffGracefully, 300_001, [0, 1, 0]);
    let rows = [
        ("on", component(Phase::PoweringOn, Action::SessionSetup, 0, [0, 0, 0]), PowerIdle::Locked),
        ("off", component(Phase::PoweringOff, Action::SessionSetup, 0, [0, 0, 0]), PowerIdle::Locked),
        ("force", asked.clone(), PowerIdle::Locked),
        ("disabled", asked.with(|one| one.wish.enabled = Some(false)), PowerIdle::NotEnabled),
    ];
    for (name, component, reason) in rows {
        let locked = component.with(|one| one.inventory.locked = true);
        for power in readings() {
            let decision = decide(&locked, &power, &Options::default(), NOW);
            assert_eq!(decision, nothing(reason), "{name}, {power:?}");
        }
    }
}

#[test]
fn nothing_begins_while_the_session_is_paused() {
    let asked = component(Phase::PoweringOff, Action::PoweringOffGracefully, 300_001, [0, 1, 0]);
    let prepared = component(Phase::PoweringOn, Action::SessionSetup, 0, [0, 0, 0]).with(|one| {
        one.preparation.outcome = Some(BootPreparation { generation: 7, attempt: 1, trouble: None });
    });
    let rows = [
        ("on", prepared.clone(), PowerIdle::Paused),
        ("off", component(Phase::PoweringOff, Action::SessionSetup, 0, [0, 0, 0]), PowerIdle::Paused),
        ("force", asked, PowerIdle::Paused),
        ("disabled", prepared.with(|one| one.wish.enabled = Some(false)), PowerIdle::NotEnabled),
    ];
    for (name, component, reason) in rows {
        let mark = PauseMark::by("alice", NOW);
        let paused = component.clone().with(|one| one.wish.pause = Some(mark.into()));
        for power in readings() {
            let decision = decide(&paused, &power, &Options::default(), NOW);
            assert_eq!(decision, nothing(reason), "{name}, {power:?}");
        }
        let resumed =
            readings().into_iter().any(|power| is_act(decide(&component, &power, &Options::default(), NOW)));
        assert_eq!(resumed, reason == PowerIdle::Paused, "{name}");
    }
}

fn is_act(decision: PowerDecision) -> bool {
    match decision {
        PowerDecision::Act { .. } => true,
        PowerDecision::Wait { .. } | PowerDecision::Nothing { .. } => false,
    }
}

#[test]
fn a_power_on_that_failed_is_tried_again_after_a_pause() {
    let failed = |age, tries, error: &str| {
        component(Phase::PoweringOn, Action::PoweringOn, age, [tries, 0, 0]).with(|one| {
            one.preparation.outcome =
                Some(BootPreparation { generation: 7, attempt: tries + 1, trouble: None });
            one.power.trouble = trouble(error);
            one.power.last_action = Some(LastAction {
                action: Some(Action::PoweringOn),
                failed: Some(true),
                last_updated: Some(Timestamp(NOW.0 - age)),
            });
        })
    };
    let wait = |ms| PowerDecision::Wait { until: Timestamp(NOW.0 + ms) };
    let cut_off = failed(0, 1, "reserved").with(|one| {
        one.power.last_action = Some(LastAction {
            action: Some(Action::PoweringOffForcefully),
            ..failed(0, 1, "x").power.last_action.clone().expect("given")
        })
    });
    let rows = [
        ("without effect", failed(0, 1, ""), act(Action::PoweringOn, 2)),
        ("refused just now", failed(0, 1, "reserved"), wait(10_000)),
        ("refused almost long enough ago", failed(9_999, 1, "reserved"), wait(1)),
        ("refused long enough ago", failed(10_000, 1, "reserved"), act(Action::PoweringOn, 2)),
        ("refused twice", failed(10_000, 2, "reserved"), wait(10_000)),
        (
            "refused often",
            failed(0, 50, "reserved").with(|one| one.wish.retry_policy = Some(99)),
            wait(120_000),
        ),
        ("no attempt left", failed(0, 3, "reserved"), nothing(PowerIdle::Exhausted)),
        ("another action was refused", cut_off, act(Action::PoweringOn, 2)),
    ];
    for (name, component, expected) in rows {
        assert_eq!(decide(&component, &PowerObservation::Off, &Options::default(), NOW), expected, "{name}");
    }
}

#[test]
fn a_transition_that_outlasts_its_time_is_withdrawn() {
    let minute = Duration::from_secs(60);
    let rows = [
        ("it goes on", 89_999, minute, false),
        ("it went on for too long", 90_000, minute, true),
        ("its nodes have more time", 90_000, 2 * minute, false),
        ("its nodes had more time", 150_000, 2 * minute, true),
        ("it was sent by a clock that is ahead", -1_000, minute, false),
    ];
    for (name, age, deadline, expected) in rows {
        assert_eq!(outlasts(Timestamp(NOW.0 - age), deadline, NOW), expected, "{name}");
    }
}

#[test]
fn only_a_node_that_was_asked_to_shut_down_has_more_time_than_its_task() {
    use Action::{PoweringOffForcefully as Force, PoweringOffGracefully as Ask, PoweringOn as On};
    for (action, reach, expected) in [
        (On, Reach::Bmc, true),
        (On, Reach::Node, true),
        (Ask, Reach::Bmc, true),
        (Ask, Reach::Node, false),
        (Force, Reach::Bmc, true),
        (Force, Reach::Node, true),
    ] {
        assert_eq!(has_failed(action, reach), expected, "{} {reach:?}", action.word());
    }
}

#[test]
fn a_shutdown_that_reached_no_node_is_asked_for_again_and_never_forced() {
    use Action::{PoweringOffForcefully as Force, PoweringOffGracefully as Ask};
    let refused = |age, tries: [u32; 3]| {
        let asked = component(Phase::PoweringOff, Ask, age, tries);
        let last = asked.power.last_action.clone().map(|last| LastAction { failed: Some(true), ..last });
        asked.with(|one| {
            one.power.trouble = trouble("PCS: Unable to reserve component");
            one.power.last_action = last;
        })
    };
    let wait = |ms| PowerDecision::Wait { until: Timestamp(NOW.0 + ms) };
    let performed = component(Phase::PoweringOff, Ask, 300_001, [0, 1, 0]);
    let rows = [
        ("just now", refused(0, [0, 1, 0]), wait(10_000)),
        ("10 s ago", refused(10_000, [0, 1, 0]), act(Ask, 2)),
        ("twice", refused(10_000, [0, 2, 0]), wait(10_000)),
        ("long ago", refused(300_001, [0, 2, 0]), act(Ask, 3)),
        ("in every attempt", refused(300_001, [0, 3, 0]), nothing(PowerIdle::Exhausted)),
        (
            "its BMC failed",
            refused(300_001, [0, 1, 0])
                .with(|one| one.power.trouble = trouble("PCS: BMC answered 503: busy")),
            act(Ask, 2),
        ),
        (
            "its BMC failed in every attempt",
            refused(300_001, [0, 3, 0])
                .with(|one| one.power.trouble = trouble("PCS: BMC answered 503: busy")),
            nothing(PowerIdle::Exhausted),
        ),
        (
            "performed without effect",
            performed.with(|one| one.power.trouble = trouble("PCS: Timeout waiting for transition")),
            act(Force, 1),
        ),
    ];
    for (name, component, expected) in rows {
        assert_eq!(decide(&component, &PowerObservation::On, &Options::default(), NOW), expected, "{name}");
    }
}

#[test]
fn a_call_in_doubt_is_made_again_only_when_nobody_can_still_be_making_it() {
    let seconds = Duration::from_secs;
    let mut table = String::new();
    for caller in [Caller::Gone, Caller::Elsewhere] {
        for in_doubt in [0, 1, 2, 3, 20, 21, 22, 100] {
            let look = next_look(caller, seconds(20), seconds(in_doubt));
            writeln!(table, "{caller:?} {in_doubt}: {look:?}").unwrap();
        }
    }
    expect![[r#"
        Gone 0: Some(2s)
        Gone 1: Some(1s)
        Gone 2: None
        Gone 3: None
        Gone 20: None
        Gone 21: None
        Gone 22: None
        Gone 100: None
        Elsewhere 0: Some(2s)
        Elsewhere 1: Some(1s)
        Elsewhere 2: Some(20s)
        Elsewhere 3: Some(19s)
        Elsewhere 20: Some(2s)
        Elsewhere 21: Some(1s)
        Elsewhere 22: None
        Elsewhere 100: None
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_shutdown_counts_only_in_its_generation() {
    let called = |last, tries, before| {
        component(Phase::PoweringOff, last, 300_001, tries).with(|one| one.power.acted_before = before)
    };
    let (ask, force) = (Action::PoweringOffGracefully, Action::PoweringOffForcefully);
    let rows = [
        ("asked in this one", called(ask, [0, 1, 0], false), act(force, 1)),
        ("asked before", called(ask, [0, 1, 0], true), act(ask, 2)),
        ("forced before", called(force, [0, 1, 1], true), act(ask, 2)),
        ("asked before as often as allowed", called(ask, [0, 3, 0], true), nothing(PowerIdle::Exhausted)),
        ("forced before as often as allowed", called(force, [0, 1, 3], true), nothing(PowerIdle::Exhausted)),
    ];
    for (name, component, expected) in rows {
        assert_eq!(decide(&component, &PowerObservation::On, &Options::default(), NOW), expected, "{name}");
        let undecided = component.with(|one| one.evaluation.is_undecided = true);
        for power in readings() {
            let decision = decide(&undecided, &power, &Options::default(), NOW);
            assert_eq!(decision, nothing(PowerIdle::Undecided), "{name}, {power:?}");
        }
    }
}
