//! Deprovisioning: the system is removed; a deletion does not wait for it forever (host reference 1.17).

use crate::host::{
    decision::{HostEvent, HostMetric},
    deletion,
    pass::{DriverReply, Flow, HostPass},
    preparation, provisioning,
    record::{
        annotations::AnnotationName, call::DriverCall, operation::OperationKind, spec::image_url,
        status::HostErrorKind,
    },
};

/// Begins to remove the system.
pub(crate) fn begin(pass: &mut HostPass<'_>) {
    pass.events.push(HostEvent::DeprovisioningStarted);
}

/// Returns whether the system is removed and the host stays.
pub(crate) fn is_finished(pass: &mut HostPass<'_>) -> Flow<bool> {
    Ok(matches!(reply(pass)?, DriverReply::Done(_)) && !pass.host.is_deleted())
}

/// Returns whether the system is removed and the host is to go.
pub(crate) fn is_finished_for_deletion(pass: &mut HostPass<'_>) -> Flow<bool> {
    Ok(matches!(reply(pass)?, DriverReply::Done(_)) && pass.host.is_deleted())
}

/// Forgets the system that is removed.
pub(crate) fn finish(pass: &mut HostPass<'_>) {
    pass.remove_annotation(AnnotationName::Reboot);
    preparation::forget_settings(pass);
    pass.host.status.provisioning.image = None;
    pass.host.status.provisioning.custom_deploy = None;
    pass.host.status.error_count = 0;
    pass.clear_error();
    pass.events.push(HostEvent::DeprovisioningComplete);
}

/// Returns whether a deletion goes on although the system could not be removed. Any other failure ends the decision.
pub(crate) fn is_given_up(pass: &mut HostPass<'_>) -> Flow<bool> {
    let DriverReply::Failed(text) = reply(pass)? else { return Ok(false) };
    if !pass.host.is_deleted() {
        return Err(pass.fail(HostErrorKind::Provisioning, text));
    }
    deletion::give_up_after_failure(pass, HostErrorKind::Provisioning, text)
}

/// Notes that the system may still be on the disks.
pub(crate) fn give_up(pass: &mut HostPass<'_>) {
    pass.metrics.push(HostMetric::DeletedWithoutDeprovisioning);
    deletion::skip(pass, OperationKind::Deprovision);
}

/// Returns the answer of the driver; several rows judge it one after the other.
fn reply(pass: &mut HostPass<'_>) -> Flow<DriverReply> {
    if let Some(reply) = &pass.reply {
        return Ok(reply.clone());
    }
    if has_system(pass) && !deletion::gives_up_adoption(pass) {
        provisioning::adopt(pass)?;
    }
    let restart = pass.has_error(HostErrorKind::Provisioning);
    let cleaning_disabled = pass.host.spec.cleaning_disabled;
    let reply = pass.consult(DriverCall::Deprovision { restart, cleaning_disabled })?;
    let reply = deletion::registered_or_unreachable(pass, reply)?;
    pass.reply = Some(reply.clone());
    Ok(reply)
}

fn has_system(pass: &HostPass<'_>) -> bool {
    let installed = &pass.host.status.provisioning;
    !image_url(installed.image.as_ref()).is_empty() || installed.custom_deploy.is_some()
}
