//! Decisions about the phase of nodes whose power and configuration are known.

use super::*;

#[test]
fn nodes_that_are_off() {
    check(
        &[
            "off",
            "off phase:powering_off over:on_hold last:powering_off_gracefully:1",
            "off want last:session_setup:1",
            "off want",
            "off want last:powering_on:120000 phase:powering_on",
            "off want last:powering_on:120001 phase:powering_on",
            "off want last:powering_on phase:powering_on",
            "off want last:powering_on:5 failed phase:powering_on",
            "off want last:powering_on:120001 failed phase:powering_on",
            "off want match last:powering_on:5 phase:configuring",
            "off want last:powering_off_forcefully:5 phase:powering_off",
        ],
        expect![[r#"
            off
                off_as_wanted: '' settled
            off phase:powering_off over:on_hold last:powering_off_gracefully:1
                off_as_wanted: '' settled
            off want last:session_setup:1
                power_on_needed: 'powering_on'
            off want
                power_on_needed: 'powering_on'
            off want last:powering_on:120000 phase:powering_on
                power_on_awaited: 'powering_on' error '' until +1
            off want last:powering_on:120001 phase:powering_on
                power_on_without_effect: 'powering_on' action-failed
            off want last:powering_on phase:powering_on
                power_on_without_effect: 'powering_on' action-failed
            off want last:powering_on:5 failed phase:powering_on
                power_on_needed: 'powering_on'
            off want last:powering_on:120001 failed phase:powering_on
                power_on_without_effect: 'powering_on' action-failed
            off want match last:powering_on:5 phase:configuring
                power_on_awaited: 'powering_on' error '' until +119996
            off want last:powering_off_forcefully:5 phase:powering_off
                power_on_needed: 'powering_on'
        "#]],
    );
}

#[test]
fn nodes_that_are_on_without_the_wanted_boot() {
    check(
        &[
            "on cfs:-:",
            "on match last:powering_on:1 cfs:-:",
            "on want last:powering_on:1200000 phase:powering_on",
            "on want last:powering_on:1200001 phase:powering_on cfs:-:",
            "on want last:powering_on:5 failed phase:powering_on",
            "on want last:powering_on phase:powering_on cfs:-:",
            "on want last:session_setup:5 over:on_hold cfs:-:",
            "on want cfs:-:",
        ],
        expect![[r#"
            on cfs:-:
                power_off_needed: 'powering_off'
            on match last:powering_on:1 cfs:-:
                power_off_needed: 'powering_off'
            on want last:powering_on:1200000 phase:powering_on
                boot_awaited: 'powering_on' error '' until +1
            on want last:powering_on:1200001 phase:powering_on cfs:-:
                reboot_needed: 'powering_off'
            on want last:powering_on:5 failed phase:powering_on
                boot_awaited: 'powering_on' until +1199996
            on want last:powering_on phase:powering_on cfs:-:
                reboot_needed: 'powering_off'
            on want last:session_setup:5 over:on_hold cfs:-:
                reboot_needed: 'powering_off'
            on want cfs:-:
                reboot_needed: 'powering_off'
        "#]],
    );
}

#[test]
fn nodes_that_run_what_is_wanted() {
    check(
        &[
            "on want match cfg:c cfs:other:configured",
            "on want match cfg:c cfs:-:pending",
            "on want match cfs:-:unconfigured",
            "on want match cfs::unconfigured",
            "on want match cfg:- cfs:-:configured",
            "on want match cfg:- cfs::configured",
            "on want match cfg:- cfs:c:configured",
            "on want match cfg:c cfs:c:configured phase:configuring",
            "on want match cfg:c cfs:c:Configured over:on_hold",
            "on want match cfg:c cfs:c:PENDING",
            "on want match cfg:c cfs:c:failed",
            "on want match cfg:c cfs:c:unconfigured",
            "on want match cfg:c cfs:c:Baffled",
            "on want match cfg:c cfs:c:",
        ],
        expect![[r#"
            on want match cfg:c cfs:other:configured
                configuration_differs: 'configuring'
            on want match cfg:c cfs:-:pending
                configuration_differs: 'configuring'
            on want match cfs:-:unconfigured
                configuration_differs: 'configuring'
            on want match cfs::unconfigured
                booted: '' settled
            on want match cfg:- cfs:-:configured
                booted: '' settled
            on want match cfg:- cfs::configured
                booted: '' settled
            on want match cfg:- cfs:c:configured
                configuration_differs: 'configuring'
            on want match cfg:c cfs:c:configured phase:configuring
                configured: '' settled
            on want match cfg:c cfs:c:Configured over:on_hold
                configured: '' settled
            on want match cfg:c cfs:c:PENDING
                configuration_pending: 'configuring'
            on want match cfg:c cfs:c:failed
                configuration_failed: 'configuring' failed settled error 'cfs configuration failed'
            on want match cfg:c cfs:c:unconfigured
                configuration_unknown: 'configuring' failed settled error 'cfs is not reporting a valid configuration status for this component: unconfigured'
            on want match cfg:c cfs:c:Baffled
                configuration_unknown: 'configuring' failed settled error 'cfs is not reporting a valid configuration status for this component: Baffled'
            on want match cfg:c cfs:c:
                configuration_silent: 'configuring'
        "#]],
    );
}

#[test]
fn more_news_of_a_configuration_are_awaited_until_it_is_applied() {
    for (words, expected) in [
        ("want match cfg:c", true),
        ("want match cfg:c cfs:missing", true),
        ("want match cfg:c cfs:c:", true),
        ("want match cfg:c cfs:c:pending", true),
        ("want match cfg:c cfs:c:unconfigured", true),
        ("want match cfg:c cfs:c:failed", true),
        ("want match cfg:c cfs:other:configured", true),
        ("want match cfg:c cfs:c:configured", false),
        ("want match cfg:c cfs:c:configured off", false),
        ("want match cfs:c:configured", true),
        ("want match cfs::unconfigured", false),
    ] {
        let (component, evidence) = scene(words);
        assert_eq!(awaits_configuration(&component, &evidence.configuration), expected, "{words}");
    }
}

#[test]
fn what_has_failed_stays_failed() {
    check(
        &[
            "off over:failed",
            "off want over:failed phase:powering_on last:powering_on:5",
            "on want match cfs::configured over:failed phase:configuring",
            "on want match cfg:c cfs:c:failed over:failed",
            "on want over:failed cfs:-:",
        ],
        expect![[r#"
            off over:failed
                already_failed: '' failed settled
            off want over:failed phase:powering_on last:powering_on:5
                already_failed: 'powering_on' failed settled
            on want match cfs::configured over:failed phase:configuring
                already_failed: '' failed settled
            on want match cfg:c cfs:c:failed over:failed
                already_failed: 'configuring' failed settled error 'cfs configuration failed'
            on want over:failed cfs:-:
                already_failed: 'powering_off' failed settled
        "#]],
    );
}

#[test]
fn nodes_without_attempts_left_are_given_up() {
    check(
        &[
            "off want tries:2/0/0",
            "off want tries:3/0/0",
            "off want tries:3/0/0 error:known-trouble",
            "off want tries:3/0/0 refused:no-power",
            "off want tries:3/0/0 last:powering_on:120000 phase:powering_on",
            "off want tries:3/0/0 last:powering_on:120001 phase:powering_on",
            "off want tries:3/0/0 last:powering_on:5 failed phase:powering_on",
            "off want tries:0/0/0 limit:0",
            "off want tries:9/0/0 limit:10",
            "off tries:9/9/9",
            "on want tries:3/3/0 last:powering_on:1200000 phase:powering_on",
            "on want tries:3/2/0 last:powering_on:1200001 phase:powering_on cfs:-:",
            "on want tries:3/3/0 last:powering_on:1200001 phase:powering_on cfs:-:",
            "on tries:0/3/0 last:powering_off_gracefully:1 phase:powering_off",
            "on tries:0/1/3 last:powering_off_gracefully:300001 phase:powering_off",
            "on-again tries:0/2/0 last:powering_off_gracefully:1 phase:powering_off",
            "on-again tries:0/3/0 last:powering_off_gracefully:1 phase:powering_off",
            "on tries:0/1/2 last:powering_off_forcefully:300001 phase:powering_off",
            "on tries:0/1/3 last:powering_off_forcefully:300000 phase:powering_off",
            "on tries:0/1/3 last:powering_off_forcefully:300001 phase:powering_off",
            "on tries:0/1/3 last:powering_off_forcefully phase:powering_off",
        ],
        expect![[r#"
            off want tries:2/0/0
                power_on_needed: 'powering_on'
            off want tries:3/0/0
                retries_exhausted: 'powering_on' failed settled error 'the retry limit was reached: the node is off (power-ons: 3), and no service reported a failure'
            off want tries:3/0/0 error:known-trouble
                retries_exhausted: 'powering_on' failed settled
            off want tries:3/0/0 refused:no-power
                retries_exhausted: 'powering_on' failed settled error 'no-power'
            off want tries:3/0/0 last:powering_on:120000 phase:powering_on
                power_on_awaited: 'powering_on' error '' until +1
            off want tries:3/0/0 last:powering_on:120001 phase:powering_on
                retries_exhausted: 'powering_on' failed settled action-failed error 'the retry limit was reached: the node is off (power-ons: 3), and no service reported a failure'
            off want tries:3/0/0 last:powering_on:5 failed phase:powering_on
                retries_exhausted: 'powering_on' failed settled error 'the retry limit was reached: the node is off (power-ons: 3), and no service reported a failure'
            off want tries:0/0/0 limit:0
                retries_exhausted: 'powering_on' failed settled error 'the retry limit was reached: the node is off (power-ons: 0), and no service reported a failure'
            off want tries:9/0/0 limit:10
                power_on_needed: 'powering_on'
            off tries:9/9/9
                off_as_wanted: '' settled
            on want tries:3/3/0 last:powering_on:1200000 phase:powering_on
                boot_awaited: 'powering_on' error '' until +1
            on want tries:3/2/0 last:powering_on:1200001 phase:powering_on cfs:-:
                reboot_needed: 'powering_off'
            on want tries:3/3/0 last:powering_on:1200001 phase:powering_on cfs:-:
                retries_exhausted: 'powering_off' failed settled error 'the retry limit was reached: the node was switched on (attempts: 3) and did not report the wanted boot'
            on tries:0/3/0 last:powering_off_gracefully:1 phase:powering_off
                power_off_needed: 'powering_off' error ''
            on tries:0/1/3 last:powering_off_gracefully:300001 phase:powering_off
                retries_exhausted: 'powering_off' failed settled error 'the retry limit was reached: the node is on (forced power-offs: 3), and no service reported a failure'
            on-again tries:0/2/0 last:powering_off_gracefully:1 phase:powering_off
                power_off_needed: 'powering_off' error ''
            on-again tries:0/3/0 last:powering_off_gracefully:1 phase:powering_off
                retries_exhausted: 'powering_off' failed settled error 'the retry limit was reached: the node is on (requests to shut down: 3), and no service reported a failure'
            on tries:0/1/2 last:powering_off_forcefully:300001 phase:powering_off
                power_off_needed: 'powering_off' error ''
            on tries:0/1/3 last:powering_off_forcefully:300000 phase:powering_off
                power_off_needed: 'powering_off' error '' until +1
            on tries:0/1/3 last:powering_off_forcefully:300001 phase:powering_off
                retries_exhausted: 'powering_off' failed settled error 'the retry limit was reached: the node is on (forced power-offs: 3), and no service reported a failure'
            on tries:0/1/3 last:powering_off_forcefully phase:powering_off
                retries_exhausted: 'powering_off' failed settled error 'the retry limit was reached: the node is on (forced power-offs: 3), and no service reported a failure'
        "#]],
    );
}

#[test]
fn finished_nodes_are_let_go_unless_they_are_kept() {
    let keep = Options { disable_components_on_completion: false, ..Options::default() };
    let mut rows = String::new();
    for words in [
        "off",
        "on want match cfs::x",
        "on want match cfg:c cfs:c:configured",
        "on want match cfg:c cfs:c:failed",
        "off want",
        "off over:failed",
        "off disabled",
    ] {
        let (component, evidence) = scene(words);
        let settled = |options| evaluate(&component, &evidence, options, NOW).settled;
        writeln!(rows, "{words}: {} {}", settled(&Options::default()), settled(&keep)).expect("a string");
    }
    expect![[r#"
        off: true false
        on want match cfs::x: true false
        on want match cfg:c cfs:c:configured: true false
        on want match cfg:c cfs:c:failed: true true
        off want: false false
        off over:failed: true true
        off disabled: false false
    "#]]
    .assert_eq(&rows);
}

#[test]
fn only_differences_are_reported() {
    let rows = [
        ("off", true),
        ("off over:on_hold", true),
        ("off phase:powering_on", true),
        ("off want", true),
        ("off want phase:powering_on", false),
        ("off want phase:powering_on over:", false),
        ("off want phase:powering_on last:powering_on:120001", true),
        ("off want phase:powering_on last:powering_on:120001 failed", false),
        ("off want phase:powering_on refused:no", true),
        ("off want phase:powering_on refused:no error:no", false),
        ("off want phase:powering_on last:powering_on:1 error:old", true),
        ("off want phase:powering_on last:powering_on:1", false),
        ("want phase:powering_on", false),
        ("power:missing over:on_hold", true),
        ("power:undefined:x error:x", false),
        ("off disabled", false),
    ];
    for (words, expected) in rows {
        let (component, evidence) = scene(words);
        let decision = evaluate(&component, &evidence, &Options::default(), NOW);
        assert_eq!(decision.report(&component, DecisionVersion::default()).is_some(), expected, "{words}");
    }
}

#[test]
fn a_decision_holds_until_it_says() {
    let rows = [
        "off want phase:powering_on last:powering_on:7",
        "on want phase:powering_on last:powering_on:7",
        "on phase:powering_off last:powering_off_forcefully:7 tries:0/1/3",
    ];
    for words in rows {
        let (component, evidence) = scene(words);
        let at = |now| evaluate(&component, &evidence, &Options::default(), now);
        let decision = at(NOW);
        let until = decision.until.expect("a wait");
        assert_eq!(at(Timestamp(until.0 - 1)), decision, "{words}");
        assert_ne!(at(until), decision, "{words}");
    }
}

#[test]
fn nothing_is_switched_off_before_configuration_was_asked_for() {
    check(
        &[
            "on phase:powering_on",
            "on cfs:missing",
            "on cfs-silent:CFS over:on_hold",
            "on want over:on_hold",
            "on want cfs:missing",
            "on want cfs-silent:CFS",
            "on want cfs:-:",
            "on want phase:powering_off last:powering_off_gracefully:1 tries:0/1/0",
            "on want phase:powering_off last:session_setup:1 tries:0/0/0",
            "on phase:powering_off last:powering_off_forcefully:1 tries:0/1/1 cfs-silent:CFS",
        ],
        expect![[r#"
            on phase:powering_on
                awaiting_configuration: 'powering_on'
            on cfs:missing
                configuration_missing: '' on_hold error 'Component information was not returned by cfs'
            on cfs-silent:CFS over:on_hold
                awaiting_configuration: '' on_hold error 'waiting for CFS'
            on want over:on_hold
                awaiting_configuration: '' on_hold
            on want cfs:missing
                configuration_missing: '' on_hold error 'Component information was not returned by cfs'
            on want cfs-silent:CFS
                awaiting_configuration: '' error 'waiting for CFS'
            on want cfs:-:
                reboot_needed: 'powering_off'
            on want phase:powering_off last:powering_off_gracefully:1 tries:0/1/0
                reboot_needed: 'powering_off' error ''
            on want phase:powering_off last:session_setup:1 tries:0/0/0
                awaiting_configuration: 'powering_off'
            on phase:powering_off last:powering_off_forcefully:1 tries:0/1/1 cfs-silent:CFS
                power_off_needed: 'powering_off' error ''
        "#]],
    );
}

#[test]
fn a_shutdown_of_an_earlier_generation_does_not_go_on() {
    check(
        &[
            "on phase:powering_off last:powering_off_gracefully:300001 tries:0/1/0",
            "on phase:powering_off last:powering_off_gracefully:300001 tries:0/1/0 of-before",
            "on phase:powering_off last:powering_off_gracefully:300001 tries:0/1/0 of-before cfs:-:",
            "on phase:powering_off last:powering_off_gracefully:300001 tries:0/3/0 of-before cfs:-:",
            "on phase:powering_off last:powering_off_forcefully:300001 tries:0/1/3 of-before cfs:-:",
            "on phase:powering_off last:powering_off_forcefully:1 tries:0/1/3 of-before cfs:-:",
            "on want match phase:powering_off last:powering_off_gracefully:5 tries:0/1/0 cfs::x",
            "on want match phase:powering_off last:powering_off_gracefully:5 tries:0/1/0 of-before cfs::x",
        ],
        expect![[r#"
            on phase:powering_off last:powering_off_gracefully:300001 tries:0/1/0
                power_off_needed: 'powering_off' error ''
            on phase:powering_off last:powering_off_gracefully:300001 tries:0/1/0 of-before
                awaiting_configuration: 'powering_off'
            on phase:powering_off last:powering_off_gracefully:300001 tries:0/1/0 of-before cfs:-:
                power_off_needed: 'powering_off' error ''
            on phase:powering_off last:powering_off_gracefully:300001 tries:0/3/0 of-before cfs:-:
                retries_exhausted: 'powering_off' failed settled error 'the retry limit was reached: the node is on (requests to shut down: 3), and no service reported a failure'
            on phase:powering_off last:powering_off_forcefully:300001 tries:0/1/3 of-before cfs:-:
                retries_exhausted: 'powering_off' failed settled error 'the retry limit was reached: the node is on (forced power-offs: 3), and no service reported a failure'
            on phase:powering_off last:powering_off_forcefully:1 tries:0/1/3 of-before cfs:-:
                retries_exhausted: 'powering_off' failed settled error 'the retry limit was reached: the node is on (forced power-offs: 3), and no service reported a failure'
            on want match phase:powering_off last:powering_off_gracefully:5 tries:0/1/0 cfs::x
                reboot_needed: 'powering_off' error ''
            on want match phase:powering_off last:powering_off_gracefully:5 tries:0/1/0 of-before cfs::x
                booted: '' settled
        "#]],
    );
}

#[test]
fn the_first_decision_of_a_generation_is_reported_although_it_changes_nothing() {
    let report = |words: &str| {
        let (component, evidence) = scene(words);
        let component = component.with(|one| one.evaluation.is_undecided = true);
        evaluate(&component, &evidence, &Options::default(), NOW)
            .report(&component, DecisionVersion::default())
    };
    let decided = report("on phase:powering_off last:powering_off_gracefully:5 of-before cfs:-:");
    assert_eq!(decided.map(|report| report.awaits_evidence), Some(false));
    for waiting in ["on phase:powering_off", "phase:powering_off", "disabled on phase:powering_off cfs:-:"] {
        assert_eq!(report(waiting), None, "{waiting}");
    }
    let held = report("on phase:powering_off cfs:missing");
    assert_eq!(held.map(|report| report.awaits_evidence), Some(true));
}
