//! Reports of preparations.

use expect_test::expect;

use super::*;

fn preparation_report(attempt: u32, token: &str, error: &str) -> PreparationReport {
    PreparationReport {
        id: bare().id,
        generation: 7,
        attempt,
        bss_token: token.into(),
        token_number: if token.is_empty() { 0 } else { 5 },
        trouble: trouble(error),
        refused: false,
    }
}

fn counters_after(report: &PreparationReport, component: &Component) -> Option<u32> {
    record(component, report, NOW).expect("current").map(|one| one.attempts(Action::PoweringOn))
}

#[test]
fn refused_data_spend_the_attempt_once_and_silence_spends_nothing() {
    let component = stored(Phase::PoweringOn, Action::PoweringOffGracefully);
    let spent = component.attempts(Action::PoweringOn);
    let silent = preparation_report(spent + 1, "", "waiting for BSS");
    let refused = PreparationReport { refused: true, ..preparation_report(spent + 1, "", "no such host") };
    assert_eq!(counters_after(&silent, &component), Some(spent));
    assert_eq!(counters_after(&refused, &component), Some(spent + 1));
    let after = record(&component, &refused, NOW).expect("current").expect("changed");
    assert_eq!(record(&after, &refused, NOW), Ok(None));
}

#[test]
fn preparations_leave_their_token_and_nothing_else() {
    let component = stored(Phase::PoweringOn, Action::PoweringOffGracefully);
    let old = PreparationReport { generation: 6, ..preparation_report(1, "t", "") };
    let rows = [
        ("second attempt", record(&component, &preparation_report(2, "t2", ""), NOW)),
        ("no boot data", record(&component, &preparation_report(2, "", ""), NOW)),
        ("failed", record(&component, &preparation_report(2, "", "no boot data taken"), NOW)),
        ("repeated", record(&component, &preparation_report(1, "dt", ""), NOW)),
        ("older generation", record(&component, &old, NOW)),
        ("older attempt", record(&component, &preparation_report(0, "t0", "late"), NOW)),
    ];
    check(
        &rows,
        expect![[r#"
        second attempt
            actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:t2 @100] action=[powering_off_gracefully ok @200] stats=1/1/0 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.2 ''] assigned=id-1 refused='refused'
        no boot data
            actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_off_gracefully ok @200] stats=1/1/0 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.2 ''] assigned=id-1 refused='refused'
        failed
            actual=[ak,ap,ai token: @100] desired=[dk,dp,di cfg:conf token:dt @100] action=[powering_off_gracefully ok @200] stats=1/1/0 status=[phase:powering_on override:] enabled=true error='old trouble' session='s1' gen=7 prepared=[7.2 'no boot data taken'] assigned=id-1 refused='refused'
        repeated
            unchanged
        older generation
            stale
        older attempt
            unchanged
    "#]],
    );
}
