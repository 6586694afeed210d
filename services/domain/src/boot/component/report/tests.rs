mod preparation;

use std::sync::Arc;

use expect_test::expect;

use super::*;
use crate::{
    boot::{
        bos::compatibility::Compatibility,
        component::{
            Action, BegunBoot, BootPreparation, ComponentEvaluation, ComponentPatch, ComponentPower,
            ComponentPreparation, ComponentWish, DesiredState, EventStats, InventoryPresence, LastAction,
            NumberedToken, PauseMark, Phase, PowerTurns, ReportedBoots, Status,
            artifacts::BootArtifacts,
            view::{artifacts, bare, show, trouble},
            write::{cleared_actual_state, patch, put},
        },
        session::staging::{Standing, Terms, Verdict, apply},
        template::Operation,
    },
    core::{
        decision::DecisionVersion,
        id::Tenant,
        trouble::{ErrorChange, Trouble},
    },
};

const NOW: Timestamp = Timestamp(900);

fn status_of(phase: Phase, status_override: &str) -> Option<Status> {
    Some(Status { phase: Some(phase), status_override: Some(status_override.into()) })
}

fn last(action: Action, failed: bool) -> Option<LastAction> {
    Some(LastAction { action: Some(action), failed: Some(failed), last_updated: Some(Timestamp(200)) })
}

/// Returns a component that an older session left enabled in `phase`.
fn stored(phase: Phase, action: Action) -> Component {
    let mut actual = cleared_actual_state();
    actual.boot_artifacts = Some(artifacts("ak ap ai"));
    actual.last_updated = Some(Timestamp(100));
    Component {
        revision: 40,
        generation: 7,
        reported: ReportedBoots { actual_state: Some(actual), ..ReportedBoots::default() },
        wish: ComponentWish {
            desired_state: Some(DesiredState {
                boot_artifacts: Some(artifacts("dk dp di")),
                configuration: Some("conf".into()),
                bss_token: Some("dt".into()),
                last_updated: Some(Timestamp(100)),
            }),
            enabled: Some(true),
            session: Some("s1".into()),
            assignment: "id-1".into(),
            ..ComponentWish::default()
        }
        .into(),
        power: ComponentPower {
            last_action: last(action, false),
            event_stats: Some(EventStats {
                power_on_attempts: Some(1),
                power_off_graceful_attempts: Some(1),
                power_off_forceful_attempts: Some(0),
            }),
            trouble: trouble("refused"),
            ..ComponentPower::default()
        }
        .into(),
        evaluation: ComponentEvaluation {
            status: status_of(phase, ""),
            error: Some("old trouble".into()),
            ..ComponentEvaluation::default()
        }
        .into(),
        preparation: ComponentPreparation {
            outcome: Some(BootPreparation { generation: 7, attempt: 1, trouble: None }),
            token: Some(NumberedToken { token: "dt".into(), number: 5 }),
        }
        .into(),
        ..bare()
    }
}

fn text(result: Result<Option<Component>, Stale>) -> String {
    match result {
        Ok(Some(component)) => show(&component),
        Ok(None) => "unchanged".to_owned(),
        Err(Stale) => "stale".to_owned(),
    }
}

fn check(rows: &[(&str, Result<Option<Component>, Stale>)], expected: expect_test::Expect) {
    let lines: Vec<_> =
        rows.iter().map(|(name, result)| format!("{name}\n    {}\n", text(result.clone()))).collect();
    expected.assert_eq(&lines.concat());
}

fn assignment() -> Assignment {
    Assignment {
        assignment_id: "id-2".into(),
        session: "s2".into(),
        tenant: Tenant::none(),
        boot_artifacts: artifacts("nk np ni"),
        configuration: "new".into(),
        clear_actual_state: false,
        clear_bss_token: false,
        stage: false,
        pause: None,
        trace: "00-1-2-01".into(),
    }
}

fn shutdown() -> Assignment {
    Assignment {
        boot_artifacts: BootArtifacts::empty().into(),
        configuration: Arc::default(),
        clear_bss_token: true,
        ..assignment()
    }
}

#[test]
fn sessions_set_what_their_members_should_run() {
    let component = stored(Phase::PoweringOff, Action::PoweringOffGracefully);
    let reboot = Assignment { clear_actual_state: true, ..assignment() };
    let back = Assignment { boot_artifacts: artifacts("ak ap ai"), ..assignment() };
    let waiting = component.clone().with(|one| {
        one.power.trouble = Some(Trouble::waiting_for("the power service").into());
    });
    let rows = [
        ("boot of what runs, while it is shut down", record(&component, &back, NOW)),
        ("boot of what runs, while its shutdown is not taken", record(&waiting, &back, NOW)),
        ("boot", record(&component, &assignment(), NOW)),
        ("reboot", record(&component, &reboot, NOW)),
        ("shutdown", record(&component, &shutdown(), NOW)),
        ("boot of a bare record", record(&bare(), &assignment(), NOW)),
    ];
    check(
        &rows,
        expect![[r#"
            boot of what runs, while it is shut down
                actual=[.,.,. token: @900] desired=[ak,ap,ai cfg:new token:dt @900] action=[session_setup ok @900] stats=0/0/0 status=[phase:powering_off override:on_hold] enabled=true error='' session='s2' of='' gen=8 assigned=id-2
            boot of what runs, while its shutdown is not taken
                actual=[ak,ap,ai token: @100] desired=[ak,ap,ai cfg:new token:dt @900] action=[session_setup ok @900] stats=0/0/0 status=[phase:powering_off override:on_hold] enabled=true error='' session='s2' of='' gen=8 assigned=id-2
            boot
                actual=[.,.,. token: @900] desired=[nk,np,ni cfg:new token:dt @900] action=[session_setup ok @900] stats=0/0/0 status=[phase:powering_off override:on_hold] enabled=true error='' session='s2' of='' gen=8 assigned=id-2
            reboot
                actual=[.,.,. token: @900] desired=[nk,np,ni cfg:new token:dt @900] action=[session_setup ok @900] stats=0/0/0 status=[phase:powering_off override:on_hold] enabled=true error='' session='s2' of='' gen=8 assigned=id-2
            shutdown
                actual=[.,.,. token: @900] desired=[.,.,. cfg: token: @900] action=[session_setup ok @900] stats=0/0/0 status=[phase:powering_off override:on_hold] enabled=true error='' session='s2' of='' gen=8 assigned=id-2
            boot of a bare record
                desired=[nk,np,ni cfg:new @900] action=[session_setup ok @900] stats=0/0/0 status=[override:on_hold] enabled=true error='' session='s2' of='' gen=1 assigned=id-2
        "#]],
    );
}

#[test]
fn an_earlier_session_does_not_take_a_component_back() {
    let later = Component {
        wish: ComponentWish { assignment: "id-3".into(), ..ComponentWish::default() }.into(),
        ..bare()
    };
    assert_eq!(record(&later, &assignment(), NOW), Err(Stale));
}

#[test]
fn an_assignment_counts_once() {
    let taken = record(&bare(), &assignment(), NOW).expect("never stale").expect("changed");
    let namesake = Assignment { assignment_id: "id-3".into(), ..assignment() };
    let disabled = taken.clone().with(|one| one.wish.enabled = Some(false));
    let changes = |component: &Component, assignment: &Assignment| {
        record(component, assignment, NOW).expect("never stale").is_some()
    };
    assert!(!changes(&taken, &assignment()), "repeated");
    assert!(!changes(&disabled, &assignment()), "finished or disabled since");
    assert!(changes(&taken, &namesake), "another session of the same name");
}

#[test]
fn a_session_does_not_get_back_what_was_taken_from_it() {
    let given = |component: &Component, id: &str| {
        let assignment = Assignment { assignment_id: id.into(), ..assignment() };
        record(component, &assignment, NOW)
    };
    let staged = Assignment { assignment_id: "id-1".into(), stage: true, ..assignment() };
    let with_action = Component {
        power: ComponentPower { last_action: last(Action::PoweringOn, false), ..ComponentPower::default() }
            .into(),
        ..bare()
    };
    let staged = record(&with_action, &staged, NOW).expect("never stale").expect("changed");
    let taken = given(&staged, "id-2").expect("never stale").expect("changed");

    let own = Standing::Own { id: "id-1".into(), operation: Operation::Boot };
    let terms = Terms { tenant: Tenant::none(), clear_stage: true, compatibility: Compatibility::default() };
    let (verdict, applied) = apply(&taken, &own, &terms, |_| None, NOW);
    assert_eq!(verdict, Verdict::Succeeded);
    let detached = ComponentPatch { session: Some(Arc::default()), ..ComponentPatch::default() };
    let detached = patch(&taken, detached, |_| None, NOW);
    let put = put(Some(&taken), bare().id, ComponentPatch::default(), |_| None, NOW);
    for component in [applied.expect("changed"), detached, put] {
        assert_ne!(&*component.wish.assignment, "id-2");
        assert_eq!(given(&component, "id-0"), Err(Stale), "{component:?}");
        assert_eq!(given(&component, "id-2"), Err(Stale), "{component:?}");
        assert!(given(&component, "id-3").expect("later than all").is_some(), "{component:?}");
    }
}

#[test]
fn staging_touches_nothing_but_the_staged_state() {
    let component = stored(Phase::None, Action::PoweringOn);
    let boot = Assignment { stage: true, ..assignment() };
    let shutdown = Assignment { stage: true, ..shutdown() };
    let staged = record(&component, &boot, NOW).expect("never stale").expect("changed");
    let rows = [
        ("boot", record(&component, &boot, NOW)),
        ("boot again", record(&staged, &boot, NOW)),
        ("shutdown names its session (BUG-20)", record(&staged, &shutdown, NOW)),
        (
            "of an earlier session",
            record(&staged, &Assignment { assignment_id: "id-0".into(), ..boot.clone() }, NOW),
        ),
        (
            "of a later one",
            record(&staged, &Assignment { assignment_id: "id-3".into(), ..boot.clone() }, NOW),
        ),
        (
            "applied already",
            record(&component.clone().with(|one| one.wish.assignment = "id-2".into()), &boot, NOW),
        ),
    ];
    check(
        &rows,
        expect![[r#"
            boot
                actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] staged=[nk,np,ni cfg:new session:s2 of:'' id:id-2 @900] action=[powering_on ok @200] stats=1/1/0 status=[phase: override:] enabled=true error='' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1 refused='refused'
            boot again
                unchanged
            shutdown names its session (BUG-20)
                actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] staged=[.,.,. cfg: session:s2 of:'' id:id-2 @900] action=[powering_on ok @200] stats=1/1/0 status=[phase: override:] enabled=true error='' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1 refused='refused'
            of an earlier session
                stale
            of a later one
                actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] staged=[nk,np,ni cfg:new session:s2 of:'' id:id-3 @900] action=[powering_on ok @200] stats=1/1/0 status=[phase: override:] enabled=true error='' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1 refused='refused'
            applied already
                unchanged
        "#]],
    );
}

fn status_report(phase: Phase) -> StatusReport {
    StatusReport {
        id: bare().id,
        revision: 40,
        phase,
        status_override: std::sync::Arc::default(),
        settled: false,
        action_failed: false,
        awaits_evidence: false,
        error: ErrorChange::Keep,
        decided_by: DecisionVersion::default(),
        reason: std::sync::Arc::default(),
    }
}

#[test]
fn statuses_have_consequences() {
    let off = stored(Phase::PoweringOff, Action::PoweringOffGracefully);
    let on = stored(Phase::PoweringOn, Action::PoweringOn);
    let held = on.clone().with(|one| one.evaluation.status = status_of(Phase::None, "on_hold"));
    let never = Component {
        revision: 40,
        wish: ComponentWish { enabled: Some(true), ..ComponentWish::default() }.into(),
        ..bare()
    };
    let failed = on.clone().with(|one| one.power.last_action = last(Action::PoweringOn, true));
    let finished = StatusReport { settled: true, ..status_report(Phase::None) };
    let running = off.clone().with(|one| {
        let runs = one.reported.actual_state.as_ref().and_then(|actual| actual.boot_artifacts.clone());
        one.wish.desired_state.get_or_insert_default().boot_artifacts = runs;
    });
    let unasked = running.clone().with(|one| one.power.last_action = last(Action::SessionSetup, false));
    let unasked = unasked.with(|one| one.power.event_stats = Some(EventStats::zeros()));
    let action_failed = StatusReport { action_failed: true, ..status_report(Phase::PoweringOn) };
    let gave_up = StatusReport {
        status_override: "failed".into(),
        settled: true,
        error: Trouble::failed("no way").into(),
        ..status_report(Phase::PoweringOn)
    };
    let rows = [
        ("leaving powering_off forgets the report", record(&off, &status_report(Phase::PoweringOn), NOW)),
        ("found running after it was asked to shut down", record(&running, &finished, NOW)),
        ("found running before it was asked", record(&unasked, &finished, NOW)),
        ("found running before, and then off", record(&unasked, &status_report(Phase::PoweringOn), NOW)),
        ("off and finished", record(&off, &finished, NOW)),
        ("on and finished", record(&on, &finished, NOW)),
        ("on, finished and kept that way", record(&on, &status_report(Phase::None), NOW)),
        ("released", record(&held, &status_report(Phase::PoweringOff), NOW)),
        ("action failed", record(&on, &action_failed, NOW)),
        ("action had failed before", record(&failed, &action_failed, NOW)),
        ("given up", record(&on, &gave_up, NOW)),
        ("first status of a bare record", record(&never, &finished, NOW)),
    ];
    check(
        &rows,
        expect![[r#"
            leaving powering_off forgets the report
                actual=[.,.,. token: @900] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_off_gracefully ok @200] stats=1/1/0 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1 refused='refused'
            found running after it was asked to shut down
                actual=[.,.,. token: @900] desired=[ak,ap,ai cfg:conf token:dt @100] action=[powering_off_gracefully ok @200] stats=0/0/0 status=[phase: override:] enabled=false error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1 refused='refused'
            found running before it was asked
                actual=[ak,ap,ai token: @100] desired=[ak,ap,ai cfg:conf token:dt @100] action=[session_setup ok @200] stats=0/0/0 status=[phase: override:] enabled=false error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1 refused='refused'
            found running before, and then off
                actual=[.,.,. token: @900] desired=[ak,ap,ai cfg:conf token:dt @100] action=[session_setup ok @200] stats=0/0/0 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1 refused='refused'
            off and finished
                actual=[.,.,. token: @900] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_off_gracefully ok @200] stats=0/0/0 status=[phase: override:] enabled=false error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1 refused='refused'
            on and finished
                actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=0/0/0 status=[phase: override:] enabled=false error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1 refused='refused'
            on, finished and kept that way
                actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=0/0/0 status=[phase: override:] enabled=true error='old trouble' session='s1' gen=8 assigned=id-1
            released
                actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/1/0 status=[phase:powering_off override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1 refused='refused'
            action failed
                actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on failed @900] stats=1/1/0 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1 refused='refused'
            action had failed before
                unchanged
            given up
                actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/1/0 status=[phase:powering_on override:failed] enabled=false error='no way' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1 refused='refused'
            first status of a bare record
                status=[override:] enabled=false
        "#]],
    );
}

#[test]
fn statuses_of_the_past_are_refused() {
    let component = stored(Phase::PoweringOn, Action::PoweringOn);
    let same =
        StatusReport { error: Trouble::failed("old trouble").into(), ..status_report(Phase::PoweringOn) };
    let older = StatusReport { revision: 39, ..status_report(Phase::PoweringOff) };
    let newer = StatusReport { revision: 41, ..status_report(Phase::PoweringOff) };
    let rows = [
        ("nothing new", record(&component, &same, NOW)),
        ("about an older revision", record(&component, &older, NOW)),
        ("about a newer revision", record(&component, &newer, NOW)),
    ];
    check(
        &rows,
        expect![[r#"
        nothing new
            unchanged
        about an older revision
            stale
        about a newer revision
            stale
    "#]],
    );
}

fn action_report(action: Action, attempt: u32, error: &str) -> ActionReport {
    ActionReport { id: bare().id, generation: 7, action, attempt, trouble: trouble(error), failed: false }
}

#[test]
fn the_first_report_of_an_attempt_counts_it() {
    let off = stored(Phase::PoweringOff, Action::PoweringOffGracefully);
    let on = stored(Phase::PoweringOn, Action::PoweringOn)
        .with(|one| one.power.last_action = last(Action::PoweringOffForcefully, false));
    let called = stored(Phase::PoweringOn, Action::PoweringOn);
    let uncounted = off.clone().with(|one| one.power.event_stats = None);
    let rows = [
        ("on", record(&on, &action_report(Action::PoweringOn, 2, ""), NOW)),
        ("gracefully off", record(&off, &action_report(Action::PoweringOffGracefully, 2, ""), NOW)),
        ("forcefully off", record(&off, &action_report(Action::PoweringOffForcefully, 1, ""), NOW)),
        ("begun and refused at once", record(&on, &action_report(Action::PoweringOn, 2, "no"), NOW)),
        ("without counters", record(&uncounted, &action_report(Action::PoweringOffGracefully, 1, ""), NOW)),
        ("refused later", record(&called, &action_report(Action::PoweringOn, 1, "no power"), NOW)),
        ("repeated", record(&called, &action_report(Action::PoweringOn, 1, "refused"), NOW)),
    ];
    check(
        &rows,
        expect![[r#"
            on
                actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @900] stats=2/1/0 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] boot=[7.2 dt] assigned=id-1
            gracefully off
                actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_off_gracefully ok @900] stats=1/2/0 status=[phase:powering_off override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1
            forcefully off
                actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_off_forcefully ok @900] stats=1/1/1 status=[phase:powering_off override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1
            begun and refused at once
                actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @900] stats=2/1/0 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] boot=[7.2 dt] assigned=id-1 refused='no'
            without counters
                actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_off_gracefully ok @900] stats=-/1/- status=[phase:powering_off override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1
            refused later
                actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/1/0 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=id-1 refused='no power'
            repeated
                unchanged
        "#]],
    );
}

#[test]
fn older_rules_leave_newer_decisions_alone() {
    let version = |rules, options| DecisionVersion { rules, options };
    let decided =
        stored(Phase::PoweringOn, Action::SessionSetup).with(|one| one.evaluation.decided_by = version(2, 5));
    let rows = [
        (version(0, 0), false),
        (version(1, 9), false),
        (version(2, 4), false),
        (version(2, 5), true),
        (version(2, 6), true),
        (version(2, 0), true),
        (version(3, 1), true),
    ];
    for (decided_by, taken) in rows {
        let report = StatusReport { decided_by, ..status_report(Phase::PoweringOff) };
        let outcome = record(&decided, &report, NOW);
        assert_eq!(outcome.is_ok(), taken, "{decided_by:?}");
        let recorded = outcome.ok().flatten().map(|changed| changed.evaluation.decided_by);
        assert_eq!(recorded, taken.then_some(decided_by));
    }
    // Any version may decide about a new wish.
    let assigned = record(&decided, &assignment(), NOW).unwrap().unwrap();
    let old = StatusReport { revision: assigned.revision, ..status_report(Phase::PoweringOff) };
    assert!(record(&assigned, &old, NOW).is_ok());
}

#[test]
fn turns_survive_a_finished_phase_and_end_with_a_new_wish() {
    let called = stored(Phase::PoweringOff, Action::PoweringOn);
    let called = called.with(|one| one.power.turns = PowerTurns { count: 4, last: Some(Action::PoweringOn) });
    let off = record(&called, &action_report(Action::PoweringOffGracefully, 2, ""), NOW).unwrap().unwrap();
    assert_eq!(off.power.turns, PowerTurns { count: 5, last: Some(Action::PoweringOffGracefully) });
    let stable = record(&off, &status_report(Phase::None), NOW).unwrap().unwrap();
    assert_eq!(
        (stable.power.event_stats.as_ref(), stable.power.turns),
        (Some(&EventStats::zeros()), off.power.turns)
    );
    let assigned = record(&stable, &assignment(), NOW).unwrap().unwrap();
    assert_eq!(assigned.power.turns, PowerTurns::default());
}

#[test]
fn actions_nobody_asks_for_do_not_begin() {
    let on = stored(Phase::PoweringOn, Action::SessionSetup);
    let begin = |component: &Component, what| text(record(component, &action_report(what, 5, ""), NOW));
    let rows = [
        ("disabled", on.clone().with(|one| one.wish.enabled = Some(false)), Action::PoweringOn),
        (
            "not listed",
            on.clone().with(|one| one.inventory.presence = InventoryPresence::Absent { since: NOW }),
            Action::PoweringOn,
        ),
        (
            "not asked for",
            on.clone().with(|one| one.inventory.presence = InventoryPresence::default()),
            Action::PoweringOn,
        ),
        ("locked meanwhile", on.clone().with(|one| one.inventory.locked = true), Action::PoweringOn),
        ("paused meanwhile", on.clone().with(|one| one.wish.pause = Some(pause_mark())), Action::PoweringOn),
        (
            "held",
            on.clone().with(|one| one.evaluation.status = status_of(Phase::PoweringOn, "on_hold")),
            Action::PoweringOn,
        ),
        (
            "failed",
            on.clone().with(|one| one.evaluation.status = status_of(Phase::PoweringOn, "failed")),
            Action::PoweringOn,
        ),
        ("the other direction", on.clone(), Action::PoweringOffForcefully),
        (
            "booted meanwhile",
            on.clone().with(|one| one.evaluation.status = status_of(Phase::Configuring, "")),
            Action::PoweringOn,
        ),
        ("older generation", Component { generation: 8, ..on.clone() }, Action::PoweringOn),
        ("not a power action", on.clone(), Action::SessionSetup),
    ];
    for (name, component, what) in rows {
        assert_eq!(begin(&component, what), "stale", "{name}");
    }
}

fn pause_mark() -> Arc<PauseMark> {
    PauseMark::by("alice", NOW).into()
}

fn pause_report(session: &str, assignment: &str, pause: Option<Arc<PauseMark>>) -> PauseReport {
    PauseReport { session: session.into(), assignment: assignment.into(), pause }
}

#[test]
fn a_pause_marks_the_components_of_its_session_alone() {
    let plain = stored(Phase::PoweringOn, Action::SessionSetup);
    let paused = plain.clone().with(|one| one.wish.pause = Some(pause_mark()));
    let told = paused.clone().with(|one| {
        let trouble = pause_mark().trouble("s1");
        (one.evaluation.error, one.evaluation.error_kind) = (Some(trouble.text().clone()), trouble.kind());
    });
    let untold = plain.clone().with(|one| one.evaluation.error = Some("".into()));
    let rows = [
        ("mark", &plain, pause_report("s1", "id-1", Some(pause_mark())), Ok(Some(paused.clone()))),
        ("mark again", &paused, pause_report("s1", "id-1", Some(pause_mark())), Ok(None)),
        ("remove", &paused, pause_report("s1", "id-1", None), Ok(Some(plain.clone()))),
        ("remove again", &plain, pause_report("s1", "id-1", None), Ok(None)),
        ("remove the mark and its words", &told, pause_report("s1", "id-1", None), Ok(Some(untold))),
        ("of another session", &plain, pause_report("s2", "id-1", Some(pause_mark())), Err(Stale)),
        ("of a namesake", &plain, pause_report("s1", "id-2", Some(pause_mark())), Err(Stale)),
    ];
    for (name, component, report, expected) in rows {
        assert_eq!(record(component, &report, NOW), expected, "{name}");
    }
}

#[test]
fn another_wish_ends_a_pause() {
    let paused =
        stored(Phase::PoweringOn, Action::SessionSetup).with(|one| one.wish.pause = Some(pause_mark()));
    let taken = record(&paused, &assignment(), NOW).expect("newer").expect("news");
    assert_eq!(taken.wish.pause, None);
    let write = |change: ComponentPatch| patch(&paused, change, |_| None, NOW).wish.pause.clone();
    let desired = Some(DesiredState { configuration: Some("c".into()), ..DesiredState::default() });
    let rows = [
        ("enabled again", ComponentPatch { enabled: Some(true), ..ComponentPatch::default() }, true),
        ("error", ComponentPatch { error: Some("e".into()), ..ComponentPatch::default() }, true),
        ("session", ComponentPatch { session: Some("s2".into()), ..ComponentPatch::default() }, false),
        ("desired state", ComponentPatch { desired_state: desired, ..ComponentPatch::default() }, false),
    ];
    for (name, change, stays) in rows {
        assert_eq!(write(change), stays.then(pause_mark), "{name}");
    }
}

#[test]
fn attempts_that_others_followed_neither_begin_again_nor_say_anything() {
    let forced = stored(Phase::PoweringOff, Action::PoweringOffForcefully);
    let late = record(&forced, &action_report(Action::PoweringOffGracefully, 1, "late"), NOW);
    assert_eq!(text(late), "stale");
    let mut second = stored(Phase::PoweringOn, Action::PoweringOn);
    second.power.event_stats = Some(EventStats { power_on_attempts: Some(2), ..EventStats::zeros() });
    assert_eq!(text(record(&second, &action_report(Action::PoweringOn, 1, "late"), NOW)), "stale");
}

#[test]
fn a_failed_attempt_is_told_once_and_shows_in_the_last_action() {
    let component = stored(Phase::PoweringOn, Action::PoweringOffGracefully);
    let begun =
        record(&component, &action_report(Action::PoweringOn, 9, ""), NOW).expect("due").expect("new");
    let failed = ActionReport { failed: true, ..action_report(Action::PoweringOn, 9, "reserved") };
    let after = record(&begun, &failed, NOW).expect("current").expect("changed");
    assert_eq!((after.power_error(), after.last_action_failed()), ("reserved", true));
    assert_eq!(after.attempts(Action::PoweringOn), 9);
    assert_eq!(record(&after, &failed, NOW), Ok(None));
}

#[test]
fn the_time_of_an_attempt_runs_from_when_the_upstream_takes_it_whatever_comes_of_it() {
    let at = |time: i64, component: &Component, error: &str, failed| {
        let report = ActionReport { failed, ..action_report(Action::PoweringOn, 9, error) };
        record(component, &report, Timestamp(time)).expect("current").unwrap_or_else(|| component.clone())
    };
    let component = stored(Phase::PoweringOn, Action::PoweringOffGracefully);
    let mut rows = String::new();
    for steps in [
        &[("", false), ("waiting for PCS", false), ("waiting for PCS", false), ("", false)][..],
        &[("", false), ("waiting for PCS", false), ("reserved", true)],
        &[("", false), ("reserved", false), ("", false)],
        &[("", false), ("reserved", true), ("", false)],
    ] {
        let (mut component, mut seen) = (component.clone(), Vec::new());
        for (step, (error, failed)) in (1_000..).step_by(1_000).zip(steps) {
            component = at(step, &component, error, *failed);
            let failed = if component.last_action_failed() { " failed" } else { "" };
            let since = component.last_action_at().expect("given").0;
            seen.push(format!("{step}: '{}'{failed} since {since}", component.power_error()));
        }
        rows += &format!("{}\n", seen.join("; "));
    }
    expect![[r#"
        1000: '' since 1000; 2000: 'waiting for PCS' since 1000; 3000: 'waiting for PCS' since 1000; 4000: '' since 4000
        1000: '' since 1000; 2000: 'waiting for PCS' since 1000; 3000: 'reserved' failed since 1000
        1000: '' since 1000; 2000: 'reserved' since 1000; 3000: '' since 1000
        1000: '' since 1000; 2000: 'reserved' failed since 1000; 3000: 'reserved' failed since 1000
    "#]].assert_eq(&rows);
}

#[test]
fn words_of_a_peer_begin_no_wait() {
    let component = stored(Phase::PoweringOn, Action::PoweringOffGracefully);
    let begun =
        record(&component, &action_report(Action::PoweringOn, 9, ""), NOW).expect("due").expect("new");
    let words = Trouble::failed("waiting for the BMC").map(Into::into);
    let refused = ActionReport { trouble: words, ..action_report(Action::PoweringOn, 9, "") };
    let refused = record(&begun, &refused, NOW).expect("current").expect("changed");
    assert!(!refused.waits_for_power_upstream());
    assert_eq!(refused.attempts(Action::PoweringOn), 9);
    let goes_on = record(&refused, &action_report(Action::PoweringOn, 9, ""), Timestamp(NOW.0 + 1));
    assert_eq!(goes_on.expect("current").expect("changed").last_action_at(), begun.last_action_at());
}

#[test]
fn a_power_on_begins_a_boot_that_is_not_reported_yet() {
    let before = stored(Phase::PoweringOn, Action::SessionSetup).with(|one| {
        one.reported.boot = Some(
            BegunBoot {
                generation: 6,
                attempt: 3,
                token: NumberedToken { token: "before".into(), number: 4 },
                reported: true,
            }
            .into(),
        )
    });
    let begins = |action, component: &Component| {
        let report = ActionReport {
            id: bare().id,
            generation: 7,
            action,
            attempt: component.attempts(action) + 1,
            trouble: None,
            failed: false,
        };
        super::record(component, &report, NOW).expect("current").expect("changed").reported.boot
    };
    let token = NumberedToken { token: "dt".into(), number: 5 };
    let begun = BegunBoot { generation: 7, attempt: 2, token, reported: false };
    assert_eq!(begins(Action::PoweringOn, &before), Some(begun.into()));
    let off = before.clone().with(|one| one.evaluation.status = status_of(Phase::PoweringOff, ""));
    assert_eq!(begins(Action::PoweringOffGracefully, &off), before.reported.boot);
    let unprepared = before.with(|one| one.preparation.token = None);
    assert_eq!(begins(Action::PoweringOn, &unprepared), None, "a record of an older version");
}

#[test]
fn a_report_outlasts_a_new_session_but_no_power_action() {
    let reported = Some(Timestamp(NOW.0 - 1));
    let stored =
        |phase| stored(phase, Action::SessionSetup).with(|one| one.reported.running_report = reported);
    let reboot = Assignment { clear_actual_state: true, ..assignment() };
    let assigned = record(&stored(Phase::None), &reboot, NOW).expect("current").expect("changed");
    assert_eq!((assigned.boot_reported_at(), assigned.reported.running_report), (None, reported));
    for (action, phase) in [
        (Action::PoweringOn, Phase::PoweringOn),
        (Action::PoweringOffGracefully, Phase::PoweringOff),
        (Action::PoweringOffForcefully, Phase::PoweringOff),
    ] {
        let before = stored(phase);
        let report = action_report(action, before.attempts(action) + 1, "");
        let begun = record(&before, &report, NOW).expect("due").expect("new");
        assert_eq!(begun.reported.running_report, None, "{action:?}");
        let refused = action_report(action, before.attempts(action) + 1, "no");
        let again = begun.with(|one| one.reported.running_report = reported);
        let again = record(&again, &refused, NOW).expect("current").expect("changed");
        assert_eq!(again.reported.running_report, reported, "{action:?} has begun before");
    }
}

#[test]
fn no_action_begins_before_the_first_decision_of_a_generation() {
    let undecided = stored(Phase::PoweringOff, Action::PoweringOffGracefully).with(|one| {
        one.evaluation.is_undecided = true;
        one.power.acted_before = true;
    });
    let ask = action_report(Action::PoweringOffGracefully, 2, "");
    assert_eq!(record(&undecided, &ask, NOW), Err(Stale));
    let waits = StatusReport {
        awaits_evidence: true,
        error: ErrorChange::Show(Trouble::waiting_for("PCS")),
        ..status_report(Phase::PoweringOff)
    };
    let waiting = record(&undecided, &waits, NOW).unwrap().unwrap();
    assert!(waiting.evaluation.is_undecided, "a wait decides nothing");
    // The decision changes nothing else.
    let decided = record(&undecided, &status_report(Phase::PoweringOff), NOW).unwrap().unwrap();
    assert!(!decided.evaluation.is_undecided);
    let begun = record(&decided, &ask, NOW).unwrap().unwrap();
    assert_eq!((decided.power.acted_before, begun.power.acted_before), (true, false));
    assert_eq!((decided.was_asked_to_shut_down(), begun.was_asked_to_shut_down()), (false, true));
    let disabled = undecided.with(|one| one.wish.enabled = Some(false));
    assert_eq!(record(&disabled, &status_report(Phase::PoweringOff), NOW), Ok(None));
}

#[test]
fn an_attempt_that_failed_unsent_stays_failed_when_its_wait_ends() {
    let waiting = stored(Phase::PoweringOff, Action::PoweringOffGracefully).with(|one| {
        one.power.trouble = Some(Trouble::waiting_for("transition t-1").into());
        one.power.last_action = last(Action::PoweringOffGracefully, true);
    });
    let end = |failed| ActionReport { failed, ..action_report(Action::PoweringOffGracefully, 1, "") };
    for failed in [true, false] {
        let ended = record(&waiting, &end(failed), NOW).unwrap().unwrap();
        assert_eq!((ended.last_action_failed(), ended.power.trouble.as_ref()), (failed, None));
    }
}
