use std::{fmt::Display, time::Duration};

use super::scene::NOW;
use crate::host::{
    decision::{CompanionChange, HostDecision, HostEvent, HostMetric},
    record::{Host, annotations::RebootMode, call::DriverCall, progress::SlotClaim},
};

/// Returns a decision as a line: the row, every difference to `before`, the call, the wait with its time in seconds,
/// the claim on a slot, events, counters and changes of companions.
pub(super) fn show(before: &Host, decision: &HostDecision) -> String {
    let mut words = Vec::new();
    words.extend(decision.row.map(|row| format!("row {row}:")));
    words.extend(differences(before, &decision.host));
    words.extend(decision.call.as_ref().map(|work| format!("CALL {}", call(&work.call))));
    words.push(wait(decision));
    words.extend(match decision.slot() {
        SlotClaim::Nothing => None,
        SlotClaim::Held => Some("[slot]".to_owned()),
        SlotClaim::Aside { .. } => Some("[aside]".to_owned()),
        SlotClaim::Waiting { since } => Some(format!("[queued {}s]", (NOW.0 - since.0) / 1_000)),
    });
    words.extend(decision.events.iter().map(event));
    words.extend(decision.metrics.iter().map(metric));
    words.extend(decision.companions.iter().map(companion));
    words.join(" ")
}

fn differences(before: &Host, after: &Host) -> Vec<String> {
    let (old, new) = (&before.status, &after.status);
    let kind = |host: &Host| host.status.error.as_ref().map_or("none", |error| error.kind.word()).to_owned();
    let text = |host: &Host| host.status.error.as_ref().map_or(String::new(), |error| error.text.to_string());
    let mut words = Vec::new();
    let mut note = |name: &str, was: String, is: String| {
        if was != is {
            words.push(format!("{name}={}", if is.is_empty() { "-" } else { &is }));
        }
    };
    note("state", before.state().word().into(), after.state().word().into());
    note("op", old.operational.word().into(), new.operational.word().into());
    note("error", kind(before), kind(after));
    note("text", text(before), text(after));
    note("count", number(old.error_count), number(new.error_count));
    note("fails", number(old.provisioning_fail_count), number(new.provisioning_fail_count));
    note("on", number(old.powered_on), number(new.powered_on));
    note("image", system(before), system(after));
    note("profile", old.hardware_profile.to_string(), new.hardware_profile.to_string());
    note("hints", hints(before), hints(after));
    note("raid", raids(before), raids(after));
    note("hardware", hardware(before), hardware(after));
    note("good", good(before), good(after));
    note("arch", before.spec.architecture.to_string(), after.spec.architecture.to_string());
    note("reboots", reboots(before), reboots(after));
    note("inspect", inspects(before), inspects(after));
    note("finalizer", number(before.meta.has_finalizer), number(after.meta.has_finalizer));
    words
}

fn number(value: impl Display) -> String {
    value.to_string()
}

fn system(host: &Host) -> String {
    let installed = &host.status.provisioning;
    let url = installed.image.as_ref().map_or("", |image| &image.url);
    format!("{url}/{}", installed.custom_deploy.as_deref().unwrap_or_default())
}

fn hints(host: &Host) -> String {
    let hints = host.status.provisioning.root_device_hints.as_ref();
    hints.and_then(|hints| hints.device_name.as_deref()).unwrap_or_default().to_owned()
}

fn raids(host: &Host) -> String {
    let Some(raid) = &host.status.provisioning.raid else { return String::new() };
    let counts = [&raid.hardware, &raid.software].map(|list| list.as_ref().map(Vec::len));
    format!("{:?}/{:?}", counts[0], counts[1])
}

fn hardware(host: &Host) -> String {
    host.status.hardware.as_ref().map_or(String::new(), |hardware| hardware.details.to_string())
}

fn good(host: &Host) -> String {
    host.status.good_credentials.as_ref().map_or(String::new(), |login| login.version.to_string())
}

fn reboots(host: &Host) -> String {
    host.meta.annotations.reboots.len().to_string()
}

fn inspects(host: &Host) -> String {
    host.meta.annotations.inspect.map_or(String::new(), |request| format!("{request:?}"))
}

pub(super) fn call(call: &DriverCall) -> String {
    let kind = call.kind().word();
    let details = match call {
        DriverCall::Register(call) => {
            format!("{}{}", flag("restart", call.restart), flag("new-login", call.credentials_changed))
        }
        DriverCall::Inspect(call) => format!(
            "{}{}{}",
            flag("restart", call.restart),
            flag("refresh", call.refresh),
            flag("force", call.force_reboot)
        ),
        DriverCall::Prepare(call) => format!(
            "{}{}{}{}{}",
            flag("restart", call.restart),
            flag("unprepared", call.unprepared),
            flag("storage", call.parts.storage),
            flag("settings", call.parts.settings),
            flag("versions", call.parts.components)
        ),
        DriverCall::Service(call) => format!(
            "{}{}{}",
            flag("restart", call.restart),
            flag("settings", call.parts.settings),
            flag("versions", call.parts.components)
        ),
        DriverCall::Provision(call) => flag("force", call.force_reboot),
        DriverCall::Adopt { restart, .. } | DriverCall::Deprovision { restart, .. } => {
            flag("restart", *restart)
        }
        DriverCall::PowerOn { force } | DriverCall::Detach { force } => flag("force", *force),
        DriverCall::PowerOff { mode, force, .. } => {
            format!("{}{}", flag("hard", *mode == RebootMode::Hard), flag("force", *force))
        }
        DriverCall::Delete | DriverCall::AttachDataImage { .. } | DriverCall::DetachDataImage => {
            String::new()
        }
    };
    format!("{kind}{details}")
}

fn flag(word: &str, is_set: bool) -> String {
    if is_set { format!("+{word}") } else { String::new() }
}

fn wait(decision: &HostDecision) -> String {
    let look = decision.look.map(|look| Duration::from_millis((look.0 - NOW.0).max(0) as u64));
    match look {
        Some(Duration::ZERO) => format!("({})", decision.reason.word()),
        Some(delay) => format!("({} {:?})", decision.reason.word(), delay),
        None => format!("({} until changed)", decision.reason.word()),
    }
}

fn event(event: &HostEvent) -> String {
    let details = match event {
        HostEvent::DeletionSkipped { operation, orphan } => format!(":{}:{orphan}", operation.word()),
        HostEvent::RemoveAnnotation(name) => format!(":{}", name.word()),
        _ => String::new(),
    };
    format!("!{}{details}", event.reason())
}

fn metric(metric: &HostMetric) -> String {
    match metric {
        HostMetric::StateChange { .. } => "#change".to_owned(),
        HostMetric::OperationEnded { operation, took } => format!("#{}:{took:?}", operation.word()),
        HostMetric::Error(_) => "#error".to_owned(),
        HostMetric::PowerChange { on } => format!("#power:{on}"),
        HostMetric::Delayed(state) => format!("#delayed:{}", state.word()),
        other => format!("#{other:?}"),
    }
}

fn companion(change: &CompanionChange) -> String {
    match change {
        CompanionChange::StoreHardwareData(inventory) => format!("~store:{}", inventory.details),
        CompanionChange::DataImageFailed(text) => format!("~data image failed:{text}"),
        CompanionChange::ClaimNetworkSecret(name) => format!("~claim:{name}"),
        other => format!("~{other:?}"),
    }
}
