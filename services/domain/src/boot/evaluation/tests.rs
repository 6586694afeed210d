//! Decisions as rows: words describe a component and the evidence about it, and the decision stands below.

use std::fmt::Write;

use expect_test::{Expect, expect};

use super::*;
use crate::boot::{
    bos::options::Options,
    component::{
        ActualState, BegunBoot, BootPreparation, ComponentWish, DesiredState, ERROR_ABSENT, EventStats,
        InventoryPresence, LastAction, NumberedToken, PauseMark, PowerTurns, ReportedBoots,
        artifacts::BootArtifacts,
        view::{action, artifacts, bare, phase, trouble},
    },
};

mod errors;
mod evidence;
mod notices;
mod pauses;
mod phases;

const NOW: Timestamp = Timestamp(10_000_000);

/// Returns an enabled component of generation 7 and the evidence about it, from words:
/// `read-before` the actions of the generation; `on`, `on-again`, `off`, `power:doubted`, `power:missing`, `power:undefined`, `power:undefined:why` (else power is unknown);
/// `want` a kernel, `match` it; `token:name` prepared, `reported:token:age in ms`;
/// `boot:generation.attempt` begun under the token `begun`, `+` behind it when its actual state was reported; `cfg:name` wanted, `cfg:-` missing (else empty);
/// `cfs:desired:status`, `cfs:-:status`, `cfs:missing` (else configuration is unknown);
/// `last:action:age in ms`, `failed`, `of-before` for an action of an earlier generation; `phase:word`, `over:word`; `tries:on/graceful/forceful`, `limit:n`;
/// `error:text`, `waited:for`, `unsent:because-of`, `refused:text`, `prepared:attempt:text`; `disabled`, `locked`,
/// `paused` for a component of a paused session, `was-paused` for an error that reports it;
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
        }
        .into(),
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
            "on" | "on-again" | "off" | "power" => evidence.power = power(name, value),
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
        ("on-again", _) => PowerObservation::OnAgain,
        ("off", _) => PowerObservation::Off,
        (_, ("missing", _)) => PowerObservation::Missing,
        (_, ("doubted", _)) => PowerObservation::OffInDoubt,
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
            component.reported.boot = Some(
                BegunBoot {
                    generation: generation.parse().expect("a number"),
                    attempt: attempt.trim_end_matches('+').parse().expect("a number"),
                    token: NumberedToken { token: "begun".into(), number: 2 },
                    reported: attempt.ends_with('+'),
                }
                .into(),
            );
        }
        "cfg" => desired.configuration = (value != "-").then(|| value.into()),
        "last" => *last = last_action(value),
        "failed" => last.failed = Some(true),
        "of-before" => component.power.acted_before = true,
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
        "paused" => {
            component.wish.session = Some("s".into());
            component.wish.pause = Some(pause_mark().into());
        }
        "was-paused" => show_error(component, pause_mark().trouble("s")),
        "unsent" => component.power.trouble = Some(Trouble::waiting_for(value).into()),
        "waited" => show_error(component, Trouble::waiting_for(value)),
        word => panic!("what is {word}?"),
    }
}

fn pause_mark() -> PauseMark {
    PauseMark::by("alice", NOW)
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
