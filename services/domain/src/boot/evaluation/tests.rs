use std::fmt::Write;

use expect_test::{Expect, expect};

use super::*;
use crate::boot::{
    bos::options::Options,
    component::{
        ActualState, BegunBoot, BootPreparation, ComponentWish, DesiredState, ERROR_ABSENT, EventStats,
        InventoryPresence, LastAction, NumberedToken, PowerTurns, ReportedBoots,
        artifacts::BootArtifacts,
        view::{action, artifacts, bare, phase, trouble},
    },
};

const NOW: Timestamp = Timestamp(10_000_000);

/// Returns an enabled component of generation 7 and the evidence about it, from words:
/// `read-before` the actions of the generation; `on`, `off`, `power:missing`, `power:undefined`, `power:undefined:why` (else power is unknown);
/// `want` a kernel, `match` it; `token:name` prepared, `reported:token:age in ms`;
/// `boot:generation.attempt` begun under the token `begun`, `+` behind it when its actual state was reported; `cfg:name` wanted, `cfg:-` missing (else empty);
/// `cfs:desired:status`, `cfs:-:status`, `cfs:missing` (else configuration is unknown);
/// `last:action:age in ms`, `failed`; `phase:word`, `over:word`; `tries:on/graceful/forceful`, `limit:n`;
/// `error:text`, `waited:for`, `unsent:because-of`, `refused:text`, `prepared:attempt:text`; `disabled`, `locked`;
/// `unasked:trouble`, `doubtful`, `absent` for the answer of the inventory, `was-absent` for an error that reports it,
/// `turns:count:last action`;
/// `silent:peer`, `cfs-silent:peer` for peers that do not answer.
fn scene(words: &str) -> (Component, Evidence) {
    let mut component = Component {
        generation: 7,
        wish: ComponentWish {
            desired_state: Some(DesiredState {
                boot_artifacts: Some(BootArtifacts::empty().into()),
                configuration: Some(std::sync::Arc::default()),
                ..DesiredState::default()
            }),
            enabled: Some(true),
            ..ComponentWish::default()
        },
        reported: ReportedBoots {
            actual_state: Some(ActualState {
                boot_artifacts: Some(BootArtifacts::empty().into()),
                ..ActualState::default()
            }),
            ..ReportedBoots::default()
        },
        ..bare()
    };
    let mut evidence = Evidence {
        power: PowerObservation::Unknown,
        begun_actions: u32::MAX,
        configuration: ConfigurationObservation::Unknown,
        power_trouble: None,
        configuration_trouble: None,
    };
    for word in words.split_whitespace() {
        let (name, value) = word.split_once(':').unwrap_or((word, ""));
        match name {
            "on" | "off" | "power" => evidence.power = power(name, value),
            "read-before" => evidence.begun_actions = 0,
            "cfs" => evidence.configuration = configuration(value),
            "silent" => evidence.power_trouble = Some(Trouble::waiting_for(value)),
            "cfs-silent" => evidence.configuration_trouble = Some(Trouble::waiting_for(value)),
            _ => describe(&mut component, name, value),
        }
    }
    (component, evidence)
}

fn power(name: &str, value: &str) -> PowerObservation {
    match (name, value.split_once(':').unwrap_or((value, ""))) {
        ("on", _) => PowerObservation::On,
        ("off", _) => PowerObservation::Off,
        (_, ("missing", _)) => PowerObservation::Missing,
        (_, (_, why)) => PowerObservation::Undefined { error: why.to_owned() },
    }
}

fn configuration(value: &str) -> ConfigurationObservation {
    let Some((desired, status)) = value.split_once(':') else { return ConfigurationObservation::Missing };
    let desired = (desired != "-").then(|| desired.to_owned());
    ConfigurationObservation::Known { desired, status: status.to_owned() }
}

fn describe(component: &mut Component, name: &str, value: &str) {
    let desired = component.wish.desired_state.get_or_insert_default();
    let last = component.power.last_action.get_or_insert_default();
    let status = component.evaluation.status.get_or_insert_default();
    match name {
        "want" => desired.boot_artifacts = Some(artifacts("k p i")),
        "match" => {
            component.reported.actual_state.get_or_insert_default().boot_artifacts =
                desired.boot_artifacts.clone();
        }
        "token" => desired.bss_token = Some(value.into()),
        "reported" => {
            let (token, age) = value.split_once(':').expect("token:age");
            let age: i64 = age.parse().expect("a number");
            let actual = component.reported.actual_state.get_or_insert_default();
            (actual.bss_token, actual.last_updated) = (Some(token.into()), Some(Timestamp(NOW.0 - age)));
        }
        "boot" => {
            let (generation, attempt) = value.split_once('.').expect("generation.attempt");
            component.reported.boot = Some(BegunBoot {
                generation: generation.parse().expect("a number"),
                attempt: attempt.trim_end_matches('+').parse().expect("a number"),
                token: NumberedToken { token: "begun".into(), number: 2 },
                reported: attempt.ends_with('+'),
            });
        }
        "cfg" => desired.configuration = (value != "-").then(|| value.into()),
        "last" => *last = last_action(value),
        "failed" => last.failed = Some(true),
        "phase" => status.phase = Some(phase(value)),
        "over" => status.status_override = Some(value.into()),
        "tries" => component.power.event_stats = Some(stats(value)),
        "limit" => component.wish.retry_policy = Some(value.parse().expect("a number")),
        "error" => component.evaluation.error = Some(value.into()),
        "refused" => component.power.trouble = trouble(value),
        "prepared" => {
            let (attempt, error) = value.split_once(':').expect("attempt:text");
            let attempt = attempt.parse().expect("a number");
            component.preparation.outcome =
                Some(BootPreparation { generation: 7, attempt, trouble: trouble(error) });
        }
        "disabled" => component.wish.enabled = Some(false),
        "locked" => component.inventory.locked = true,
        "unasked" => component.inventory.presence = InventoryPresence::Unknown { trouble: value.into() },
        "doubtful" => component.inventory.presence = InventoryPresence::Doubtful { since: NOW },
        "absent" => component.inventory.presence = InventoryPresence::Absent { since: NOW },
        "was-absent" => show_error(component, Trouble::own(TroubleKind::NotListed, ERROR_ABSENT)),
        "turns" => {
            let (count, last) = value.split_once(':').expect("count:last action");
            component.power.turns =
                PowerTurns { count: count.parse().expect("a number"), last: Some(action(last)) };
        }
        "unsent" => component.power.trouble = Some(Trouble::waiting_for(value).into()),
        "waited" => show_error(component, Trouble::waiting_for(value)),
        word => panic!("what is {word}?"),
    }
}

fn show_error(component: &mut Component, trouble: Trouble) {
    component.evaluation.error = Some(trouble.text().clone());
    component.evaluation.error_kind = trouble.kind();
}

fn last_action(value: &str) -> LastAction {
    let (word, age) = value.split_once(':').unwrap_or((value, ""));
    let last_updated = (!age.is_empty()).then(|| Timestamp(NOW.0 - age.parse::<i64>().expect("a number")));
    LastAction { action: Some(action(word)), failed: Some(false), last_updated }
}

fn stats(value: &str) -> EventStats {
    let mut counters = value.split('/').map(|counter| Some(counter.parse().expect("a number")));
    EventStats {
        power_on_attempts: counters.next().flatten(),
        power_off_graceful_attempts: counters.next().flatten(),
        power_off_forceful_attempts: counters.next().flatten(),
    }
}

fn show(decision: &Decision) -> String {
    let mut text = format!("{}: '{}'", decision.reason.word(), decision.phase.word());
    if !decision.status_override.is_empty() {
        write!(text, " {}", decision.status_override).expect("a string takes every text");
    }
    if decision.settled {
        text += " settled";
    }
    if decision.action_failed {
        text += " action-failed";
    }
    if let Some(error) = decision.error.text() {
        write!(text, " error '{error}'").expect("a string takes every text");
    }
    if let Some(until) = decision.until {
        write!(text, " until +{}", until.0 - NOW.0).expect("a string takes every text");
    }
    text
}

fn check(rows: &[&str], expected: Expect) {
    let lines: Vec<_> = rows
        .iter()
        .map(|words| {
            let (component, evidence) = scene(words);
            format!("{words}\n    {}\n", show(&evaluate(&component, &evidence, &Options::default(), NOW)))
        })
        .collect();
    expected.assert_eq(&lines.concat());
}

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
fn undefined_power_shows_the_words_of_the_peer_and_changes_nothing() {
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
fn off_is_not_believed_of_a_node_that_has_just_reported_its_boot() {
    let on = "off want match last:powering_on:999999 phase:powering_on";
    let rows = [
        ("token:t1 reported:t1:1000", "it runs what it was switched on for"),
        ("token:t1 reported:t1:119999", "almost too long ago"),
        ("token:t1 reported:t1:120000", "long enough ago for every power service"),
        ("token:t1 reported:t1:-5000", "the clock of the registry is ahead by no more than clocks are"),
        ("token:t1 reported:t1:-5001", "it is ahead by more, and says nothing"),
        ("token:t2 reported:t1:1000", "it runs an earlier boot, and was off since for all that is known"),
        ("token:t1", "it has not reported"),
        ("token: reported::1000", "nothing was prepared"),
        ("token:t1 reported:t1:1000 last:session_setup:100 over:on_hold", "another session wants it to run"),
        ("token:t1 reported:t1:1000 last:powering_off_gracefully:500", "it was switched off since"),
        ("token:t1 reported:t1:1000 last:powering_off_forcefully:500", "it was cut off since"),
    ];
    let mut seen = String::new();
    for (words, story) in rows {
        let (component, evidence) = scene(&format!("{on} {words}"));
        let decision = evaluate(&component, &evidence, &Options::default(), NOW);
        writeln!(seen, "{story}: {}", show(&decision)).expect("a string takes every text");
    }
    expect![[r#"
        it runs what it was switched on for: off_against_report: 'powering_on' until +119000
        almost too long ago: off_against_report: 'powering_on' until +1
        long enough ago for every power service: power_on_without_effect: 'powering_on' action-failed
        the clock of the registry is ahead by no more than clocks are: off_against_report: 'powering_on' until +125000
        it is ahead by more, and says nothing: power_on_without_effect: 'powering_on' action-failed
        it runs an earlier boot, and was off since for all that is known: power_on_without_effect: 'powering_on' action-failed
        it has not reported: power_on_without_effect: 'powering_on' action-failed
        nothing was prepared: power_on_without_effect: 'powering_on' action-failed
        another session wants it to run: off_against_report: 'powering_on' on_hold until +119000
        it was switched off since: power_on_needed: 'powering_on'
        it was cut off since: power_on_needed: 'powering_on'
    "#]]
    .assert_eq(&seen);
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
fn a_peer_that_is_waited_for_is_named_until_it_answers() {
    check(
        &[
            "silent:PCS",
            "silent:PCS over:on_hold error:old",
            "waited:PCS",
            "on want match cfs-silent:CFS",
            "on want match cfs::x waited:CFS",
            "off want waited:PCS",
            "disabled waited:PCS",
            "disabled error:old",
            "on want match cfg:b cfs:a:configured cfs-silent:CFS",
            "on want match cfg:b cfs:b:pending waited:CFS",
            "off want cfs-silent:CFS",
            "off want cfs-silent:CFS prepared:1:",
            "off want cfs-silent:CFS tries:1/0/0 prepared:1:busy",
        ],
        expect![[r#"
            silent:PCS
                awaiting_power: '' error 'waiting for PCS'
            silent:PCS over:on_hold error:old
                awaiting_power: '' on_hold error 'waiting for PCS'
            waited:PCS
                awaiting_power: ''
            on want match cfs-silent:CFS
                awaiting_configuration: '' error 'waiting for CFS'
            on want match cfs::x waited:CFS
                booted: '' settled error ''
            off want waited:PCS
                power_on_needed: 'powering_on' error ''
            disabled waited:PCS
                not_enabled: '' error ''
            disabled error:old
                not_enabled: ''
            on want match cfg:b cfs:a:configured cfs-silent:CFS
                configuration_differs: 'configuring' error 'waiting for CFS'
            on want match cfg:b cfs:b:pending waited:CFS
                configuration_pending: 'configuring' error ''
            off want cfs-silent:CFS
                power_on_needed: 'powering_on' error 'waiting for CFS'
            off want cfs-silent:CFS prepared:1:
                power_on_needed: 'powering_on'
            off want cfs-silent:CFS tries:1/0/0 prepared:1:busy
                power_on_needed: 'powering_on' error 'waiting for CFS'
        "#]],
    );
}

#[test]
fn an_action_that_waits_for_its_upstream_is_waited_for_and_spends_nothing() {
    check(
        &[
            "off want last:powering_on:999999 unsent:PCS tries:3/0/0",
            "off want last:powering_on:999999 tries:3/0/0",
            "off want last:powering_on:999999 failed unsent:PCS tries:1/0/0",
            "on last:powering_off_forcefully:999999 unsent:PCS tries:0/1/3 cfs:-:",
            "on last:powering_off_forcefully:999999 tries:0/1/3 cfs:-:",
            "on want last:powering_on:999999 unsent:PCS tries:1/0/0",
        ],
        expect![[r#"
            off want last:powering_on:999999 unsent:PCS tries:3/0/0
                power_on_awaited: 'powering_on' error 'waiting for PCS'
            off want last:powering_on:999999 tries:3/0/0
                retries_exhausted: 'powering_on' failed settled action-failed error 'the retry limit was reached: the node is off (power-ons: 3), and no service reported a failure'
            off want last:powering_on:999999 failed unsent:PCS tries:1/0/0
                power_on_without_effect: 'powering_on' action-failed error 'waiting for PCS'
            on last:powering_off_forcefully:999999 unsent:PCS tries:0/1/3 cfs:-:
                power_off_needed: 'powering_off' error 'waiting for PCS'
            on last:powering_off_forcefully:999999 tries:0/1/3 cfs:-:
                retries_exhausted: 'powering_off' failed settled error 'the retry limit was reached: the node is on (forced power-offs: 3), and no service reported a failure'
            on want last:powering_on:999999 unsent:PCS tries:1/0/0
                boot_awaited: 'powering_on' error 'waiting for PCS' until +200002
        "#]],
    );
}

#[test]
fn an_unlisted_node_says_so_until_it_is_listed_or_settled() {
    check(
        &[
            "off want absent",
            "off want doubtful",
            "off want unasked",
            "off want unasked:waiting-for-HSM",
            "on absent cfs:-:",
            "on want last:powering_on:5 absent",
            "on want match cfs::x cfg:y absent",
            "on want match cfs::x absent",
            "off want was-absent",
            "disabled was-absent",
        ],
        expect![[r#"
            off want absent
                power_on_needed: 'powering_on' error 'the inventory does not list the node, so its power is left alone; it goes on once the node is listed'
            off want doubtful
                power_on_needed: 'powering_on' error 'the newest answer of the inventory lacks the node, so its power is left alone until the inventory has been asked again'
            off want unasked
                power_on_needed: 'powering_on'
            off want unasked:waiting-for-HSM
                power_on_needed: 'powering_on' error 'waiting-for-HSM'
            on absent cfs:-:
                power_off_needed: 'powering_off' error 'the inventory does not list the node, so its power is left alone; it goes on once the node is listed'
            on want last:powering_on:5 absent
                boot_awaited: 'powering_on' error 'the inventory does not list the node, so its power is left alone; it goes on once the node is listed' until +1199996
            on want match cfs::x cfg:y absent
                configuration_differs: 'configuring' error 'the inventory does not list the node, so its power is left alone; it goes on once the node is listed'
            on want match cfs::x absent
                booted: '' settled
            off want was-absent
                power_on_needed: 'powering_on' error ''
            disabled was-absent
                not_enabled: '' error ''
        "#]],
    );
}

#[test]
fn spent_turns_are_shown_while_the_last_action_is_awaited() {
    check(
        &[
            "off want last:powering_on:5 phase:powering_on turns:11:powering_on",
            "off want last:powering_on:5 phase:powering_on turns:12:powering_on",
            "on want last:powering_on:5 phase:powering_on turns:12:powering_on",
            "last:powering_on:5 phase:powering_on turns:12:powering_on",
            "silent:pcs last:powering_on:5 phase:powering_on turns:12:powering_on",
            "off want last:powering_on:5 phase:powering_on turns:12:powering_on absent",
            "on last:powering_off_gracefully:5 phase:powering_off turns:12:powering_off_gracefully cfs:-:",
            "on want match cfs::x phase:powering_on last:powering_on:5 turns:12:powering_on",
            "disabled off want last:powering_on:5 phase:powering_on turns:12:powering_on",
        ],
        expect![[r#"
            off want last:powering_on:5 phase:powering_on turns:11:powering_on
                power_on_awaited: 'powering_on' error '' until +119996
            off want last:powering_on:5 phase:powering_on turns:12:powering_on
                power_on_awaited: 'powering_on' error 'the node was switched off and on in turn as often as one wish can explain; before it is switched against its last action again, it is held until it is enabled or given to a session again' until +119996
            on want last:powering_on:5 phase:powering_on turns:12:powering_on
                boot_awaited: 'powering_on' error 'the node was switched off and on in turn as often as one wish can explain; before it is switched against its last action again, it is held until it is enabled or given to a session again' until +1199996
            last:powering_on:5 phase:powering_on turns:12:powering_on
                awaiting_power: 'powering_on' error 'the node was switched off and on in turn as often as one wish can explain; before it is switched against its last action again, it is held until it is enabled or given to a session again'
            silent:pcs last:powering_on:5 phase:powering_on turns:12:powering_on
                awaiting_power: 'powering_on' error 'waiting for pcs'
            off want last:powering_on:5 phase:powering_on turns:12:powering_on absent
                power_on_awaited: 'powering_on' error 'the inventory does not list the node, so its power is left alone; it goes on once the node is listed' until +119996
            on last:powering_off_gracefully:5 phase:powering_off turns:12:powering_off_gracefully cfs:-:
                power_off_needed: 'powering_off' error 'the node was switched off and on in turn as often as one wish can explain; before it is switched against its last action again, it is held until it is enabled or given to a session again'
            on want match cfs::x phase:powering_on last:powering_on:5 turns:12:powering_on
                booted: '' settled
            disabled off want last:powering_on:5 phase:powering_on turns:12:powering_on
                not_enabled: 'powering_on'
        "#]],
    );
}

#[test]
fn a_node_turned_too_often_is_held_until_a_new_wish() {
    check(
        &[
            "off want turns:11:powering_off_gracefully",
            "off want turns:12:powering_off_gracefully",
            "off want turns:12:powering_on",
            "off want turns:12:powering_off_gracefully limit:4",
            "on turns:12:powering_on cfs:-:",
            "on turns:12:powering_off_gracefully cfs:-:",
            "on want match cfs::x turns:99:powering_on over:on_hold",
            "on last:powering_on:5 turns:12:powering_on over:failed cfs:-:",
        ],
        expect![[r#"
            off want turns:11:powering_off_gracefully
                power_on_needed: 'powering_on'
            off want turns:12:powering_off_gracefully
                turned_too_often: '' on_hold error 'the node was switched off and on in turn too often although nothing else was wanted of it; it is held until it is enabled or given to a session again'
            off want turns:12:powering_on
                power_on_needed: 'powering_on' error 'the node was switched off and on in turn as often as one wish can explain; before it is switched against its last action again, it is held until it is enabled or given to a session again'
            off want turns:12:powering_off_gracefully limit:4
                power_on_needed: 'powering_on'
            on turns:12:powering_on cfs:-:
                turned_too_often: '' on_hold error 'the node was switched off and on in turn too often although nothing else was wanted of it; it is held until it is enabled or given to a session again'
            on turns:12:powering_off_gracefully cfs:-:
                power_off_needed: 'powering_off' error 'the node was switched off and on in turn as often as one wish can explain; before it is switched against its last action again, it is held until it is enabled or given to a session again'
            on want match cfs::x turns:99:powering_on over:on_hold
                booted: '' settled
            on last:powering_on:5 turns:12:powering_on over:failed cfs:-:
                already_failed: 'powering_off' failed settled
        "#]],
    );
}

#[test]
fn a_locked_node_says_so_while_its_power_is_to_be_changed() {
    check(
        &[
            "off want locked",
            "on locked cfs:-:",
            "off want error:the-inventory",
            "off want last:powering_on:5 locked",
            "off want last:powering_on:5 unsent:PCS locked",
            "on last:powering_off_gracefully:5 unsent:PCS locked phase:powering_off cfs:-:",
            "on want match cfs::x locked",
        ],
        expect![[r#"
            off want locked
                power_on_needed: 'powering_on' error 'the inventory locks the node against power operations; it goes on once the node is unlocked'
            on locked cfs:-:
                power_off_needed: 'powering_off' error 'the inventory locks the node against power operations; it goes on once the node is unlocked'
            off want error:the-inventory
                power_on_needed: 'powering_on'
            off want last:powering_on:5 locked
                power_on_awaited: 'powering_on' error '' until +119996
            off want last:powering_on:5 unsent:PCS locked
                power_on_awaited: 'powering_on' error 'the inventory locks the node against power operations; it goes on once the node is unlocked'
            on last:powering_off_gracefully:5 unsent:PCS locked phase:powering_off cfs:-:
                power_off_needed: 'powering_off' error 'the inventory locks the node against power operations; it goes on once the node is unlocked'
            on want match cfs::x locked
                booted: '' settled
        "#]],
    );
}

#[test]
fn errors_show_what_is_in_the_way_and_go_when_an_action_begins() {
    check(
        &[
            "off want prepared:1:no-boot-data",
            "off want prepared:1:no-boot-data tries:1/0/0",
            "off want prepared:2:no-boot-data tries:1/0/0 refused:no-power",
            "off want refused:no-power tries:1/0/0",
            "off want last:powering_on:5 refused:no-power phase:powering_on error:old",
            "off want last:powering_on:5 phase:powering_on error:old",
            "off want error:old",
            "on last:powering_off_gracefully:5 phase:powering_off error:old cfs:-:",
            "on last:session_setup:5 error:old refused:no-power cfs:-:",
            "on want match cfs::x error:old refused:no-power",
            "off want silent:t-1",
            "off want silent:t-1 prepared:1:no-boot-data",
            "on silent:t-1 cfs:-:",
            "on want match cfs::x silent:t-1",
        ],
        expect![[r#"
            off want prepared:1:no-boot-data
                power_on_needed: 'powering_on' error 'no-boot-data'
            off want prepared:1:no-boot-data tries:1/0/0
                power_on_needed: 'powering_on' error 'no-boot-data'
            off want prepared:2:no-boot-data tries:1/0/0 refused:no-power
                power_on_needed: 'powering_on' error 'no-boot-data'
            off want refused:no-power tries:1/0/0
                power_on_needed: 'powering_on' error 'no-power'
            off want last:powering_on:5 refused:no-power phase:powering_on error:old
                power_on_awaited: 'powering_on' error 'no-power' until +119996
            off want last:powering_on:5 phase:powering_on error:old
                power_on_awaited: 'powering_on' error '' until +119996
            off want error:old
                power_on_needed: 'powering_on'
            on last:powering_off_gracefully:5 phase:powering_off error:old cfs:-:
                power_off_needed: 'powering_off' error ''
            on last:session_setup:5 error:old refused:no-power cfs:-:
                power_off_needed: 'powering_off' error 'no-power'
            on want match cfs::x error:old refused:no-power
                booted: '' settled
            off want silent:t-1
                power_on_needed: 'powering_on' error 'waiting for t-1'
            off want silent:t-1 prepared:1:no-boot-data
                power_on_needed: 'powering_on' error 'no-boot-data'
            on silent:t-1 cfs:-:
                power_off_needed: 'powering_off' error 'waiting for t-1'
            on want match cfs::x silent:t-1
                booted: '' settled
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
fn who_does_what_is_wanted_is_let_go_of_unless_it_is_to_be_kept_that_way() {
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
fn who_was_left_out_is_looked_at_again_unless_bos_is_followed_strictly() {
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
fn a_report_of_the_attempt_under_way_proves_the_node_on() {
    let mut rows = Vec::new();
    let reported = "want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c";
    for power in ["", "off ", "power:undefined ", "power:missing ", "on "] {
        for report in ["boot:7.1+ reported:begun:119999", "boot:7.1+ reported:begun:120000", "boot:7.1"] {
            rows.push(format!("{power}{reported} {report} cfs:c:configured"));
        }
    }
    let off = "off want match tries:1/0/0 phase:powering_on reported:begun:1000 cfs:c:configured cfg:c";
    rows.push(format!("{off} last:powering_on:5000 boot:7.1+ cfs:c:pending"));
    rows.push(format!("{off} last:powering_on:5000 boot:7.1+ cfs:missing"));
    rows.push(format!("{off} last:powering_on:5000 boot:6.1+"));
    rows.push(format!("{off} last:powering_off_gracefully:5000 boot:7.1+"));
    check(
        &rows.iter().map(String::as_str).collect::<Vec<_>>(),
        expect![[r#"
        want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:119999 cfs:c:configured
            configured: '' settled
        want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:120000 cfs:c:configured
            configured: '' settled
        want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1 cfs:c:configured
            awaiting_power: 'powering_on'
        off want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:119999 cfs:c:configured
            configured: '' settled
        off want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:120000 cfs:c:configured
            power_on_without_effect: 'powering_on' action-failed
        off want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1 cfs:c:configured
            power_on_without_effect: 'powering_on' action-failed
        power:undefined want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:119999 cfs:c:configured
            configured: '' settled
        power:undefined want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:120000 cfs:c:configured
            configured: '' settled
        power:undefined want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1 cfs:c:configured
            power_undefined: 'powering_on' error 'the power state of the component is undefined'
        power:missing want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:119999 cfs:c:configured
            power_missing: 'powering_on' on_hold error 'Component information was not returned by pcs'
        power:missing want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:120000 cfs:c:configured
            power_missing: 'powering_on' on_hold error 'Component information was not returned by pcs'
        power:missing want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1 cfs:c:configured
            power_missing: 'powering_on' on_hold error 'Component information was not returned by pcs'
        on want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:119999 cfs:c:configured
            configured: '' settled
        on want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1+ reported:begun:120000 cfs:c:configured
            configured: '' settled
        on want match last:powering_on:150000 tries:1/0/0 phase:powering_on cfg:c boot:7.1 cfs:c:configured
            boot_awaited: 'powering_on' error '' until +1050001
        off want match tries:1/0/0 phase:powering_on reported:begun:1000 cfs:c:configured cfg:c last:powering_on:5000 boot:7.1+ cfs:c:pending
            configuration_pending: 'configuring' until +119000
        off want match tries:1/0/0 phase:powering_on reported:begun:1000 cfs:c:configured cfg:c last:powering_on:5000 boot:7.1+ cfs:missing
            configuration_missing: 'powering_on' on_hold error 'Component information was not returned by cfs'
        off want match tries:1/0/0 phase:powering_on reported:begun:1000 cfs:c:configured cfg:c last:powering_on:5000 boot:6.1+
            off_against_report: 'powering_on' until +119000
        off want match tries:1/0/0 phase:powering_on reported:begun:1000 cfs:c:configured cfg:c last:powering_off_gracefully:5000 boot:7.1+
            power_on_needed: 'powering_on'
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

/// Returns the decision without the words that it shows.
fn without_words(decision: &Decision) -> Decision {
    Decision { error: ErrorChange::Keep, ..decision.clone() }
}

#[test]
fn words_of_a_peer_decide_nothing() {
    let scenes = [
        "off want last:powering_on:5 tries:1/0/0",
        "off want last:powering_on:5 tries:1/0/0 failed",
        "off want last:powering_on:200000 tries:3/0/0",
        "off want last:powering_on:200000 tries:3/0/0 locked",
        "on cfs:a:b last:powering_off_gracefully:300001 tries:0/1/0 phase:powering_off",
        "on cfs:a:b last:powering_off_forcefully:300001 tries:0/1/3 phase:powering_off",
    ];
    for words in scenes {
        let decided = |refusal: &str| {
            let (mut component, evidence) = scene(words);
            component.power.trouble = Trouble::failed(refusal).map(Into::into);
            show_error(&mut component, Trouble::own(TroubleKind::Failed, refusal));
            evaluate(&component, &evidence, &Options::default(), NOW)
        };
        let usual = decided("no such node");
        for refusal in ["waiting for the BMC", "no results from the BMC", ERROR_ABSENT, ERROR_LOCKED] {
            let decision = decided(refusal);
            assert_eq!(without_words(&decision), without_words(&usual), "{words}: {refusal}");
            let cleared = [&decision, &usual].map(|one| one.error == ErrorChange::Clear);
            assert_eq!(cleared[0], cleared[1], "{words}: {refusal}");
        }
    }
}

#[test]
fn an_error_passes_by_its_kind_alone() {
    let kinds = [
        TroubleKind::Failed,
        TroubleKind::Exhausted,
        TroubleKind::ConfigurationRefused,
        TroubleKind::Held,
        TroubleKind::NotListed,
        TroubleKind::Waiting,
        TroubleKind::NoResults,
    ];
    let mut rows = String::new();
    for kind in kinds {
        let shown = ["on want match cfg:a cfs:a:pending", "disabled"].map(|words| {
            let (mut component, evidence) = scene(words);
            show_error(&mut component, Trouble::own(kind, "waiting for a peer"));
            evaluate(&component, &evidence, &Options::default(), NOW).error == ErrorChange::Clear
        });
        writeln!(rows, "{kind:?}: acted on {}, left alone {}", shown[0], shown[1]).expect("a string");
    }
    expect![[r#"
        Failed: acted on false, left alone false
        Exhausted: acted on false, left alone false
        ConfigurationRefused: acted on true, left alone false
        Held: acted on true, left alone false
        NotListed: acted on true, left alone true
        Waiting: acted on true, left alone true
        NoResults: acted on true, left alone true
    "#]]
    .assert_eq(&rows);
}
