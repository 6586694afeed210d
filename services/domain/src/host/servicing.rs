//! Servicing: firmware of a host that runs a system is changed in the middle of a reboot (host reference 1.16).

use crate::host::{
    decision::CompanionChange,
    firmware,
    pass::{DriverReply, Flow, HostPass},
    record::{
        call::{DriverCall, PreparationParts, ServiceCall},
        status::{HostErrorKind, OperationalStatus},
    },
};

/// Changes firmware of a host that is off and is to be switched on, or ends a servicing that has begun.
pub(crate) fn check(pass: &mut HostPass<'_>, is_coming_on: bool) -> Flow {
    let is_servicing = pass.host.status.operational == OperationalStatus::Servicing;
    let has_failed = pass.has_error(HostErrorKind::Servicing);
    if !is_coming_on && !is_servicing && !has_failed {
        return Ok(());
    }
    let policy = pass.seen.on_reboot;
    let allowed =
        PreparationParts { storage: false, settings: policy.settings, components: policy.components };
    let parts = firmware::due(pass, allowed);
    if parts.is_empty() && !is_servicing && !has_failed {
        return Ok(());
    }
    if !is_servicing {
        pass.host.status.operational = OperationalStatus::Servicing;
        return Err(pass.again());
    }
    service(pass, parts)
}

fn service(pass: &mut HostPass<'_>, parts: PreparationParts) -> Flow {
    let restart = pass.has_error(HostErrorKind::Servicing);
    match pass.consult(DriverCall::Service(ServiceCall { parts, restart }))? {
        DriverReply::Running { started } => {
            note_start(pass, started);
            Err(pass.running())
        }
        DriverReply::Done(facts) => {
            note_start(pass, facts.started);
            pass.host.progress.firmware_changed_at = pass.host.progress.answered_at;
            pass.host.status.operational = OperationalStatus::Ok;
            pass.clear_error();
            Err(pass.again())
        }
        DriverReply::Failed(text) => {
            pass.companions.push(CompanionChange::FirmwareUpdatesForgotten);
            Err(pass.fail(HostErrorKind::Servicing, text))
        }
        DriverReply::NotRegistered | DriverReply::NeedsRamdisk => Err(pass.register_again()),
    }
}

fn note_start(pass: &mut HostPass<'_>, started: bool) {
    if started && pass.seen.components.is_some() {
        pass.companions.push(CompanionChange::FirmwareUpdatesBegun);
    }
}
