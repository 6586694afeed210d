//! Reports of nodes, ordered by the boots that they come from.

use super::*;

/// Returns a component whose boot under the token `begun` began, and whose actual state is of the boot before.
fn begun(reported: bool) -> Component {
    let token = NumberedToken { token: "begun".into(), number: 2 };
    let boot = Some(BegunBoot { generation: 7, attempt: 1, token, reported }.into());
    stored().with(|one| one.reported.boot = boot)
}

fn report_of(token: &str, boot_artifacts: Option<Arc<BootArtifacts>>) -> ComponentPatch {
    let bss_token = (!token.is_empty()).then(|| token.into());
    let actual_state = Some(ActualState { boot_artifacts, bss_token, last_updated: None });
    ComponentPatch { actual_state, ..ComponentPatch::default() }
}

#[test]
fn reports_are_ordered_by_the_boot_of_their_token() {
    let rows = [
        ("the boot that began last", report_of("begun", None)),
        ("a boot prepared later", report_of("later", None)),
        ("the boot before", report_of("earlier", None)),
        ("a token that is not known", report_of("foreign", None)),
        ("by hand", report_of("", Some(artifacts("hk hp hi")))),
        ("by hand, with a token that is not known", report_of("foreign", Some(artifacts("hk hp hi")))),
        ("no report", ComponentPatch { error: Some("e".into()), ..ComponentPatch::default() }),
    ];
    let mut seen = String::new();
    for (name, report) in rows {
        for reported in [false, true] {
            let before = begun(reported);
            let after = patch(&before, report.clone(), tokens, NOW);
            let again = patch(&after, report.clone(), tokens, NOW.plus(Duration::from_secs(9)));
            assert_eq!(again.reported.late_report, after.reported.late_report, "{name}: noted once");
            let counts = after.reported.boot.as_ref().is_some_and(|boot| boot.reported);
            let same = after.reported.actual_state == before.reported.actual_state;
            let late = after.reported.late_report.as_ref().map_or("-", |late| &*late.token);
            seen += &format!("{name}, reported {reported}: {counts}, same state {same}, late {late}\n");
            assert_eq!(after.generation, before.generation, "{name}");
        }
    }
    expect![[r#"
        the boot that began last, reported false: true, same state false, late -
        the boot that began last, reported true: true, same state false, late -
        a boot prepared later, reported false: true, same state false, late -
        a boot prepared later, reported true: true, same state false, late -
        the boot before, reported false: false, same state true, late earlier
        the boot before, reported true: true, same state true, late earlier
        a token that is not known, reported false: false, same state false, late -
        a token that is not known, reported true: true, same state false, late -
        by hand, reported false: true, same state false, late -
        by hand, reported true: true, same state false, late -
        by hand, with a token that is not known, reported false: true, same state false, late -
        by hand, with a token that is not known, reported true: true, same state false, late -
        no report, reported false: false, same state true, late -
        no report, reported true: true, same state true, late -
    "#]]
    .assert_eq(&seen);
}

#[test]
fn a_put_keeps_the_boot_and_a_late_report_in_it_does_not_count() {
    for (token, counts) in [("begun", true), ("later", true), ("earlier", false)] {
        let record = put(Some(&begun(true)), bare().id, report_of(token, None), tokens, NOW);
        assert_eq!(record.reported.boot.map(|boot| boot.reported), Some(counts), "{token}");
    }
    assert_eq!(
        put(Some(&begun(false)), bare().id, ComponentPatch::default(), tokens, NOW).reported.boot,
        begun(false).reported.boot
    );
}

#[test]
fn the_last_report_of_the_last_boot_shows_that_the_node_runs() {
    let earlier = Some(Timestamp(NOW.0 - 1));
    let runs = |component: Component| component.with(|one| one.reported.running_report = earlier);
    let is_switched = |action, failed| {
        begun(false).with(|one| {
            one.power.last_action =
                Some(LastAction { action: Some(action), failed: Some(failed), last_updated: earlier });
        })
    };
    let asked = Action::PoweringOffGracefully;
    let rows = [
        ("the boot that began last", begun(false), report_of("begun", None), Some(NOW)),
        ("the same again", runs(begun(true)), report_of("begun", None), Some(NOW)),
        ("a boot that did not begin", begun(false), report_of("later", None), None),
        ("the boot before", runs(begun(true)), report_of("earlier", None), earlier),
        ("no token", runs(begun(true)), report_of("", Some(artifacts("hk hp hi"))), None),
        ("no report", runs(begun(true)), ComponentPatch::default(), earlier),
        (
            "while it is switched on",
            is_switched(Action::PoweringOn, false),
            report_of("begun", None),
            Some(NOW),
        ),
        ("while it shuts down", is_switched(asked, false), report_of("begun", None), None),
        ("after a shutdown that failed", is_switched(asked, true), report_of("begun", None), Some(NOW)),
    ];
    for (name, before, report, expected) in rows {
        let written = patch(&before, report.clone(), tokens, NOW);
        assert_eq!(written.reported.running_report, expected, "{name}");
        let replaced = put(Some(&before), bare().id, report, tokens, NOW);
        let keeps_action = before.last_action() != Some(asked);
        assert!(!keeps_action || replaced.reported.running_report == expected, "{name}, in a put");
    }
}
