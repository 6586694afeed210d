//! Tables of the rules by which calls are dispatched.

use std::{fmt::Write as _, time::Duration};

use expect_test::expect;

use crate::{
    core::time::Timestamp,
    host::{
        dispatch::{
            CallIntent, CallRecord, DispatchStep, carrier, intent_after, is_news, listing_pause,
            looks_count_from, next_step, wants_listing, was_answered_elsewhere,
        },
        evidence::{DriverSight, DriverView},
        record::{
            call::{DoneFacts, DriverAnswer, DriverCall, DriverReport, DriverTrouble, PreparationParts},
            operation::OperationKind,
            progress::{CallCarrier, HostProgress, HostWork},
        },
    },
};

const NOW: Timestamp = Timestamp(1_000_000);

fn at(seconds_ago: u64) -> Timestamp {
    NOW.minus(Duration::from_secs(seconds_ago))
}

fn work(number: u64) -> HostWork {
    HostWork {
        number,
        call: DriverCall::PowerOn { force: false },
        since: at(60),
        carrier: CallCarrier::PowerController,
        parts: PreparationParts::default(),
        changed_by: 0,
        is_accepted: false,
    }
}

fn report(number: u64, seconds_ago: u64, answer: DriverAnswer) -> Option<DriverReport> {
    Some(DriverReport { number, at: at(seconds_ago), answer })
}

fn running() -> DriverAnswer {
    DriverAnswer::InProgress { again_in: Duration::from_secs(10), started: true }
}

fn trouble() -> DriverAnswer {
    DriverAnswer::Trouble { kind: DriverTrouble::Unreachable, text: "away".into() }
}

fn show(step: DispatchStep) -> String {
    match step {
        DispatchStep::Rest => "rest".to_owned(),
        DispatchStep::WaitUntil(due) => format!("wait {:?}", due.since(NOW)),
        DispatchStep::Ask(intent) if intent.at == NOW => "ask".to_owned(),
        DispatchStep::Ask(intent) => format!("ask, perhaps begun {:?} ago", NOW.since(intent.at)),
    }
}

#[test]
fn asks_once_for_a_number_and_again_when_nobody_decides() {
    let done = || DriverAnswer::Done(DoneFacts::default());
    let intent = |kind, since| Some(CallIntent { kind, since, at: at(50) });
    let on = OperationKind::PowerOn;
    let rows = [
        ("no work", None, None, None),
        ("new", Some(7), None, None),
        ("answered before", Some(7), report(6, 1, done()), None),
        ("done", Some(7), report(7, 1, done()), None),
        ("failed", Some(7), report(7, 1, DriverAnswer::Failed { text: "no".into() }), None),
        ("could not be asked", Some(7), report(7, 1, trouble()), None),
        ("running", Some(7), report(7, 4, running()), intent(on, at(60))),
        ("running, rules had their time", Some(7), report(7, 16, running()), intent(on, at(60))),
        ("goes on", Some(8), report(7, 11, running()), intent(on, at(60))),
        ("crashed before the answer", Some(7), None, intent(on, at(60))),
        ("other operation", Some(7), report(6, 1, done()), intent(OperationKind::Inspect, at(60))),
        ("operation begun anew", Some(7), report(6, 1, done()), intent(on, at(90))),
        ("numbers of a lost history", Some(3), report(7, 1, done()), None),
    ];
    let mut table = String::new();
    for (name, number, report, intent) in rows {
        let (work, record) = (number.map(work), CallRecord { report, intent });
        let step = next_step(work.as_ref(), CallCarrier::PowerController, &record, NOW);
        let other = next_step(work.as_ref(), CallCarrier::HostProvisioner, &record, NOW);
        assert_eq!(other, DispatchStep::Rest, "{name}: the call is another part's");
        writeln!(table, "{name}: {}", show(step)).unwrap();
    }
    expect![[r#"
        no work: rest
        new: ask
        answered before: ask
        done: rest
        failed: rest
        could not be asked: rest
        running: wait 11s
        running, rules had their time: ask, perhaps begun 50s ago
        goes on: ask, perhaps begun 50s ago
        crashed before the answer: ask, perhaps begun 50s ago
        other operation: ask
        operation begun anew: ask
        numbers of a lost history: ask
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_driver_that_could_not_be_asked_has_begun_nothing() {
    let intent = CallIntent { kind: OperationKind::PowerOn, since: at(60), at: NOW };
    for (answer, was_recorded, stays) in [
        (trouble(), false, false),
        (trouble(), true, true),
        (running(), false, true),
        (DriverAnswer::NotRegistered, false, true),
    ] {
        assert_eq!(intent_after(intent, was_recorded, &answer).is_some(), stays, "{answer:?}");
    }
}

#[test]
fn listings_at_rest_are_no_news() {
    let view = |seconds_ago, powered_on| DriverView {
        asked_at: at(seconds_ago),
        powered_on: Some(powered_on),
        ..DriverView::default()
    };
    let known = |seconds_ago, powered_on| DriverSight::Known(view(seconds_ago, powered_on));
    let absent = |seconds_ago| DriverSight::Absent { asked_at: at(seconds_ago) };
    let rows = [
        ("first", known(0, false), DriverSight::Unlisted, None, false),
        ("same", known(0, false), known(10, false), Some(20), true),
        ("power", known(0, true), known(10, false), Some(20), true),
        ("from before the last answer", known(0, false), known(10, false), Some(5), true),
        ("lost", absent(0), known(10, false), Some(20), true),
        ("still lost", absent(0), absent(10), Some(20), true),
        ("lost again", absent(0), absent(10), Some(5), true),
        ("never told", absent(0), DriverSight::Unlisted, None, false),
        ("lost with our record", absent(0), DriverSight::Unlisted, None, true),
        ("not ready", DriverSight::NotReady, known(10, false), Some(20), true),
        ("still not ready", DriverSight::NotReady, DriverSight::NotReady, Some(20), true),
        ("back", known(0, false), DriverSight::NotReady, Some(20), true),
    ];
    let mut table = String::new();
    for (name, seen, sight, answered, is_registered) in rows {
        writeln!(table, "{name}: {}", is_news(&seen, &sight, answered.map(at), is_registered)).unwrap();
    }
    expect![[r#"
        first: true
        same: false
        power: true
        from before the last answer: true
        lost: true
        still lost: false
        lost again: true
        never told: false
        lost with our record: true
        not ready: true
        still not ready: false
        back: true
    "#]]
    .assert_eq(&table);
}

#[test]
fn power_calls_alone_have_another_carrier() {
    let of_power = |power| OperationKind::ALL.into_iter().filter(move |kind| carrier(*kind, power) == power);
    let moved: Vec<_> = of_power(CallCarrier::PowerController).map(OperationKind::word).collect();
    assert_eq!(moved, ["power_on", "power_off"]);
    let kept = of_power(CallCarrier::HostProvisioner).count();
    assert_eq!(kept, OperationKind::ALL.len());
}

#[test]
fn a_listing_follows_the_end_of_a_call_of_another_part() {
    let seen = |seconds_ago| DriverSight::Absent { asked_at: at(seconds_ago) };
    let rows = [
        ("no call has ended", seen(10), None, None),
        ("own call", seen(10), Some(5), Some(5)),
        ("call of another part", seen(10), Some(5), Some(20)),
        ("call of another part, nothing of our own", seen(10), Some(5), None),
        ("call of another part, seen since", seen(3), Some(5), Some(20)),
        ("own call that is not known yet", seen(10), Some(20), Some(5)),
        ("never listed", DriverSight::Unlisted, Some(5), None),
    ];
    let mut table = String::new();
    for (name, sight, ended, reported) in rows {
        let progress = HostProgress { answered_at: ended.map(at), ..HostProgress::default() };
        let report = reported.and_then(|ago| report(1, ago, running()));
        let is_listed = was_answered_elsewhere(&progress, &sight, report.as_ref());
        let from = looks_count_from(Some(&progress), report.as_ref()).map(|from| NOW.since(from));
        writeln!(table, "{name}: {is_listed}, looks of the last {from:?} count").unwrap();
    }
    expect![[r#"
        no call has ended: false, looks of the last None count
        own call: false, looks of the last Some(5s) count
        call of another part: true, looks of the last Some(5s) count
        call of another part, nothing of our own: true, looks of the last Some(5s) count
        call of another part, seen since: false, looks of the last Some(5s) count
        own call that is not known yet: false, looks of the last Some(5s) count
        never listed: true, looks of the last Some(5s) count
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_listing_follows_a_call_soon_and_a_failure_sooner_than_at_rest() {
    let period = Duration::from_secs(10);
    let took = Duration::from_millis(50);
    let pauses = [(false, 0), (true, 0), (true, 1), (false, 1), (true, 2)]
        .map(|(soon, failures)| format!("{:?}", listing_pause(period, took, soon, failures)));
    assert_eq!(pauses, ["10s", "250ms", "1s", "1s", "10s"]);
}

#[test]
fn large_backend_is_listed_less_often_after_calls() {
    let period = Duration::from_secs(10);
    let pauses = [10, 200, 1_000, 9_000, u64::MAX]
        .map(|took| format!("{:?}", listing_pause(period, Duration::from_millis(took), true, 0)));
    assert_eq!(pauses, ["250ms", "400ms", "2s", "10s", "10s"]);
}

#[test]
fn only_the_end_of_a_call_is_followed_by_a_listing() {
    for (answer, is_followed) in [
        (running(), false),
        (trouble(), false),
        (DriverAnswer::Done(DoneFacts::default()), true),
        (DriverAnswer::Failed { text: "no".into() }, true),
        (DriverAnswer::NotRegistered, true),
        (DriverAnswer::NeedsSlot, true),
    ] {
        assert_eq!(wants_listing(&answer), is_followed, "{answer:?}");
    }
}
