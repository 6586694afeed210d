//! Inspection: the driver collects the inventory (host reference 1.15).

use std::sync::Arc;

use crate::host::{
    decision::{CompanionChange, HostEvent},
    pass::{Flow, HostPass},
    reboot,
    record::{
        Host,
        annotations::{AnnotationName, InspectRequest},
        call::{DriverCall, InspectCall},
        spec::InspectionMode,
        status::HostErrorKind,
    },
};

/// Returns whether the host is not to be inspected.
pub(crate) fn is_disabled(host: &Host) -> bool {
    host.spec.inspection == Some(InspectionMode::Disabled)
        || host.meta.annotations.inspect == Some(InspectRequest::Disabled)
}

/// Returns whether a person wants an available host to be inspected again.
pub(crate) fn is_wanted_again(pass: &mut HostPass<'_>) -> Flow<bool> {
    Ok(pass.host.meta.annotations.inspect == Some(InspectRequest::Again))
}

/// Returns whether inspection has become disabled.
pub(crate) fn is_skipped(pass: &mut HostPass<'_>) -> Flow<bool> {
    Ok(is_disabled(&pass.host))
}

/// Notes that there is no inspection, also none that was asked for.
pub(crate) fn skip(pass: &mut HostPass<'_>) {
    pass.remove_annotation(AnnotationName::Inspect);
    pass.host.status.error_count = 0;
    pass.events.push(HostEvent::InspectionSkipped);
}

/// Returns whether the driver has returned an inventory.
pub(crate) fn is_finished(pass: &mut HostPass<'_>) -> Flow<bool> {
    let call = DriverCall::Inspect(call(pass));
    let facts = pass.carry_out(call, HostErrorKind::Inspection, begun)?;
    pass.inventory = facts.inventory;
    if pass.inventory.is_none() {
        return Err(pass.incomplete_answer("the driver ended an inspection without an inventory"));
    }
    Ok(true)
}

/// Stores the inventory that the driver has returned.
pub(crate) fn finish(pass: &mut HostPass<'_>) {
    pass.clear_error();
    pass.host.status.error_count = 0;
    pass.remove_annotation(AnnotationName::Inspect);
    pass.events.push(HostEvent::InspectionComplete);
    let inventory = pass.inventory.take();
    if !pass.host.is_deleted() {
        pass.companions.extend(inventory.clone().map(CompanionChange::StoreHardwareData));
    }
    pass.host.status.hardware = inventory;
}

/// Fulfils the requests that an inspection answers. Each call of an inspection may answer newer ones.
fn begun(pass: &mut HostPass<'_>) {
    if pass.is_newly_begun {
        pass.events.push(HostEvent::InspectionStarted);
    }
    pass.remove_annotation(AnnotationName::Inspect);
    pass.remove_annotation(AnnotationName::Reboot);
}

fn call(pass: &HostPass<'_>) -> InspectCall {
    let Host { meta, spec, status, .. } = &pass.host;
    InspectCall {
        boot_mode: status.provisioning.boot_mode.or(spec.boot_mode).unwrap_or_default(),
        mode: spec.inspection.unwrap_or_default(),
        architecture: architecture(pass),
        restart: pass.has_error(HostErrorKind::Inspection),
        refresh: meta.annotations.inspect == Some(InspectRequest::Again),
        force_reboot: reboot::is_forced(&pass.host),
    }
}

/// Returns the CPU architecture of a host, as far as it is known.
pub(crate) fn architecture(pass: &HostPass<'_>) -> Arc<str> {
    let hardware = pass.host.status.hardware.as_ref().map(|hardware| &hardware.architecture);
    let known = [Some(&pass.host.spec.architecture), hardware, Some(&pass.policy.architecture)];
    known.into_iter().flatten().find(|known| !known.is_empty()).map(Arc::clone).unwrap_or_default()
}
