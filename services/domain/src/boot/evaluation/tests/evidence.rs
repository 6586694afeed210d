//! Decisions where evidence is missing, late or from before.

use super::*;

#[test]
fn what_is_not_known_changes_nothing() {
    check(
        &[
            "want phase:powering_off",
            "want over:on_hold cfs:missing",
            "want phase:powering_on over:on_hold",
            "on want match phase:powering_on",
            "on want match over:on_hold",
            "on want match phase:configuring over:failed",
            "off want disabled phase:powering_off over:mine",
        ],
        expect![[r#"
            want phase:powering_off
                awaiting_power: 'powering_off'
            want over:on_hold cfs:missing
                awaiting_power: '' on_hold
            want phase:powering_on over:on_hold
                awaiting_power: 'powering_on' on_hold
            on want match phase:powering_on
                awaiting_configuration: 'powering_on'
            on want match over:on_hold
                awaiting_configuration: '' on_hold
            on want match phase:configuring over:failed
                awaiting_configuration: 'configuring' failed
            off want disabled phase:powering_off over:mine
                not_enabled: 'powering_off' mine
        "#]],
    );
}

#[test]
fn undefined_power_shows_its_words_and_changes_nothing() {
    check(
        &[
            "power:undefined want phase:powering_on",
            "power:undefined:BMC-timeout want phase:powering_off over:on_hold",
            "power:undefined want match phase:configuring cfs:-:",
            "power:undefined want phase:powering_on over:failed",
        ],
        expect![[r#"
            power:undefined want phase:powering_on
                power_undefined: 'powering_on' error 'the power state of the component is undefined'
            power:undefined:BMC-timeout want phase:powering_off over:on_hold
                power_undefined: 'powering_off' on_hold error 'BMC-timeout'
            power:undefined want match phase:configuring cfs:-:
                power_undefined: 'configuring' error 'the power state of the component is undefined'
            power:undefined want phase:powering_on over:failed
                power_undefined: 'powering_on' failed error 'the power state of the component is undefined'
        "#]],
    );
}

#[test]
fn nodes_left_out_of_an_answer_are_held_but_not_disabled() {
    check(
        &[
            "power:missing want phase:powering_off",
            "power:missing cfs:missing",
            "power:undefined cfs:missing phase:powering_on",
            "power:undefined:BMC-timeout cfs:missing",
            "off cfs:missing want",
            "on cfs:missing want match phase:configuring",
            "power:missing want phase:powering_on over:failed",
        ],
        expect![[r#"
            power:missing want phase:powering_off
                power_missing: 'powering_off' on_hold error 'Component information was not returned by pcs'
            power:missing cfs:missing
                power_missing: '' on_hold error 'Component information was not returned by pcs'
            power:undefined cfs:missing phase:powering_on
                power_missing: 'powering_on' on_hold error 'Component information was not returned by pcs'
            power:undefined:BMC-timeout cfs:missing
                configuration_missing: '' on_hold error 'Component information was not returned by cfs'
            off cfs:missing want
                configuration_missing: '' on_hold error 'Component information was not returned by cfs'
            on cfs:missing want match phase:configuring
                configuration_missing: 'configuring' on_hold error 'Component information was not returned by cfs'
            power:missing want phase:powering_on over:failed
                already_failed: 'powering_on' failed settled error 'Component information was not returned by pcs'
        "#]],
    );
}

#[test]
fn off_from_before_a_report_decides_nothing() {
    check(
        &[
            "power:doubted want match last:powering_on:999999 phase:powering_on",
            "power:doubted want match last:session_setup:100 over:on_hold",
            "power:doubted last:session_setup:100 over:on_hold",
            "power:doubted last:powering_off_gracefully:999999 phase:powering_off",
            "power:doubted want last:session_setup:100 cfs:missing",
        ],
        expect![[r#"
            power:doubted want match last:powering_on:999999 phase:powering_on
                off_against_report: 'powering_on'
            power:doubted want match last:session_setup:100 over:on_hold
                off_against_report: '' on_hold
            power:doubted last:session_setup:100 over:on_hold
                off_against_report: '' on_hold
            power:doubted last:powering_off_gracefully:999999 phase:powering_off
                off_against_report: 'powering_off'
            power:doubted want last:session_setup:100 cfs:missing
                configuration_missing: '' on_hold error 'Component information was not returned by cfs'
        "#]],
    );
}

#[test]
fn errors_about_missing_evidence_go_when_it_is_there() {
    for error in [ERROR_POWER_MISSING, ERROR_CONFIGURATION_MISSING, ERROR_POWER_UNDEFINED] {
        for words in ["off over:on_hold", "off want over:on_hold", "on want match cfs::x"] {
            let (mut component, evidence) = scene(words);
            show_error(&mut component, Trouble::own(TroubleKind::Held, error));
            let decision = evaluate(&component, &evidence, &Options::default(), NOW);
            assert_eq!(decision.error, ErrorChange::Clear, "{words} {error}");
        }
    }
}

#[test]
fn left_out_nodes_are_read_again_unless_strict() {
    let mut rows = String::new();
    for words in [
        "power:missing",
        "off cfs:missing",
        "power:undefined:x",
        "off",
        "off want",
        "off want tries:3/0/0",
        "off want tries:3/0/0 error:known",
        "off want tries:1/0/0 refused:no last:powering_on:5 failed phase:powering_on",
        "off want tries:3/0/0 refused:no last:powering_on:5 failed phase:powering_on",
        "on tries:0/1/0 refused:no last:powering_off_gracefully:5 failed phase:powering_off",
    ] {
        let (component, evidence) = scene(words);
        for strict_bos in [false, true] {
            let decision = evaluate(&component, &evidence, &Options::default(), NOW);
            let decision = decision.followed(&component, Compatibility { strict_bos });
            let mode = if strict_bos { "strict" } else { "" };
            writeln!(rows, "{words:20} {mode:6} {}", show(&decision)).expect("a string");
        }
    }
    expect![[r#"
        power:missing               power_missing: '' on_hold error 'Component information was not returned by pcs'
        power:missing        strict power_missing: '' on_hold settled error 'Component information was not returned by pcs'
        off cfs:missing             configuration_missing: '' on_hold error 'Component information was not returned by cfs'
        off cfs:missing      strict configuration_missing: '' on_hold settled error 'Component information was not returned by cfs'
        power:undefined:x           power_undefined: '' error 'x'
        power:undefined:x    strict power_undefined: '' error 'x'
        off                         off_as_wanted: '' settled
        off                  strict off_as_wanted: '' settled
        off want                    power_on_needed: 'powering_on'
        off want             strict power_on_needed: 'powering_on'
        off want tries:3/0/0        retries_exhausted: 'powering_on' failed settled error 'the retry limit was reached: the node is off (power-ons: 3), and no service reported a failure'
        off want tries:3/0/0 strict retries_exhausted: 'powering_on' failed settled error 'The retry limit has been hit for this component, but no services have reported specific errors'
        off want tries:3/0/0 error:known        retries_exhausted: 'powering_on' failed settled
        off want tries:3/0/0 error:known strict retries_exhausted: 'powering_on' failed settled
        off want tries:1/0/0 refused:no last:powering_on:5 failed phase:powering_on        power_on_needed: 'powering_on' error 'no'
        off want tries:1/0/0 refused:no last:powering_on:5 failed phase:powering_on strict power_on_needed: 'powering_on' error 'Error encountered calling CAPMC to power on: no'
        off want tries:3/0/0 refused:no last:powering_on:5 failed phase:powering_on        retries_exhausted: 'powering_on' failed settled error 'no'
        off want tries:3/0/0 refused:no last:powering_on:5 failed phase:powering_on strict retries_exhausted: 'powering_on' failed settled error 'Error encountered calling CAPMC to power on: no'
        on tries:0/1/0 refused:no last:powering_off_gracefully:5 failed phase:powering_off        power_off_needed: 'powering_off' error 'no'
        on tries:0/1/0 refused:no last:powering_off_gracefully:5 failed phase:powering_off strict power_off_needed: 'powering_off' error 'no'
    "#]].assert_eq(&rows);
}

#[test]
fn a_report_of_the_attempt_under_way_proves_the_node_on() {
    let mut rows = Vec::new();
    let reported = "want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c";
    for power in ["", "off ", "power:doubted ", "power:undefined ", "power:missing ", "on "] {
        for report in ["boot:7.1+ reported:begun:999999", "boot:7.1"] {
            rows.push(format!("{power}{reported} {report} cfs:c:configured"));
        }
    }
    let off =
        "power:doubted want match tries:1/0/0 phase:powering_on reported:begun:1000 cfs:c:configured cfg:c";
    rows.push(format!("{off} last:powering_on:5000 boot:7.1+ cfs:c:pending"));
    rows.push(format!("{off} last:powering_on:5000 boot:7.1+ cfs:missing"));
    rows.push(format!("{off} last:powering_on:5000 boot:6.1+"));
    rows.push(format!("{off} last:powering_off_gracefully:5000 boot:7.1+"));
    check(
        &rows.iter().map(String::as_str).collect::<Vec<_>>(),
        expect![[r#"
            want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:999999 cfs:c:configured
                configured: '' settled
            want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1 cfs:c:configured
                awaiting_power: 'powering_on'
            off want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:999999 cfs:c:configured
                power_on_without_effect: 'powering_on' action-failed
            off want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1 cfs:c:configured
                power_on_without_effect: 'powering_on' action-failed
            power:doubted want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:999999 cfs:c:configured
                configured: '' settled
            power:doubted want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1 cfs:c:configured
                off_against_report: 'powering_on'
            power:undefined want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:999999 cfs:c:configured
                configured: '' settled
            power:undefined want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1 cfs:c:configured
                power_undefined: 'powering_on' error 'the power state of the component is undefined'
            power:missing want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:999999 cfs:c:configured
                power_missing: 'powering_on' on_hold error 'Component information was not returned by pcs'
            power:missing want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1 cfs:c:configured
                power_missing: 'powering_on' on_hold error 'Component information was not returned by pcs'
            on want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:999999 cfs:c:configured
                configured: '' settled
            on want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1 cfs:c:configured
                boot_awaited: 'powering_on' error '' until +1050001
            power:doubted want match tries:1/0/0 phase:powering_on reported:begun:1000 cfs:c:configured cfg:c last:powering_on:5000 boot:7.1+ cfs:c:pending
                configuration_pending: 'configuring'
            power:doubted want match tries:1/0/0 phase:powering_on reported:begun:1000 cfs:c:configured cfg:c last:powering_on:5000 boot:7.1+ cfs:missing
                configuration_missing: 'powering_on' on_hold error 'Component information was not returned by cfs'
            power:doubted want match tries:1/0/0 phase:powering_on reported:begun:1000 cfs:c:configured cfg:c last:powering_on:5000 boot:6.1+
                off_against_report: 'powering_on'
            power:doubted want match tries:1/0/0 phase:powering_on reported:begun:1000 cfs:c:configured cfg:c last:powering_off_gracefully:5000 boot:7.1+
                off_against_report: 'powering_on'
        "#]],
    );
}

#[test]
fn a_reading_from_before_an_action_does_not_end_it() {
    let mut seen = String::new();
    for (words, story) in [
        ("off want last:powering_on:130000 tries:1/0/0 phase:powering_on", "read since"),
        ("read-before off want last:powering_on:130000 tries:1/0/0 phase:powering_on", "read before"),
        ("read-before off want last:powering_on:130000 tries:3/0/0 phase:powering_on", "the last attempt"),
        ("off want last:powering_on:130000 tries:3/0/0 phase:powering_on", "the last attempt, read since"),
        ("read-before off want last:powering_on:130000 failed tries:3/0/0 phase:powering_on", "it failed"),
        ("read-before on last:powering_off_forcefully:400000 tries:0/1/3 phase:powering_off", "forced"),
        ("on last:powering_off_forcefully:400000 tries:0/1/3 phase:powering_off", "forced, read since"),
    ] {
        let (component, evidence) = scene(&format!("cfs:-: {words}"));
        let decision = evaluate(&component, &evidence, &Options::default(), NOW);
        writeln!(seen, "{story}: {}", show(&decision)).expect("a string takes every text");
    }
    expect![[r#"
        read since: power_on_without_effect: 'powering_on' action-failed
        read before: power_on_awaited: 'powering_on' error ''
        the last attempt: power_on_awaited: 'powering_on' error ''
        the last attempt, read since: retries_exhausted: 'powering_on' failed settled action-failed error 'the retry limit was reached: the node is off (power-ons: 3), and no service reported a failure'
        it failed: retries_exhausted: 'powering_on' failed settled action-failed error 'the retry limit was reached: the node is off (power-ons: 3), and no service reported a failure'
        forced: power_off_needed: 'powering_off' error ''
        forced, read since: retries_exhausted: 'powering_off' failed settled error 'the retry limit was reached: the node is on (forced power-offs: 3), and no service reported a failure'
    "#]].assert_eq(&seen);
}

#[test]
fn a_report_during_a_shutdown_is_of_the_boot_that_ends() {
    let runs = "on want match cfs:-:";
    let mut seen = String::new();
    for (words, story) in [
        ("phase:powering_off", "nothing was called"),
        ("phase:powering_off last:powering_off_gracefully:1 tries:0/1/0", "it was called"),
        ("phase:powering_off last:powering_off_gracefully:1 failed tries:0/1/0", "it was refused"),
        ("phase:powering_off last:powering_off_gracefully:1", "called in another generation"),
        ("phase:powering_off last:powering_off_forcefully:1 tries:0/1/1", "it was forced"),
        ("phase:powering_on last:powering_on:1 tries:1/1/0", "it was switched on again"),
    ] {
        let (component, evidence) = scene(&format!("{runs} {words}"));
        let decision = evaluate(&component, &evidence, &Options::default(), NOW);
        writeln!(seen, "{story}: {}", show(&decision)).expect("a string takes every text");
    }
    expect![[r#"
        nothing was called: configuration_differs: 'configuring'
        it was called: reboot_needed: 'powering_off' error ''
        it was refused: configuration_differs: 'configuring'
        called in another generation: configuration_differs: 'configuring'
        it was forced: reboot_needed: 'powering_off' error ''
        it was switched on again: configuration_differs: 'configuring'
    "#]]
    .assert_eq(&seen);
}

#[test]
fn a_boot_of_an_earlier_generation_says_that_its_report_may_be_lost() {
    let booting = "on want last:powering_on:1 tries:1/0/0 phase:powering_on";
    let mut seen = String::new();
    for (words, story) in [
        ("boot:7.1", "it began in this generation"),
        ("boot:6.1", "it began before commits were lost"),
        ("boot:6.1 turns:12:powering_on", "no turn is left"),
        ("boot:6.1 refused:no-results", "its upstream has trouble"),
        ("boot:6.1 match boot:6.1+ cfs:-: waited:it", "its report has arrived"),
        ("boot:6.1 last:powering_on:1200001 cfs:-: waited:it", "its time is over"),
    ] {
        let (component, evidence) = scene(&format!("{booting} {words}"));
        let decision = evaluate(&component, &evidence, &Options::default(), NOW);
        writeln!(seen, "{story}: {}", show(&decision)).expect("a string takes every text");
    }
    expect![[r#"
        it began in this generation: boot_awaited: 'powering_on' error '' until +1200000
        it began before commits were lost: boot_awaited: 'powering_on' error 'waiting for the node to report the boot that its last action began; the report may have been lost, so the wait ends max_boot_wait_time after that action' until +1200000
        no turn is left: boot_awaited: 'powering_on' error 'the node was switched off and on in turn as often as one wish can explain; before it is switched against its last action again, it is held until something else is wanted of it or it is given to a session again' until +1200000
        its upstream has trouble: boot_awaited: 'powering_on' error 'no-results' until +1200000
        its report has arrived: configuration_differs: 'configuring' error ''
        its time is over: reboot_needed: 'powering_off' error ''
    "#]].assert_eq(&seen);

    let (component, evidence) = scene(&format!("{booting} boot:6.1"));
    let decision = evaluate(&component, &evidence, &Options::default(), NOW);
    assert_eq!(decision.error.trouble().map(Trouble::kind), Some(TroubleKind::NoResults));
}

#[test]
fn an_actual_state_of_the_boot_before_does_not_count() {
    check(
        &[
            "on want match last:powering_on:1 tries:1/0/0 phase:powering_on cfs:-:",
            "on want match last:powering_on:1 tries:1/0/0 phase:powering_on cfs:-: boot:7.1",
            "on want match last:powering_on:1 tries:1/0/0 phase:powering_on cfs:-: boot:7.1+",
        ],
        expect![[r#"
            on want match last:powering_on:1 tries:1/0/0 phase:powering_on cfs:-:
                configuration_differs: 'configuring'
            on want match last:powering_on:1 tries:1/0/0 phase:powering_on cfs:-: boot:7.1
                boot_awaited: 'powering_on' error '' until +1200000
            on want match last:powering_on:1 tries:1/0/0 phase:powering_on cfs:-: boot:7.1+
                configuration_differs: 'configuring'
        "#]],
    );
}
