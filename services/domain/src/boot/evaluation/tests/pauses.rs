//! Components of paused sessions: the evaluation goes on by the evidence, and the next step does not begin.

use super::*;

#[test]
fn steps_that_do_not_begin_name_the_pause() {
    check(
        &[
            "off want paused",
            "off want paused locked",
            "off want paused cfs-silent:CFS",
            "off want paused refused:busy",
            "off want paused absent",
            "on cfs:: paused",
            "on want match cfg:b cfs:a:configured paused",
            "off want last:powering_on:1000 tries:1/0/0 unsent:PCS paused",
            "off want last:powering_on:999999 tries:1/0/0 paused",
            "on cfs:: phase:powering_off last:powering_off_gracefully:300001 tries:0/1/0 paused",
            "on cfs:: phase:powering_off last:powering_off_gracefully:1000 tries:0/1/0 of-before paused",
        ],
        expect![[r#"
            off want paused
                power_on_needed: 'powering_on' error 'session s is paused by alice since 1970-01-01T02:46:40Z'
            off want paused locked
                power_on_needed: 'powering_on' error 'session s is paused by alice since 1970-01-01T02:46:40Z'
            off want paused cfs-silent:CFS
                power_on_needed: 'powering_on' error 'session s is paused by alice since 1970-01-01T02:46:40Z'
            off want paused refused:busy
                power_on_needed: 'powering_on' error 'session s is paused by alice since 1970-01-01T02:46:40Z'
            off want paused absent
                power_on_needed: 'powering_on' error 'session s is paused by alice since 1970-01-01T02:46:40Z'
            on cfs:: paused
                power_off_needed: 'powering_off' error 'session s is paused by alice since 1970-01-01T02:46:40Z'
            on want match cfg:b cfs:a:configured paused
                configuration_differs: 'configuring' error 'session s is paused by alice since 1970-01-01T02:46:40Z'
            off want last:powering_on:1000 tries:1/0/0 unsent:PCS paused
                power_on_awaited: 'powering_on' error 'session s is paused by alice since 1970-01-01T02:46:40Z'
            off want last:powering_on:999999 tries:1/0/0 paused
                power_on_without_effect: 'powering_on' action-failed error 'session s is paused by alice since 1970-01-01T02:46:40Z'
            on cfs:: phase:powering_off last:powering_off_gracefully:300001 tries:0/1/0 paused
                power_off_needed: 'powering_off' error 'session s is paused by alice since 1970-01-01T02:46:40Z'
            on cfs:: phase:powering_off last:powering_off_gracefully:1000 tries:0/1/0 of-before paused
                power_off_needed: 'powering_off' error 'session s is paused by alice since 1970-01-01T02:46:40Z'
        "#]],
    );
}

#[test]
fn steps_that_have_begun_go_on_during_a_pause() {
    check(
        &[
            "silent:PCS paused",
            "off want last:powering_on:1000 tries:1/0/0 paused",
            "on want last:powering_on:1000 tries:1/0/0 paused",
            "on want match cfg:b cfs:b:pending paused was-paused",
            "on want match cfg:b cfs:b:configured paused",
            "off paused",
            "on cfs:: phase:powering_off last:powering_off_gracefully:1000 tries:0/1/0 paused",
            "on want cfs:: last:powering_on:9999999 tries:1/0/0 paused",
        ],
        expect![[r#"
            silent:PCS paused
                awaiting_power: '' error 'waiting for PCS'
            off want last:powering_on:1000 tries:1/0/0 paused
                power_on_awaited: 'powering_on' error '' until +119001
            on want last:powering_on:1000 tries:1/0/0 paused
                boot_awaited: 'powering_on' error '' until +1199001
            on want match cfg:b cfs:b:pending paused was-paused
                configuration_pending: 'configuring' error ''
            on want match cfg:b cfs:b:configured paused
                configured: '' settled
            off paused
                off_as_wanted: '' settled
            on cfs:: phase:powering_off last:powering_off_gracefully:1000 tries:0/1/0 paused
                power_off_needed: 'powering_off' error '' until +299001
            on want cfs:: last:powering_on:9999999 tries:1/0/0 paused
                reboot_needed: 'powering_off' error 'session s is paused by alice since 1970-01-01T02:46:40Z'
        "#]],
    );
}

#[test]
fn an_attempt_from_before_the_pause_may_be_the_last_one() {
    check(
        &[
            "off want last:powering_on:999999 tries:3/0/0 paused was-paused",
            "on cfs:: phase:powering_off last:powering_off_forcefully:300001 tries:0/1/3 paused was-paused",
        ],
        expect![[r#"
            off want last:powering_on:999999 tries:3/0/0 paused was-paused
                retries_exhausted: 'powering_on' failed settled action-failed error 'the retry limit was reached: the node is off (power-ons: 3), and no service reported a failure'
            on cfs:: phase:powering_off last:powering_off_forcefully:300001 tries:0/1/3 paused was-paused
                retries_exhausted: 'powering_off' failed settled error 'the retry limit was reached: the node is on (forced power-offs: 3), and no service reported a failure'
        "#]],
    );
}

#[test]
fn words_about_a_pause_pass_with_it() {
    check(
        &["off want was-paused", "disabled was-paused"],
        expect![[r#"
            off want was-paused
                power_on_needed: 'powering_on' error ''
            disabled was-paused
                not_enabled: '' error ''
        "#]],
    );
}
