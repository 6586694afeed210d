use expect_test::expect;

use super::*;
use crate::boot::{
    component::{
        ActualState, ComponentPower, EventStats, LastAction, ReportedBoots, Status,
        view::{artifacts, bare, show, stamped, trouble},
    },
    session::tests::session,
};

const NOW: Timestamp = Timestamp(900);

fn tokens(token: &str) -> Option<KnownToken> {
    (token == "at").then(|| KnownToken { boot_artifacts: stamped("tk tp ti", Timestamp(5)), number: 1 })
}

fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).expect("valid")
}

fn terms() -> Terms {
    Terms { tenant: tenant(""), clear_stage: false, compatibility: Compatibility::default() }
}

fn strict() -> Terms {
    Terms { compatibility: Compatibility { strict_bos: true }, ..terms() }
}

fn own(operation: Operation) -> Standing {
    Standing::Own { id: "id-3".into(), operation }
}

/// Returns a component that failed to boot the target of another session, and for which a session has staged
/// `artifacts`.
fn staged(artifacts_text: Option<&str>) -> Component {
    Component {
        generation: 7,
        reported: ReportedBoots {
            actual_state: Some(ActualState {
                boot_artifacts: Some(artifacts("ak ap ai")),
                bss_token: Some("at".into()),
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
            staged_state: Some(
                StagedState {
                    boot_artifacts: artifacts_text.map(artifacts),
                    configuration: Some("new".into()),
                    session: Some("s3".into()),
                    tenant: Some(tenant("")),
                    assignment: "id-3".into(),
                    applied: false,
                    last_updated: Some(Timestamp(300)),
                }
                .into(),
            ),
            enabled: Some(false),
            session: Some("s1".into()),
            session_tenant: Some(tenant("")),
            assignment: "id-1".into(),
            ..ComponentWish::default()
        }
        .into(),
        power: ComponentPower {
            last_action: Some(LastAction {
                action: Some(Action::PoweringOn),
                failed: Some(true),
                last_updated: Some(Timestamp(200)),
            }),
            event_stats: Some(EventStats {
                power_on_attempts: Some(3),
                power_off_graceful_attempts: Some(0),
                power_off_forceful_attempts: Some(0),
            }),
            trouble: trouble("refused"),
            ..ComponentPower::default()
        }
        .into(),
        evaluation: ComponentEvaluation {
            status: Some(Status { phase: None, status_override: Some("failed".into()) }),
            error: Some("old trouble".into()),
            ..ComponentEvaluation::default()
        }
        .into(),
        ..bare()
    }
}

fn text(component: &Component, standing: &Standing, terms: &Terms) -> String {
    let (verdict, record) = apply(component, standing, terms, tokens, NOW);
    format!("{verdict:?}\n    {}\n", record.map_or_else(|| "unchanged".to_owned(), |record| show(&record)))
}

#[test]
fn every_row_of_the_rule() {
    let boots = Some("nk np ni");
    let foreign = |terms: &Terms| Terms { tenant: tenant("a"), ..terms.clone() };
    let unowned = staged(None).with(|one| one.wish.staged_state = Some(StagedState::default().into()));
    let rows = [
        ("nothing staged", text(&bare(), &Standing::Gone, &terms())),
        ("staged by nobody", text(&unowned, &Standing::Gone, &terms())),
        ("session gone", text(&staged(boots), &Standing::Gone, &terms())),
        ("session of somebody else", text(&staged(boots), &Standing::Foreign, &foreign(&terms()))),
        ("session of somebody else, strict", text(&staged(boots), &Standing::Foreign, &foreign(&strict()))),
        ("shutdown with a kernel", text(&staged(Some("nk - .")), &own(Operation::Shutdown), &terms())),
        ("boot without initrd", text(&staged(Some("nk np .")), &own(Operation::Boot), &terms())),
        ("boot of nothing (BUG-26)", text(&staged(None), &own(Operation::Boot), &terms())),
        ("reboot of nothing, strict", text(&staged(None), &own(Operation::Reboot), &strict())),
        ("session gone, strict", text(&staged(boots), &Standing::Gone, &strict())),
        (
            "shutdown with a kernel, strict",
            text(&staged(Some("nk - .")), &own(Operation::Shutdown), &strict()),
        ),
        ("boot", text(&staged(boots), &own(Operation::Boot), &terms())),
        ("boot, strict (BUG-35)", text(&staged(boots), &own(Operation::Boot), &strict())),
        ("reboot", text(&staged(boots), &own(Operation::Reboot), &terms())),
        ("shutdown", text(&staged(Some(". . .")), &own(Operation::Shutdown), &terms())),
        ("shutdown without artifacts", text(&staged(None), &own(Operation::Shutdown), &terms())),
        (
            "no last action",
            text(&staged(boots).with(|one| one.power.last_action = None), &own(Operation::Boot), &terms()),
        ),
    ];
    let lines: Vec<_> = rows.iter().map(|(name, line)| format!("{name}: {line}")).collect();
    expect![[r#"
        nothing staged: Ignored
            unchanged
        staged by nobody: Ignored
            unchanged
        session gone: Failed
            actual=[tk,tp,ti~5 token:at @900] desired=[dk,dp,di cfg:conf token:dt @900] staged=[nk,np,ni cfg:new session:s3 of:'' id:id-3 applied @900] action=[apply_staged failed @900] stats=0/0/0 status=[override:failed] enabled=false error='the staged session no longer exists (session: s3, tenant: )' session='s3' of='' gen=8 assigned=id-3
        session of somebody else: Failed
            unchanged
        session of somebody else, strict: Failed
            actual=[tk,tp,ti~5 token:at @900] desired=[dk,dp,di cfg:conf token:dt @900] staged=[nk,np,ni cfg:new session:s3 of:'' id:id-3 applied @900] action=[apply_staged failed @900] stats=0/0/0 status=[override:failed] enabled=false error='Staged session no longer exists (session: s3, tenant: a)' session='s3' of='' gen=8 assigned=id-3
        shutdown with a kernel: Failed
            actual=[tk,tp,ti~5 token:at @900] desired=[dk,dp,di cfg:conf token:dt @900] staged=[nk,-,. cfg:new session:s3 of:'' id:id-3 applied @900] action=[apply_staged failed @900] stats=0/0/0 status=[override:failed] enabled=false error='the staged session shuts down, but boot artifacts are staged (session: s3, tenant: )' session='s3' of='' gen=8 assigned=id-3
        boot without initrd: Failed
            actual=[tk,tp,ti~5 token:at @900] desired=[dk,dp,di cfg:conf token:dt @900] staged=[nk,np,. cfg:new session:s3 of:'' id:id-3 applied @900] action=[apply_staged failed @900] stats=0/0/0 status=[override:failed] enabled=false error='the staged boot artifacts are incomplete, initrd missing (session: s3, tenant: )' session='s3' of='' gen=8 assigned=id-3
        boot of nothing (BUG-26): Failed
            actual=[tk,tp,ti~5 token:at @900] desired=[dk,dp,di cfg:conf token:dt @900] staged=[cfg:new session:s3 of:'' id:id-3 applied @900] action=[apply_staged failed @900] stats=0/0/0 status=[override:failed] enabled=false error='the staged boot artifacts are incomplete, kernel, kernel_parameters, initrd missing (session: s3, tenant: )' session='s3' of='' gen=8 assigned=id-3
        reboot of nothing, strict: Failed
            actual=[tk,tp,ti~5 token:at @900] desired=[dk,dp,di cfg:conf token:dt @900] staged=[cfg:new session:s3 of:'' id:id-3 applied @900] action=[apply_staged failed @900] stats=0/0/0 status=[override:failed] enabled=false error='Staged operation is reboot but some boot artifacts have not been specified (session: s3, tenant: )' session='s3' of='' gen=8 assigned=id-3
        session gone, strict: Failed
            actual=[tk,tp,ti~5 token:at @900] desired=[dk,dp,di cfg:conf token:dt @900] staged=[nk,np,ni cfg:new session:s3 of:'' id:id-3 applied @900] action=[apply_staged failed @900] stats=0/0/0 status=[override:failed] enabled=false error='Staged session no longer exists (session: s3, tenant: )' session='s3' of='' gen=8 assigned=id-3
        shutdown with a kernel, strict: Failed
            actual=[tk,tp,ti~5 token:at @900] desired=[dk,dp,di cfg:conf token:dt @900] staged=[nk,-,. cfg:new session:s3 of:'' id:id-3 applied @900] action=[apply_staged failed @900] stats=0/0/0 status=[override:failed] enabled=false error='Staged operation is shutdown but boot artifacts have been specified (session: s3, tenant: )' session='s3' of='' gen=8 assigned=id-3
        boot: Succeeded
            actual=[tk,tp,ti~5 token:at @900] desired=[nk,np,ni cfg:new @900] staged=[nk,np,ni cfg:new session:s3 of:'' id:id-3 applied @900] action=[apply_staged failed @900] stats=0/0/0 status=[override:on_hold] enabled=true error='' session='s3' of='' gen=8 assigned=id-3
        boot, strict (BUG-35): Succeeded
            actual=[tk,tp,ti~5 token:at @900] desired=[nk,np,ni cfg:new @900] staged=[nk,np,ni cfg:new session:s3 of:'' id:id-3 applied @900] action=[apply_staged failed @900] stats=0/0/0 status=[override:on_hold] enabled=true error='old trouble' session='s3' of='' gen=8 assigned=id-3
        reboot: Succeeded
            actual=[.,.,. token: @900] desired=[nk,np,ni cfg:new @900] staged=[nk,np,ni cfg:new session:s3 of:'' id:id-3 applied @900] action=[apply_staged failed @900] stats=0/0/0 status=[override:on_hold] enabled=true error='' session='s3' of='' gen=8 assigned=id-3
        shutdown: Succeeded
            actual=[tk,tp,ti~5 token:at @900] desired=[.,.,. cfg:new @900] staged=[.,.,. cfg:new session:s3 of:'' id:id-3 applied @900] action=[apply_staged failed @900] stats=0/0/0 status=[override:on_hold] enabled=true error='' session='s3' of='' gen=8 assigned=id-3
        shutdown without artifacts: Succeeded
            actual=[tk,tp,ti~5 token:at @900] desired=[cfg:new @900] staged=[cfg:new session:s3 of:'' id:id-3 applied @900] action=[apply_staged failed @900] stats=0/0/0 status=[override:on_hold] enabled=true error='' session='s3' of='' gen=8 assigned=id-3
        no last action: Failed
            unchanged
    "#]].assert_eq(&lines.concat());
}

#[test]
fn a_stage_is_cleared_if_wanted_also_when_it_fails() {
    let terms = Terms { clear_stage: true, ..terms() };
    for standing in [own(Operation::Boot), Standing::Gone] {
        let (_, record) = apply(&staged(Some("nk np ni")), &standing, &terms, tokens, NOW);
        let record = record.expect("changed");
        let cleared = StagedState {
            boot_artifacts: Some(BootArtifacts::empty().into()),
            configuration: Some(std::sync::Arc::default()),
            last_updated: Some(NOW),
            ..StagedState::default()
        };
        assert_eq!(record.wish.staged_state, Some(cleared.into()));
        assert_eq!(apply(&record, &standing, &terms, tokens, NOW), (Verdict::Ignored, None));
    }
}

#[test]
fn the_stage_of_somebody_else_is_cleared_and_nothing_else() {
    let before = staged(Some("nk np ni"));
    let terms = Terms { clear_stage: true, tenant: tenant("a"), ..terms() };
    let (verdict, record) = apply(&before, &Standing::Foreign, &terms, tokens, NOW);
    let record = record.expect("changed");
    let stage = record.wish.staged_state.as_deref().expect("there is one");
    let nothing = BootArtifacts::empty();
    assert_eq!(
        (verdict, &stage.session, &*stage.assignment, stage.boot_artifacts.as_deref(), stage.last_updated),
        (Verdict::Failed, &None, "", Some(&nothing), Some(NOW))
    );
    assert_eq!(record.with(|one| one.wish.staged_state = before.wish.staged_state.clone()), before);

    let bare = before.with(|one| one.power.last_action = None);
    assert_eq!(apply(&bare, &Standing::Foreign, &terms, tokens, NOW), (Verdict::Failed, None));
}

#[test]
fn what_stays_staged_can_be_applied_again() {
    let (_, first) = apply(&staged(Some("nk np ni")), &own(Operation::Boot), &terms(), tokens, NOW);
    let first = first.expect("changed");
    let (verdict, second) = apply(&first, &own(Operation::Boot), &terms(), tokens, NOW);
    let second = second.expect("changed");
    assert_eq!((verdict, second.generation), (Verdict::Succeeded, first.generation + 1));
}

#[test]
fn sessions_are_found_by_id_or_by_whom_they_were_named_for() {
    let of = |owner: &str, id: &str| Session {
        tenant: tenant(owner),
        id: id.to_owned(),
        operation: Operation::Reboot,
        ..session("s")
    };
    let all = [of("", "1"), of("a", "2"), Session { name: "other".to_owned(), ..of("", "3") }];
    let mut rows = String::new();
    for (name, owner, id) in [
        ("s", Some(""), "1"),
        ("s", Some("a"), "2"),
        ("s", Some("a"), "9"),
        ("s", Some(""), "9"),
        ("other", Some(""), "1"),
        ("s", None, ""),
        ("s", Some(""), ""),
        ("s", Some("a"), ""),
        ("s", Some("b"), ""),
        ("other", None, ""),
        ("gone", None, ""),
    ] {
        let reference = SessionReference { name: name.into(), tenant: owner.map(tenant), id: id.into() };
        let told = ["", "a"].map(|asker| match standing(&reference, &tenant(asker), &all) {
            Standing::Own { id, .. } => format!("own {id}"),
            Standing::Foreign => "foreign".to_owned(),
            Standing::Gone => "gone".to_owned(),
        });
        rows += &format!("{name} {owner:?} '{id}': administrator {}, tenant a {}\n", told[0], told[1]);
    }
    expect![[r#"
        s Some("") '1': administrator own 1, tenant a foreign
        s Some("a") '2': administrator foreign, tenant a own 2
        s Some("a") '9': administrator foreign, tenant a gone
        s Some("") '9': administrator gone, tenant a foreign
        other Some("") '1': administrator gone, tenant a foreign
        s None '': administrator own 1, tenant a own 2
        s Some("") '': administrator own 1, tenant a foreign
        s Some("a") '': administrator foreign, tenant a own 2
        s Some("b") '': administrator foreign, tenant a foreign
        other None '': administrator own 3, tenant a foreign
        gone None '': administrator gone, tenant a gone
    "#]]
    .assert_eq(&rows);
}
