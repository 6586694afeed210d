//! Turning points, which are logged once.

use super::*;

#[test]
fn a_component_turns_once_for_each_change() {
    let rows = [
        "off",
        "off want",
        "on want match cfg:b cfs:b:configured phase:powering_on",
        "on want match last:powering_on:1000",
        "off want last:powering_on:999999 tries:3/0/0",
        "off want last:powering_on:999999 tries:3/0/0 over:failed",
        "on want match cfg:b cfs:b:failed phase:configuring",
        "power:missing want",
        "power:undefined want",
        "off want locked",
        "off want absent",
        "off want absent was-absent",
        "off want paused",
        "silent:PCS want",
        "off want silent:PCS",
        "off want turns:30:powering_off_gracefully",
    ];
    let mut lines = String::new();
    for words in rows {
        let (component, evidence) = scene(words);
        let decision = evaluate(&component, &evidence, &Options::default(), NOW);
        let repeated = component.clone().with(|one| {
            one.wish.enabled = Some(one.is_enabled() && !decision.settled);
            let status = one.evaluation.status.get_or_insert_default();
            status.phase = Some(decision.phase);
            status.status_override = Some(decision.status_override.as_str().into());
            if let Some(trouble) = decision.error.trouble() {
                show_error(one, trouble.clone());
            }
        });
        let again = evaluate(&repeated, &evidence, &Options::default(), NOW);
        let [first, second] = [decision.notice(&component), again.notice(&repeated)]
            .map(|notice| notice.map_or("-", DecisionNotice::word));
        writeln!(lines, "{words}: {first}, then {second}").expect("a string takes every text");
    }
    expect![[r#"
        off: reached, then -
        off want: -, then -
        on want match cfg:b cfs:b:configured phase:powering_on: reached, then -
        on want match last:powering_on:1000: -, then -
        off want last:powering_on:999999 tries:3/0/0: failed, then -
        off want last:powering_on:999999 tries:3/0/0 over:failed: -, then -
        on want match cfg:b cfs:b:failed phase:configuring: failed, then -
        power:missing want: held, then -
        power:undefined want: held, then -
        off want locked: held, then -
        off want absent: held, then -
        off want absent was-absent: -, then -
        off want paused: -, then -
        silent:PCS want: -, then -
        off want silent:PCS: -, then -
        off want turns:30:powering_off_gracefully: held, then -
    "#]]
    .assert_eq(&lines);
}
