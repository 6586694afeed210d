use expect_test::expect;

use super::*;
use crate::boot::component::{
    BegunBoot, BootPreparation, ComponentEvaluation, ComponentPower, ComponentPreparation, EventStats,
    NumberedToken, Phase, StagedState, Status,
    view::{artifacts, bare, show, stamped, trouble},
};

mod reports;

const NOW: Timestamp = Timestamp(900);

fn tokens(token: &str) -> Option<KnownToken> {
    let number = ["known", "earlier", "begun", "later"].iter().position(|known| *known == token)? as u64;
    Some(KnownToken { boot_artifacts: stamped("tk tp ti", Timestamp(5)), number })
}

/// Returns an enabled component in the middle of a boot, as the registry stores it.
fn stored() -> Component {
    Component {
        revision: 40,
        generation: 7,
        reported: ReportedBoots {
            actual_state: Some(ActualState {
                boot_artifacts: Some(stamped("ak ap ai", Timestamp(1))),
                bss_token: Some("old".into()),
                last_updated: Some(Timestamp(100)),
            }),
            ..ReportedBoots::default()
        },
        wish: ComponentWish {
            desired_state: Some(DesiredState {
                boot_artifacts: Some(artifacts("dk dp di")),
                configuration: Some("conf".into()),
                bss_token: Some("dt".into()),
                last_updated: Some(Timestamp(100)),
            }),
            enabled: Some(true),
            session: Some("s1".into()),
            assignment: "uuid".into(),
            ..ComponentWish::default()
        }
        .into(),
        power: ComponentPower {
            last_action: Some(LastAction {
                action: Some(Action::PoweringOn),
                failed: Some(false),
                last_updated: Some(Timestamp(200)),
            }),
            event_stats: Some(EventStats {
                power_on_attempts: Some(1),
                power_off_graceful_attempts: Some(2),
                power_off_forceful_attempts: Some(3),
            }),
            trouble: trouble("refused"),
            ..ComponentPower::default()
        }
        .into(),
        evaluation: ComponentEvaluation {
            status: Some(Status { phase: Some(Phase::PoweringOn), status_override: Some(Arc::default()) }),
            error: Some("old trouble".into()),
            ..ComponentEvaluation::default()
        }
        .into(),
        preparation: ComponentPreparation {
            outcome: Some(BootPreparation { generation: 7, attempt: 1, trouble: None }),
            ..ComponentPreparation::default()
        }
        .into(),
        ..bare()
    }
}

fn patched(change: impl FnOnce(&mut ComponentPatch)) -> String {
    let mut incoming = ComponentPatch::default();
    change(&mut incoming);
    show(&patch(&stored(), incoming, tokens, NOW))
}

fn actual(token: Option<&str>, texts: Option<&str>) -> Option<ActualState> {
    Some(ActualState {
        boot_artifacts: texts.map(artifacts),
        bss_token: token.map(Into::into),
        last_updated: None,
    })
}

fn check(rows: &[(&str, String)], expected: expect_test::Expect) {
    let lines: Vec<_> = rows.iter().map(|(name, line)| format!("{name}\n    {line}\n")).collect();
    expected.assert_eq(&lines.concat());
}

#[test]
fn tokens_in_reports_are_looked_up() {
    let rows = [
        ("known token", patched(|c| c.actual_state = actual(Some("known"), None))),
        (
            "known token beside other artifacts",
            patched(|c| c.actual_state = actual(Some("known"), Some("x y z"))),
        ),
        ("unknown token", patched(|c| c.actual_state = actual(Some("strange"), None))),
        (
            "unknown token beside artifacts",
            patched(|c| c.actual_state = actual(Some("strange"), Some("x y z"))),
        ),
        ("empty token", patched(|c| c.actual_state = actual(Some(""), None))),
        ("artifacts alone", patched(|c| c.actual_state = actual(None, Some("x - -")))),
        ("nothing", patched(|c| c.actual_state = actual(None, None))),
    ];
    check(
        &rows,
        expect![[r#"
        known token
            actual=[tk,tp,ti~5 token:known @900] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
        known token beside other artifacts
            actual=[tk,tp,ti~5 token:known @900] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
        unknown token
            actual=[ak,ap,ai~1 token:strange @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
        unknown token beside artifacts
            actual=[x,y,z~1 token:strange @900] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
        empty token
            actual=[ak,ap,ai~1 token: @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
        artifacts alone
            actual=[x,ap,ai~1 token:old @900] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
        nothing
            actual=[ak,ap,ai~1 token:old @900] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
    "#]],
    );
}

#[test]
fn enabling_holds_whatever_else_is_said() {
    let with_override = |text: &str| Some(Status { phase: None, status_override: Some(text.into()) });
    let rows = [
        ("enabled again", patched(|c| c.enabled = Some(true))),
        (
            "enabled with an override",
            patched(|c| {
                c.enabled = Some(true);
                c.status = with_override("mine");
            }),
        ),
        ("disabled", patched(|c| c.enabled = Some(false))),
        ("an override alone", patched(|c| c.status = with_override("mine"))),
    ];
    check(
        &rows,
        expect![[r#"
        enabled again
            actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:on_hold] enabled=true error='old trouble' session='s1' gen=8 assigned=uuid
        enabled with an override
            actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:on_hold] enabled=true error='old trouble' session='s1' gen=8 assigned=uuid
        disabled
            actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=false error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
        an override alone
            actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:mine] enabled=true error='old trouble' session='s1' gen=8 assigned=uuid
    "#]],
    );
}

#[test]
fn a_disabled_component_keeps_its_hold() {
    let mut held = stored();
    held.evaluation.status = Some(Status { phase: None, status_override: Some("on_hold".into()) });
    let disabled =
        patch(&held, ComponentPatch { enabled: Some(false), ..ComponentPatch::default() }, tokens, NOW);
    assert_eq!(computed_status(&disabled), ComponentStatus::OnHold);
    assert_eq!(disabled.generation, held.generation);
}

#[test]
fn whoever_is_disabled_waits_for_nobody() {
    const WAITING: TroubleKind = TroubleKind::Waiting;
    let rows = [
        (WAITING, "waiting for PCS", Some(false), None, ""),
        (WAITING, "waiting for PCS", Some(false), Some("mended by hand"), "mended by hand"),
        (WAITING, "waiting for PCS", Some(false), Some("waiting for spare parts"), "waiting for spare parts"),
        (WAITING, "waiting for PCS", Some(false), Some("waiting for PCS"), ""),
        (WAITING, "waiting for PCS", None, None, "waiting for PCS"),
        (TroubleKind::Failed, "waiting for the BMC", Some(false), None, "waiting for the BMC"),
        (TroubleKind::Failed, "cfs configuration failed", Some(false), None, "cfs configuration failed"),
    ];
    for (error_kind, before, enabled, error, expected) in rows {
        let stored = stored().with(|one| {
            one.evaluation.error = Some(before.into());
            one.evaluation.error_kind = error_kind;
        });
        let change = ComponentPatch { enabled, error: error.map(Into::into), ..ComponentPatch::default() };
        let merged = patch(&stored, change, tokens, NOW);
        assert_eq!(merged.error_text(), expected, "{before} {enabled:?} {error:?}");
    }
}

#[test]
fn a_new_desired_state_detaches_and_counts_anew() {
    let desired = |texts: Option<&str>, configuration: Option<&str>, token: Option<&str>| {
        Some(DesiredState {
            boot_artifacts: texts.map(artifacts),
            configuration: configuration.map(Into::into),
            bss_token: token.map(Into::into),
            last_updated: None,
        })
    };
    let rows = [
        ("configuration", patched(|c| c.desired_state = desired(None, Some("c2"), None))),
        ("part of the artifacts", patched(|c| c.desired_state = desired(Some("- - i2"), None, None))),
        (
            "configuration with supplied stats",
            patched(|c| {
                c.desired_state = desired(None, Some("c2"), None);
                c.event_stats = Some(EventStats { power_on_attempts: Some(9), ..EventStats::default() });
            }),
        ),
        ("empty desired state", patched(|c| c.desired_state = desired(None, None, None))),
        (
            "token with the session",
            patched(|c| {
                c.desired_state = desired(None, None, Some("t2"));
                c.session = Some("s1".into());
            }),
        ),
        ("token without the session", patched(|c| c.desired_state = desired(None, None, Some("t2")))),
        (
            "configuration for another session",
            patched(|c| {
                c.desired_state = desired(None, Some("c2"), None);
                c.session = Some("s2".into());
            }),
        ),
    ];
    check(
        &rows,
        expect![[r#"
        configuration
            actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:c2 token:dt @900] action=[powering_on ok @200] stats=0/0/0 status=[phase:powering_on override:] enabled=true error='old trouble' session='' gen=8
        part of the artifacts
            actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,i2 cfg:conf token:dt @900] action=[powering_on ok @200] stats=0/0/0 status=[phase:powering_on override:] enabled=true error='old trouble' session='' gen=8
        configuration with supplied stats
            actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:c2 token:dt @900] action=[powering_on ok @200] stats=0/0/0 status=[phase:powering_on override:] enabled=true error='old trouble' session='' gen=8
        empty desired state
            actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:conf token:dt @900] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='' gen=7 prepared=[7.1 ''] refused='refused'
        token with the session
            actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:conf token:t2 @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] refused='refused'
        token without the session
            actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:conf token:t2 @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='' gen=7 prepared=[7.1 ''] refused='refused'
        configuration for another session
            actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:c2 token:dt @900] action=[powering_on ok @200] stats=0/0/0 status=[phase:powering_on override:] enabled=true error='old trouble' session='s2' gen=8
    "#]],
    );
}

#[test]
fn other_members_are_merged_or_replaced() {
    let rows = [
        ("nothing", patched(|_| ())),
        (
            "scalars",
            patched(|c| {
                c.error = Some("e".into());
                c.session = Some("anything".into());
                c.retry_policy = Some(4);
            }),
        ),
        ("the session as it is", patched(|c| c.session = Some("s1".into()))),
        (
            "last action member",
            patched(|c| {
                c.last_action = Some(LastAction { failed: Some(true), ..LastAction::default() });
            }),
        ),
        (
            "stats member",
            patched(|c| {
                c.event_stats =
                    Some(EventStats { power_off_graceful_attempts: Some(0), ..EventStats::default() });
            }),
        ),
        (
            "status member",
            patched(|c| {
                c.status = Some(Status { phase: Some(Phase::None), status_override: None });
            }),
        ),
        (
            "staged state that was missing",
            patched(|c| {
                let session = Some("s3".to_owned());
                c.staged_state =
                    Some(StagedState { session: session.map(Into::into), ..StagedState::default() }.into());
            }),
        ),
    ];
    check(
        &rows,
        expect![[r#"
            nothing
                actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
            scalars
                actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='e' session='anything' policy=4 gen=7 prepared=[7.1 ''] refused='refused'
            the session as it is
                actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
            last action member
                actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on failed @900] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=8 assigned=uuid
            stats member
                actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/0/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=8 assigned=uuid
            status member
                actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase: override:] enabled=true error='old trouble' session='s1' gen=8 assigned=uuid
            staged state that was missing
                actual=[ak,ap,ai~1 token:old @100] desired=[dk,dp,di cfg:conf token:dt @100] staged=[session:s3 @900] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
        "#]],
    );
}

#[test]
fn parts_that_are_missing_are_taken_as_they_come() {
    let incoming = ComponentPatch {
        actual_state: actual(Some("strange"), None),
        status: Some(Status { phase: None, status_override: Some("mine".into()) }),
        event_stats: Some(EventStats { power_on_attempts: Some(2), ..EventStats::default() }),
        ..ComponentPatch::default()
    };
    expect!["actual=[token:strange] stats=2/-/- status=[override:mine] gen=1"].assert_eq(&show(&patch(
        &bare(),
        incoming,
        tokens,
        NOW,
    )));
}

#[test]
fn putting_replaces_the_record_and_begins_a_generation() {
    let enabled = ComponentPatch { enabled: Some(true), ..ComponentPatch::default() };
    let full = ComponentPatch::repeating(&stored());
    let put = |previous: Option<&Component>, incoming| put(previous, bare().id, incoming, tokens, NOW);
    let rows = [
        ("enabled only, new", show(&put(None, enabled.clone()))),
        ("enabled only, known", show(&put(Some(&stored()), enabled))),
        ("empty, known", show(&put(Some(&stored()), ComponentPatch::default()))),
        ("everything, known", show(&put(Some(&stored()), full.clone()))),
    ];
    check(
        &rows,
        expect![[r#"
        enabled only, new
            status=[override:on_hold] enabled=true gen=1
        enabled only, known
            status=[override:on_hold] enabled=true gen=8
        empty, known
            gen=8
        everything, known
            actual=[ak,ap,ai~1 token:old @900] desired=[dk,dp,di cfg:conf token:dt @900] action=[powering_on ok @900] stats=0/0/0 status=[phase:powering_on override:on_hold] enabled=true error='old trouble' session='s1' gen=8
    "#]],
    );
    assert_eq!(put(Some(&stored()), full).revision, 40);
}

#[test]
fn discovered_nodes_start_disabled() {
    let component = newly_discovered(ComponentId::parse("x1").expect("valid"), NOW);
    expect!["actual=[.,.,. token: @900] desired=[.,.,. cfg: token: @900] staged=[@900] action=[newly_discovered ok @900] stats=0/0/0 enabled=false error='' session='' gen=1"].assert_eq(&show(&component));
    assert_eq!(computed_status(&component), ComponentStatus::STABLE);
}

#[test]
fn reports_are_refused_while_the_node_is_being_changed() {
    let at = |enabled, phase, status_override: &str, action| Component {
        wish: ComponentWish { enabled, ..ComponentWish::default() }.into(),
        evaluation: ComponentEvaluation {
            status: Some(Status { phase: Some(phase), status_override: Some(status_override.into()) }),
            ..ComponentEvaluation::default()
        }
        .into(),
        power: ComponentPower {
            last_action: Some(LastAction { action, ..LastAction::default() }),
            ..ComponentPower::default()
        }
        .into(),
        ..bare()
    };
    let (yes, no) = (Some(true), Some(false));
    let rows = [
        ("disabled", at(no, Phase::PoweringOff, "", None), true),
        ("disabled and failed", at(no, Phase::None, "failed", Some(Action::PoweringOn)), true),
        ("without enabled (BUG-05)", at(None, Phase::PoweringOff, "", None), true),
        ("stable", at(yes, Phase::None, "", None), true),
        ("power-on called", at(yes, Phase::PoweringOn, "", Some(Action::PoweringOn)), true),
        ("configuring after power-on", at(yes, Phase::Configuring, "", Some(Action::PoweringOn)), true),
        ("held after power-on", at(yes, Phase::None, "on_hold", Some(Action::PoweringOn)), true),
        ("held after set-up", at(yes, Phase::None, "on_hold", Some(Action::SessionSetup)), false),
        (
            "power-on pending after power-off",
            at(yes, Phase::PoweringOn, "", Some(Action::PoweringOffForcefully)),
            false,
        ),
        ("being switched off", at(yes, Phase::PoweringOff, "", Some(Action::PoweringOffGracefully)), false),
        ("configuring after set-up", at(yes, Phase::Configuring, "", Some(Action::SessionSetup)), false),
        ("enabled and failed", at(yes, Phase::None, "failed", Some(Action::SessionSetup)), false),
        ("without an action (BUG-05)", at(yes, Phase::PoweringOn, "", None), false),
    ];
    for (name, component, allowed) in rows {
        assert_eq!(guard_actual_state(&component).is_ok(), allowed, "{name}");
    }
    let error = guard_actual_state(&at(yes, Phase::None, "on_hold", None)).expect_err("held");
    assert_eq!(error.to_string(), "actual state cannot be written while the status is 'on_hold'");
}

#[test]
fn old_reports_are_forgotten() {
    let ttl = Duration::from_millis(50);
    let expired_as = |strict_bos, component: &Component, now| {
        let left = expire_actual_state(component, ttl, Compatibility { strict_bos }, Timestamp(now));
        left.map_or("kept".to_owned(), |left| show(&left))
    };
    let expired = |component: &Component, now| expired_as(false, component, now);
    let disabled = stored().with(|one| one.wish.enabled = Some(false));
    let unstamped = Component {
        reported: ReportedBoots { actual_state: actual(None, Some("k - -")), ..ReportedBoots::default() },
        ..bare()
    };
    let rows = [
        ("as old as allowed", expired(&disabled, 150)),
        ("older, disabled", expired(&disabled, 151)),
        ("older, enabled", expired(&stored(), 151)),
        ("older, disabled, strictly", expired_as(true, &disabled, 151)),
        ("older, enabled, strictly", expired_as(true, &stored(), 151)),
        ("as old as allowed, strictly", expired_as(true, &stored(), 150)),
        ("without a time stamp", expired(&unstamped, 1)),
        ("without a report", expired(&bare(), 1)),
        ("with an empty report", expired(&newly_discovered(bare().id, Timestamp(0)), 1000)),
    ];
    check(
        &rows,
        expect![[r#"
            as old as allowed
                kept
            older, disabled
                actual=[.,.,.~1 token: @151] desired=[dk,dp,di cfg:conf token:dt @100] action=[actual_state_cleanup ok @151] stats=1/2/3 status=[phase:powering_on override:] enabled=false error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
            older, enabled
                actual=[.,.,.~1 token: @151] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_on ok @200] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
            older, disabled, strictly
                actual=[.,.,.~1 token: @151] desired=[dk,dp,di cfg:conf token:dt @100] action=[actual_state_cleanup ok @151] stats=1/2/3 status=[phase:powering_on override:] enabled=false error='' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
            older, enabled, strictly
                actual=[.,.,.~1 token: @151] desired=[dk,dp,di cfg:conf token:dt @100] action=[actual_state_cleanup ok @151] stats=1/2/3 status=[phase:powering_on override:] enabled=true error='' session='s1' gen=7 prepared=[7.1 ''] assigned=uuid refused='refused'
            as old as allowed, strictly
                kept
            without a time stamp
                actual=[.,.,. token: @1] action=[actual_state_cleanup ok @1]
            without a report
                kept
            with an empty report
                kept
        "#]],
    );
}

/// Returns a component whose session and staged session are tenant a's.
fn of_a() -> Component {
    let tenant = Tenant::parse("a").ok();
    let staged = StagedState {
        session: Some("s2".into()),
        tenant: tenant.clone(),
        assignment: "id-2".into(),
        applied: true,
        ..StagedState::default()
    };
    stored().with(|one| {
        one.wish.session_tenant = tenant;
        one.wish.staged_state = Some(staged.into());
    })
}

fn names(component: &Component) -> String {
    let of =
        |tenant: Option<&Tenant>| tenant.map_or("?".to_owned(), |tenant| format!("'{}'", tenant.as_str()));
    let staged = component.wish.staged_state.clone().unwrap_or_default();
    format!(
        "{} of {} id '{}', staged {} of {} id '{}' applied {}",
        component.session_name(),
        of(component.wish.session_tenant.as_ref()),
        component.wish.assignment,
        component.staged_session_name(),
        of(staged.tenant.as_ref()),
        staged.assignment,
        staged.applied,
    )
}

#[test]
fn sessions_that_are_named_by_hand_are_the_writers() {
    let incoming = |writer: &str, session: &str, staged: Option<&str>| ComponentPatch {
        session_tenant: Tenant::parse(writer).ok(),
        session: Some(session.into()),
        staged_state: staged
            .map(|name| StagedState { session: Some(name.into()), ..StagedState::default() }.into()),
        ..ComponentPatch::default()
    };
    let mut rows = String::new();
    for (name, change) in [
        ("nothing", ComponentPatch { session_tenant: Tenant::parse("b").ok(), ..ComponentPatch::default() }),
        ("the same names", incoming("b", "s1", Some("s2"))),
        ("other names", incoming("b", "s2", Some("s1"))),
        ("no names", incoming("b", "", Some(""))),
        ("another session only", incoming("", "s9", None)),
        (
            "for nobody in particular",
            ComponentPatch { session_tenant: None, ..incoming("", "s9", Some("s9")) },
        ),
    ] {
        let patched = patch(&of_a(), change.clone(), tokens, NOW);
        let put = |previous| put(previous, bare().id, change.clone(), tokens, NOW);
        rows += &format!("{name}\n    patched: {}\n", names(&patched));
        rows += &format!("    put: {}\n    created: {}\n", names(&put(Some(&of_a()))), names(&put(None)));
    }
    expect![[r#"
        nothing
            patched: s1 of 'a' id 'uuid', staged s2 of 'a' id 'id-2' applied true
            put:  of ? id '', staged  of ? id '' applied false
            created:  of ? id '', staged  of ? id '' applied false
        the same names
            patched: s1 of 'a' id 'uuid', staged s2 of 'a' id 'id-2' applied false
            put: s1 of 'a' id '', staged s2 of 'a' id '' applied false
            created: s1 of 'b' id '', staged s2 of 'b' id '' applied false
        other names
            patched: s2 of 'b' id '', staged s1 of 'b' id '' applied false
            put: s2 of 'b' id '', staged s1 of 'b' id '' applied false
            created: s2 of 'b' id '', staged s1 of 'b' id '' applied false
        no names
            patched:  of ? id '', staged  of ? id '' applied false
            put:  of ? id '', staged  of ? id '' applied false
            created:  of ? id '', staged  of ? id '' applied false
        another session only
            patched: s9 of '' id '', staged s2 of 'a' id 'id-2' applied true
            put: s9 of '' id '', staged  of ? id '' applied false
            created: s9 of '' id '', staged  of ? id '' applied false
        for nobody in particular
            patched: s9 of ? id '', staged s9 of ? id '' applied false
            put: s9 of ? id '', staged s9 of ? id '' applied false
            created: s9 of ? id '', staged s9 of ? id '' applied false
    "#]]
    .assert_eq(&rows);
}

/// Returns a component of which a shutdown was asked for.
fn asked_to_shut_down() -> Component {
    stored().with(|one| {
        one.evaluation.status =
            Some(Status { phase: Some(Phase::PoweringOff), status_override: Some(Arc::default()) });
        one.power.last_action = Some(LastAction {
            action: Some(Action::PoweringOffGracefully),
            failed: Some(false),
            last_updated: Some(Timestamp(200)),
        });
        one.power.turns = PowerTurns { count: 4, last: Some(Action::PoweringOffGracefully) };
    })
}

#[test]
fn a_shutdown_is_not_the_one_of_a_wish_that_was_written_later() {
    let asked = asked_to_shut_down();
    assert!(asked.was_asked_to_shut_down());
    let given_up = asked.clone().with(|one| {
        one.evaluation.status.get_or_insert_default().status_override = Some("failed".into());
    });
    let enables = ComponentPatch { enabled: Some(true), ..ComponentPatch::default() };
    let counts = ComponentPatch {
        event_stats: Some(EventStats { power_off_graceful_attempts: Some(2), ..EventStats::default() }),
        ..enables.clone()
    };
    let phase = ComponentPatch {
        status: Some(Status { phase: Some(Phase::PoweringOff), status_override: Some(Arc::default()) }),
        ..ComponentPatch::default()
    };
    for (name, stored, change, attempts) in [
        ("enabled again", &asked, enables.clone(), [1, 0, 0]),
        ("phase by hand", &asked, phase, [1, 0, 0]),
        ("enabled again after it was given up", &given_up, enables, [1, 2, 3]),
        ("counters by hand", &asked, counts, [1, 2, 3]),
    ] {
        let patched = patch(stored, change, tokens, NOW);
        let actions = [Action::PoweringOn, Action::PoweringOffGracefully, Action::PoweringOffForcefully];
        assert_eq!(actions.map(|action| patched.attempts(action)), attempts, "{name}");
        assert_eq!(patched.last_action(), Some(Action::PoweringOffGracefully), "{name}: as in BOS");
        assert!(patched.evaluation.is_undecided && !patched.was_asked_to_shut_down(), "{name}");
    }
    let report = ComponentPatch { actual_state: actual(Some("known"), None), ..ComponentPatch::default() };
    let reported = patch(&asked, report, tokens, NOW);
    assert!(!reported.evaluation.is_undecided && reported.was_asked_to_shut_down());
}

#[test]
fn only_another_wish_begins_new_turns() {
    let asked = asked_to_shut_down();
    let disabled =
        patch(&asked, ComponentPatch { enabled: Some(false), ..ComponentPatch::default() }, tokens, NOW);
    let enables = ComponentPatch { enabled: Some(true), ..ComponentPatch::default() };
    let desired = |configuration: &str| ComponentPatch {
        desired_state: Some(DesiredState {
            configuration: Some(configuration.into()),
            ..DesiredState::default()
        }),
        ..ComponentPatch::default()
    };
    let whole = ComponentPatch::repeating(&asked);
    for (name, record, count) in [
        ("disabled and enabled", patch(&disabled, enables, tokens, NOW), 4),
        ("the same written again", patch(&asked, desired("conf"), tokens, NOW), 4),
        ("another configuration", patch(&asked, desired("other"), tokens, NOW), 0),
        ("put as it was", put(Some(&asked), asked.id.clone(), whole.clone(), tokens, NOW), 4),
        (
            "put with another desired state",
            put(Some(&asked), asked.id.clone(), ComponentPatch { desired_state: None, ..whole }, tokens, NOW),
            0,
        ),
    ] {
        assert_eq!(record.power.turns.count, count, "{name}");
    }
}
