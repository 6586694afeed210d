//! Rules that hold after every decision, whatever the world does.

use domain::{
    core::time::Timestamp,
    host::{
        decision::{CompanionChange, HostDecision},
        record::{
            Host, HostDeletion,
            history::{OperationHistory, OperationTimes},
            operation::OperationKind,
            reason::WaitReason,
            state::HostState,
            status::OperationalStatus,
        },
    },
};

use crate::machine::Machine;

/// Returns an error with `text` about `host` unless `holds`.
pub(crate) fn ensure(holds: bool, text: &str, host: &Host) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{}: {text}: {host:?}", host.meta.key.name)) }
}

/// Checks a decision by itself.
pub(crate) fn decision(decision: &HostDecision, machine: &Machine, now: Timestamp) -> Result<(), String> {
    let host = &decision.host;
    if decision.is_gone() {
        gone(decision, machine)?;
    }
    errors(host)?;
    history(host, now)?;
    attempts(host)?;
    wait(decision, now)
}

fn errors(host: &Host) -> Result<(), String> {
    let status = &host.status;
    let is_counted = status.error.is_none() || status.error_count > 0;
    ensure(is_counted, "an error is uncounted", host)?;
    let shows_error = status.operational == OperationalStatus::Error;
    ensure(!shows_error || status.error.is_some(), "an operational error has no kind", host)?;
    let hides_error = matches!(
        status.operational,
        OperationalStatus::Delayed | OperationalStatus::Detached | OperationalStatus::Servicing
    );
    let is_shown = status.error.is_none() || shows_error || hides_error;
    ensure(is_shown, "an error is recorded and the operational status does not say so", host)
}

fn history(host: &Host, now: Timestamp) -> Result<(), String> {
    let OperationHistory { register, inspect, provision, deprovision } = host.status.history;
    for (state, times) in [
        (HostState::Registering, register),
        (HostState::Inspecting, inspect),
        (HostState::Provisioning, provision),
        (HostState::Deprovisioning, deprovision),
    ] {
        let OperationTimes { start, end } = times;
        let is_ordered = start.is_none_or(|start| start <= now && end.is_none_or(|end| start <= end));
        ensure(is_ordered, "a history is out of order", host)?;
        let may_register_anew = state == HostState::Registering && host.state() != state;
        let is_right = times.is_open() == (host.state() == state);
        ensure(is_right || may_register_anew, "a history does not follow the state", host)?;
    }
    Ok(())
}

fn attempts(host: &Host) -> Result<(), String> {
    let attempts = host.progress.attempts.attempts();
    let open: Vec<_> = attempts.iter().filter(|attempt| attempt.end.is_none()).collect();
    let under_way = host.progress.work.as_ref().map(|work| work.call.kind());
    let is_right = open.len() <= 1 && open.first().map(|attempt| attempt.operation) == under_way;
    ensure(is_right, "the attempts of a host do not follow its work", host)
}

fn wait(decision: &HostDecision, now: Timestamp) -> Result<(), String> {
    let host = &decision.host;
    let wait = host.progress.wait.filter(|wait| wait.reason == decision.reason && wait.since <= now);
    ensure(wait.is_some(), "a host does not say why it waits", host)?;
    let is_awake = decision.look.is_none_or(|look| look >= now);
    ensure(is_awake, "a host wants to be looked at in the past", host)
}

fn gone(decision: &HostDecision, machine: &Machine) -> Result<(), String> {
    let host = &decision.host;
    let is_forced = host.meta.deletion == Some(HostDeletion::Forced);
    ensure(!machine.is_known || is_forced, "a host is gone and its record is left at its driver", host)?;
    let is_released = decision.companions.contains(&CompanionChange::ReleaseAll);
    ensure(is_released && !host.meta.has_finalizer, "a host is gone and holds claims", host)
}

/// Checks that deciding `again` at the same time has no effect.
pub(crate) fn rests(first: &HostDecision, again: &HostDecision) -> Result<(), String> {
    if first.reason == WaitReason::Continuing || first.is_gone() {
        return Ok(());
    }
    let is_silent = again.call.is_none() && again.events.is_empty() && again.companions.is_empty();
    ensure(is_silent && again.host == first.host, "a decision taken again has an effect", &again.host)
}

/// Checks that the call before was answered, and so an opposite power request too.
pub(crate) fn call(host: &Host, last: Option<(OperationKind, bool)>) -> Result<(), String> {
    let Some((kind, is_answered)) = last else { return Ok(()) };
    ensure(is_answered, &format!("a call is made while {} is without an answer", kind.word()), host)
}

/// Checks that a host ended as wished at the end of the world.
pub(crate) fn end(host: &Host, machine: &Machine, took_over: bool) -> Result<(), String> {
    let reason = host.progress.wait.map(|wait| wait.reason);
    if reason == Some(WaitReason::Unmanaged) {
        return ensure(!host.spec.names_a_bmc(), "a host with a BMC is unmanaged", host);
    }
    let gave_up = reason == Some(WaitReason::RetriesExhausted);
    if gave_up {
        return ensure(host.status.provisioning_fail_count > 0, "a host gave up without a failure", host);
    }
    ensure(machine.is_known, "a host is not done: its driver does not know it", host)?;
    let is_right = machine.powered_on == host.spec.online && host.status.powered_on == host.spec.online;
    ensure(is_right, "a host is not done: its power is not as wished", host)?;
    let wanted = host.spec.image.as_ref().map(|image| &image.url);
    let is_external = host.spec.externally_provisioned || took_over;
    let has_system = is_external || !host.spec.online || machine.installed.as_ref() == wanted;
    ensure(has_system, "a host is not done: its system is not as wished", host)?;
    let is_prepared = !host.state().is_available() || !machine.firmware_differs;
    ensure(is_prepared, "a host is not done: its firmware is not as wished", host)?;
    ensure(host.status.error.is_none(), "a host is done and shows an error", host)
}
