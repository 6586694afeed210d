//! The truth table of BOS reference 5.3.1, row by row.

use super::{
    Decision, ERROR_CONFIGURATION_FAILED, ERROR_CONFIGURATION_MISSING, ERROR_CONFIGURATION_UNKNOWN,
    ERROR_POWER_MISSING, ERROR_POWER_UNDEFINED, Evidence, Reason,
};
use crate::{
    boot::{
        bos::options::Options,
        component::{Action, Component, Phase, status::ComponentStatus},
        configuration::ConfigurationObservation,
        power::PowerObservation,
    },
    core::{
        time::Timestamp,
        trouble::{ErrorChange, Trouble, TroubleKind},
    },
};

/// Returns the row that fits, before failures of the past and the retry limit are considered.
pub(super) fn judge(
    component: &Component,
    evidence: &Evidence,
    options: &Options,
    now: Timestamp,
) -> Decision {
    if !component.is_enabled() {
        let stays = stay(component, Reason::NotEnabled);
        // A component that no service acts on waits for no peer.
        let passes = component.error_passes_when_left_alone();
        return if passes { Decision { error: ErrorChange::Clear, ..stays } } else { stays };
    }
    if let Some(decision) = proven_on(component, evidence, options, now) {
        return decision;
    }
    let left_out = evidence.configuration == ConfigurationObservation::Missing;
    match &evidence.power {
        PowerObservation::Unknown => {
            await_peer(component, Reason::AwaitingPower, evidence.power_trouble.as_ref())
        }
        PowerObservation::Missing => hold(component, Reason::PowerMissing, ERROR_POWER_MISSING),
        PowerObservation::Undefined { error } if left_out && error.is_empty() => {
            hold(component, Reason::PowerMissing, ERROR_POWER_MISSING)
        }
        _ if left_out => hold(component, Reason::ConfigurationMissing, ERROR_CONFIGURATION_MISSING),
        PowerObservation::Undefined { error } => undefined(component, error),
        PowerObservation::OffInDoubt => stay(component, Reason::OffAgainstReport),
        PowerObservation::Off => off(component, evidence, options, now),
        PowerObservation::On | PowerObservation::OnAgain => on(component, evidence, options, now),
    }
}

/// Decides about a node that a report of its power-on proves to be on; `None`: no report does.
///
/// A report of the very attempt is newer than any reading from before the attempt began, and no reading without a state
/// contradicts it. "Off" does so once it is known to be newer than the report.
fn proven_on(
    component: &Component,
    evidence: &Evidence,
    options: &Options,
    now: Timestamp,
) -> Option<Decision> {
    if !component.has_reported_attempt() || evidence.configuration == ConfigurationObservation::Missing {
        return None;
    }
    match evidence.power {
        PowerObservation::Unknown | PowerObservation::Undefined { .. } | PowerObservation::OffInDoubt => {
            Some(on(component, evidence, options, now))
        }
        PowerObservation::On
        | PowerObservation::OnAgain
        | PowerObservation::Off
        | PowerObservation::Missing => None,
    }
}

/// Leaves the component where it is, and shows the trouble of the awaited peer, if there is any.
fn await_peer(component: &Component, reason: Reason, trouble: Option<&Trouble>) -> Decision {
    Decision { error: trouble.cloned().into(), ..stay(component, reason) }
}

/// Leaves the component exactly where it is.
fn stay(component: &Component, reason: Reason) -> Decision {
    Decision {
        phase: component.phase(),
        status_override: component.status_override().to_owned(),
        settled: false,
        action_failed: false,
        error: ErrorChange::Keep,
        reason,
        until: None,
    }
}

pub(super) fn hold(component: &Component, reason: Reason, error: &str) -> Decision {
    Decision {
        status_override: ComponentStatus::OnHold.word().to_owned(),
        error: ErrorChange::Show(Trouble::own(TroubleKind::Held, error)),
        ..stay(component, reason)
    }
}

fn undefined(component: &Component, error: &str) -> Decision {
    // Words of the peer stay; the text about their absence passes.
    let trouble = if error.is_empty() {
        Trouble::own(TroubleKind::Held, ERROR_POWER_UNDEFINED)
    } else {
        Trouble::own(TroubleKind::Failed, error)
    };
    Decision { error: ErrorChange::Show(trouble), ..stay(component, Reason::PowerUndefined) }
}

fn go(phase: Phase, reason: Reason) -> Decision {
    Decision {
        phase,
        status_override: String::new(),
        settled: false,
        action_failed: false,
        error: ErrorChange::Keep,
        reason,
        until: None,
    }
}

fn finish(reason: Reason) -> Decision {
    Decision { settled: true, ..go(Phase::None, reason) }
}

fn give_up(reason: Reason, error: &str) -> Decision {
    Decision {
        status_override: ComponentStatus::Failed.word().to_owned(),
        settled: true,
        error: ErrorChange::Show(Trouble::own(TroubleKind::Failed, error)),
        ..go(Phase::Configuring, reason)
    }
}

/// Rows 1 to 3.
fn off(component: &Component, evidence: &Evidence, options: &Options, now: Timestamp) -> Decision {
    if !component.kernel_wanted() {
        return finish(Reason::OffAsWanted);
    }
    if component.last_action() != Some(Action::PoweringOn) {
        return go(Phase::PoweringOn, Reason::PowerOnNeeded);
    }
    if component.waits_for_power_upstream() && !component.last_action_failed() {
        return go(Phase::PoweringOn, Reason::PowerOnAwaited);
    }
    match component.last_action_wait_ends(options.power_on_wait()) {
        Some(until) if now < until && component.last_action_failed() => {
            go(Phase::PoweringOn, Reason::PowerOnNeeded)
        }
        Some(until) if now < until => {
            Decision { until: Some(until), ..go(Phase::PoweringOn, Reason::PowerOnAwaited) }
        }
        _ if !evidence.is_after_last_action(component) => go(Phase::PoweringOn, Reason::PowerOnAwaited),
        _ => Decision { action_failed: true, ..go(Phase::PoweringOn, Reason::PowerOnWithoutEffect) },
    }
}

/// Rows 4 to 12.
fn on(component: &Component, evidence: &Evidence, options: &Options, now: Timestamp) -> Decision {
    if !component.kernel_wanted() {
        return switch_off(component, evidence, Reason::PowerOffNeeded);
    }
    // A report that arrives now is of the boot that the shutdown ends.
    if component.runs_wanted() && !component.is_being_shut_down() {
        return configured(component, &evidence.configuration, evidence.configuration_trouble.as_ref());
    }
    let switched_on = component.last_action() == Some(Action::PoweringOn);
    match component.last_action_wait_ends(options.boot_wait()) {
        Some(until) if switched_on && now < until => {
            Decision { until: Some(until), ..go(Phase::PoweringOn, Reason::BootAwaited) }
        }
        _ => switch_off(component, evidence, Reason::RebootNeeded),
    }
}

/// Switches off a node, but not before the configuration upstream was asked about it in this generation: a node that
/// the upstream does not list is left running and held. A shutdown that was begun in the generation goes on without the
/// upstream.
fn switch_off(component: &Component, evidence: &Evidence, reason: Reason) -> Decision {
    let begun = component.was_asked_to_shut_down() && component.phase() == Phase::PoweringOff;
    if evidence.configuration == ConfigurationObservation::Unknown && !begun {
        return await_peer(component, Reason::AwaitingConfiguration, evidence.configuration_trouble.as_ref());
    }
    go(Phase::PoweringOff, reason)
}

/// Returns whether another observation than `configuration` of `component`, which has booted as wanted, would matter
/// soon. A configured component does not need one, even if it is not finished because its power is not known yet.
pub fn awaits_configuration(component: &Component, configuration: &ConfigurationObservation) -> bool {
    !configured(component, configuration, None).reason.is_success()
}

/// Rows 5 to 10.
fn configured(
    component: &Component,
    configuration: &ConfigurationObservation,
    trouble: Option<&Trouble>,
) -> Decision {
    let ConfigurationObservation::Known { status, .. } = configuration else {
        return await_peer(component, Reason::AwaitingConfiguration, trouble);
    };
    if configuration.is_set(component) != Some(true) {
        let error = trouble.cloned().into();
        return Decision { error, ..go(Phase::Configuring, Reason::ConfigurationDiffers) };
    }
    if component.desired_configuration().unwrap_or_default().is_empty() {
        return finish(Reason::Booted);
    }
    match status.to_ascii_lowercase().as_str() {
        "configured" => finish(Reason::Configured),
        "pending" => go(Phase::Configuring, Reason::ConfigurationPending),
        "failed" => give_up(Reason::ConfigurationFailed, ERROR_CONFIGURATION_FAILED),
        // An empty status says nothing yet: BOS gives up here, which fails nodes that are fine.
        "" => go(Phase::Configuring, Reason::ConfigurationSilent),
        _ => give_up(Reason::ConfigurationUnknown, &format!("{ERROR_CONFIGURATION_UNKNOWN}{status}")),
    }
}
