//! Each invariant can fail: a history that breaks it is found, and the same history without the defect is not.

use domain::{
    boot::{
        component::{self, BootPreparation, DesiredState, InventoryPresence, Status},
        power::transition::TransitionMember,
    },
    core::{id::ComponentId, trouble::Trouble},
};

use super::*;

const NODE: &str = "x1000c0s0b0n0";

fn component(change: impl FnOnce(&mut Component)) -> Arc<Component> {
    let mut component = Component::new(ComponentId::parse(NODE).expect("an id"));
    component.wish.enabled = Some(true);
    component.generation = 3;
    component.inventory.presence = InventoryPresence::Listed;
    component.wish.desired_state = Some(DesiredState {
        bss_token: Some("t1".into()),
        configuration: Some("c1".into()),
        ..DesiredState::default()
    });
    component.preparation.outcome = Some(BootPreparation { generation: 3, attempt: 1, trouble: None });
    change(&mut component);
    Arc::new(component)
}

fn power(reading: PowerReading, generation: u64) -> PowerState {
    PowerState { id: NODE.to_owned(), reading: reading.into(), generation, ..PowerState::default() }
}

fn open(action: Action, delivery: Stage) -> Open {
    Open { action, delivery, generation: 3, attempt: 1 }
}

/// Returns a power-on without any defect.
fn good() -> Acceptance {
    let asked = open(Action::PoweringOn, Stage::Asked);
    Acceptance {
        node: NODE.to_owned(),
        action: Action::PoweringOn,
        asked: Some(asked.asked(NODE)),
        open: vec![asked],
        records: vec![component(|_| {})],
        powers: vec![power(PowerReading::Off, 3)],
        boot: vec![Prepared { kernel: "k".into(), params: "p".into(), token: "t1".into() }],
        configured: vec!["c1".to_owned()],
    }
}

fn broken(seen: &Acceptance, times: usize) -> Vec<&'static str> {
    let checked = of_acceptance(seen, times).into_iter();
    checked.filter(|(_, checked)| checked.is_err()).map(|(name, _)| name).collect()
}

#[test]
fn a_good_action_breaks_nothing() {
    assert!(broken(&good(), 1).is_empty());
    let off = Acceptance { boot: Vec::new(), configured: Vec::new(), ..good() };
    let open = vec![open(Action::PoweringOffGracefully, Stage::Asked)];
    assert!(broken(&Acceptance { action: Action::PoweringOffGracefully, open, ..off }, 1).is_empty());
}

#[test]
fn every_bad_action_breaks_what_it_should() {
    let off = || vec![open(Action::PoweringOffForcefully, Stage::Accepted)];
    let record = |change: fn(&mut Component)| vec![component(change)];
    let held = |component: &mut Component| {
        component.evaluation.status =
            Some(Status { status_override: Some("on_hold".into()), ..Status::default() });
    };
    let rows = [
        ("nobody wrote it down", Acceptance { asked: None, ..good() }, 1, vec!["I0"]),
        ("the same attempt twice", good(), 2, vec!["I1"]),
        ("on while an off is accepted", Acceptance { open: off(), ..good() }, 1, vec!["I2"]),
        (
            "disabled",
            Acceptance { records: record(|one| one.wish.enabled = Some(false)), ..good() },
            1,
            vec!["I3"],
        ),
        (
            "not listed",
            Acceptance {
                records: record(|one| one.inventory.presence = InventoryPresence::default()),
                ..good()
            },
            1,
            vec!["I3"],
        ),
        (
            "locked",
            Acceptance { records: record(|one| one.inventory.locked = true), ..good() },
            1,
            vec!["I3"],
        ),
        ("held", Acceptance { records: vec![component(held)], ..good() }, 1, vec!["I3"]),
        ("nobody knows it", Acceptance { records: Vec::new(), ..good() }, 1, vec!["I3", "I4"]),
        ("another token", Acceptance { boot: Vec::new(), ..good() }, 1, vec!["I4"]),
        ("another configuration", Acceptance { configured: vec!["c0".to_owned()], ..good() }, 1, vec!["I4"]),
        (
            "not prepared",
            Acceptance { records: record(|one| one.preparation.outcome = None), ..good() },
            1,
            vec!["I4"],
        ),
        (
            "a newer generation",
            Acceptance { records: record(|one| one.generation = 4), ..good() },
            1,
            vec!["I4"],
        ),
        ("an old look", Acceptance { powers: vec![power(PowerReading::Off, 2)], ..good() }, 1, vec!["I5"]),
        ("no look", Acceptance { powers: Vec::new(), ..good() }, 1, vec!["I5", "I15"]),
        (
            "undefined",
            Acceptance { powers: vec![power(PowerReading::Undefined, 3)], ..good() },
            1,
            vec!["I15"],
        ),
        ("left out", Acceptance { powers: vec![power(PowerReading::Missing, 3)], ..good() }, 1, vec!["I15"]),
    ];
    for (story, seen, times, expected) in rows {
        assert_eq!(broken(&seen, times), expected, "{story}");
    }
}

#[test]
fn shutdown_before_the_configuration_was_read_is_found() {
    let asked = open(Action::PoweringOffGracefully, Stage::Asked);
    let off = Acceptance {
        action: Action::PoweringOffGracefully,
        asked: Some(asked.asked(NODE)),
        open: vec![asked],
        ..good()
    };
    let none = BTreeSet::new();
    for (read, is_ok) in [(&[3][..], true), (&[2, 4], true), (&[2], false), (&[], false)] {
        let read = read.iter().copied().collect();
        assert_eq!(off_after_configuration(&off, &read, &none).is_ok(), is_ok, "{read:?}");
    }
    let nothing = BTreeSet::new();
    assert!(off_after_configuration(&good(), &nothing, &none).is_ok(), "a power-on sets it");
    let older = BTreeSet::from([(NODE.to_owned(), 3)]);
    assert!(off_after_configuration(&off, &nothing, &older).is_ok());
    let by = |rules, options| component(|one| one.evaluation.decided_by = DecisionVersion { rules, options });
    let versions = [(0, 0), (0, 1), (RULES_VERSION - 1, 7), (RULES_VERSION, 7)];
    let found = versions.map(|(rules, options)| is_decided_by_older_rules(&by(rules, options)));
    assert_eq!(found, [false, true, true, false]);
}

#[test]
fn attempts_beyond_the_policy_are_found() {
    let member = |attempt| TransitionMember { id: NODE.to_owned(), attempt, ..TransitionMember::default() };
    let transition =
        |attempt| PowerTransition { members: vec![member(1), member(attempt)], ..PowerTransition::default() };
    assert!(attempts_within_policy(&transition(3), 3).is_ok());
    assert!(attempts_within_policy(&transition(4), 3).is_err());
}

#[test]
fn failures_of_others_are_found() {
    let failed = |on: &str| Some(format!("no route to the BMC of {on}"));
    assert!(own_failures(&component(|one| one.evaluation.error = failed(NODE).map(Into::into))).is_ok());
    assert!(own_failures(&component(|one| one.evaluation.error = Some("waiting for PCS".into()))).is_ok());
    assert!(
        own_failures(&component(|one| one.evaluation.error = failed("x1000c0s0b0n1").map(Into::into)))
            .is_err()
    );
    let words = failed("x1000").unwrap_or_default();
    assert!(
        own_failures(&component(|one| one.power.trouble = Trouble::failed(&words).map(Into::into))).is_err()
    );
}

#[test]
fn gaps_repetitions_and_steps_back_are_found() {
    assert!(revisions_without_gap(4, 6, vec![6, 5]).is_ok());
    for (last, newest, revisions) in [(4, 6, vec![6]), (4, 6, vec![5, 5, 6]), (4, 6, vec![4, 5, 6])] {
        assert!(revisions_without_gap(last, newest, revisions.clone()).is_err(), "{revisions:?}");
    }
    assert!(watch_moves_on(4, 6, &[5, 6]).is_ok());
    for (delivered, revision, changed) in [(4, 3, vec![]), (4, 6, vec![4]), (4, 6, vec![7])] {
        assert!(watch_moves_on(delivered, revision, &changed).is_err(), "{delivered} {revision} {changed:?}");
    }
}

#[test]
fn writes_without_the_role_are_found() {
    let keys = [NODE.to_owned()];
    assert!(written_by_who_holds_it("transition", &[]).is_ok());
    assert!(written_by_who_holds_it("session", &keys).is_ok(), "people write it anywhere");
    assert!(written_by_who_holds_it("transition", &keys).is_err());
}

#[test]
fn role_without_an_able_holder_is_found() {
    for (holder, able, has_peers, is_ok) in [
        (Some(4), &[1, 4][..], true, true),
        (Some(2), &[1, 4], true, false),
        (None, &[1, 4], true, false),
        (None, &[1, 4], false, true),
        (Some(2), &[1, 4], false, true),
        (None, &[], true, true),
    ] {
        let scene = RoleScene { holder, able: able.iter().copied().collect(), has_peers };
        assert_eq!(role_is_held(&scene).is_ok(), is_ok, "{scene:?}");
    }
}

#[test]
fn action_on_held_nodes_is_found() {
    let held = [NODE.to_owned()];
    assert!(nothing_held("a", Action::PoweringOn, "b", &[]).is_ok());
    assert!(nothing_held("a", Action::PoweringOn, "b", &held).is_err());
    let known = BTreeSet::from(["b".to_owned()]);
    assert!(holder_not_known(NODE, Action::PoweringOn, "c", &known).is_ok());
    assert!(holder_not_known(NODE, Action::PoweringOn, "b", &known).is_err());
}

#[test]
fn holder_that_nobody_learns_of_is_found() {
    let long = Duration::from_secs(46);
    let enabled = [component(|_| {})];
    let disabled = [component(|one| one.wish.enabled = Some(false))];
    let silent = [power(PowerReading::On, 3)];
    let waiting = [PowerState { error: "waits for b".to_owned(), ..PowerState::default() }];
    assert!(holder_is_learnt("b", long, &silent, &enabled).is_err());
    assert!(holder_is_learnt("b", long, &waiting, &enabled).is_ok());
    assert!(holder_is_learnt("b", long, &silent, &disabled).is_ok());
    assert!(holder_is_learnt("b", Duration::from_secs(45), &silent, &enabled).is_ok());
}

#[test]
fn wait_for_an_abandoned_transition_is_found() {
    let waiting = PowerState { error: "waits for t2".to_owned(), ..PowerState::default() };
    assert!(abandoned_not_awaited(NODE, &waiting, ["t1", "t2"].into_iter()).is_err());
    assert!(abandoned_not_awaited(NODE, &waiting, ["t1"].into_iter()).is_ok());
}

#[test]
fn completion_with_enabled_nodes_is_found() {
    let owned = component(|one| one.wish.assignment = "id".into());
    let settled = component(|one| (one.wish.assignment, one.wish.enabled) = ("id".into(), Some(false)));
    let other = component(|one| one.wish.assignment = "other".into());
    assert!(completed_without_nodes("s", "id", &[settled, owned.clone()]).is_ok(), "enabled again by hand");
    assert!(completed_without_nodes("s", "id", &[other]).is_ok());
    assert!(completed_without_nodes("s", "id", &[owned]).is_err());
}

#[test]
fn completion_that_is_undone_is_found() {
    assert!(completion_stays(true, true, "s").is_ok() && completion_stays(false, false, "s").is_ok());
    assert!(completion_stays(true, false, "s").is_err());
}

#[test]
fn who_does_not_settle_is_found() {
    let done = component(|one| one.wish.enabled = Some(false));
    assert!(settled(std::slice::from_ref(&done), &[]).is_ok());
    assert!(settled(&[done.clone(), component(|_| {})], &[]).is_err());
    assert!(settled(&[done], &["s1".to_owned()]).is_err());
}

#[test]
fn only_what_is_not_over_is_open() {
    let transition = |delivery: TransitionDelivery| PowerTransition {
        action: Some(component::Action::PoweringOn),
        delivery,
        members: vec![TransitionMember {
            id: NODE.to_owned(),
            generation: 3,
            attempt: 1,
            ..Default::default()
        }],
        ..PowerTransition::default()
    };
    let stages = [
        TransitionDelivery::Prepared,
        TransitionDelivery::Sent,
        TransitionDelivery::Unknown,
        TransitionDelivery::Accepted,
        TransitionDelivery::Refused,
        TransitionDelivery::Finished,
    ];
    let open = stages.map(|delivery| Open::of(&transition(delivery), NODE).map(|open| open.delivery));
    let expected =
        [Some(Stage::Prepared), Some(Stage::Asked), Some(Stage::Asked), Some(Stage::Accepted), None, None];
    assert_eq!(open, expected);
    assert_eq!(Open::of(&transition(TransitionDelivery::Sent), "x9"), None);
}

#[test]
fn a_node_is_cut_off_only_after_it_was_asked_in_this_run() {
    let (before, now) = (Instant::now(), Instant::now() + Duration::from_secs(1));
    for (asked, switched_on, is_right) in [
        (Some(now), Some(before), true),
        (Some(before), None, true),
        (Some(before), Some(now), false),
        (None, Some(before), false),
        (None, None, false),
    ] {
        assert_eq!(asked_before_cut(NODE, asked, switched_on).is_ok(), is_right, "{asked:?} {switched_on:?}");
    }
}
