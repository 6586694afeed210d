//! Provisioning: when a host wants a system, when it has another one than it should, and how often it may fail (host
//! reference 1.13, 1.8).

use std::sync::Arc;

use crate::host::{
    decision::{HostEvent, HostMetric},
    evidence::DeployData,
    pass::{DriverReply, Flow, HostPass},
    reboot,
    record::{
        Host,
        annotations::AnnotationName,
        call::{DriverCall, ProvisionCall},
        reason::WaitReason,
        spec::image_url,
        status::{HostErrorKind, WantedSystem},
    },
};

/// Returns whether the host is to get a system.
pub(crate) fn is_wanted(host: &Host) -> bool {
    let installed = &host.status.provisioning;
    let wants_image = !host.spec.image_url().is_empty() && image_url(installed.image.as_ref()).is_empty();
    let procedure = host.spec.procedure();
    let wants_procedure = procedure.is_some() && procedure != installed.custom_deploy.as_ref();
    host.spec.online && (wants_image || wants_procedure)
}

/// Returns whether the system of the host, or the one that it is getting, is not the wanted one any more. Addresses and
/// methods count, and nothing else.
pub(crate) fn is_cancelled(host: &Host) -> bool {
    let installed = &host.status.provisioning;
    let wanted_url = host.spec.image_url();
    let url = image_url(installed.image.as_ref());
    let method = installed.custom_deploy.as_ref().filter(|method| !method.is_empty());
    match host.spec.procedure() {
        Some(wanted) => {
            method.is_some_and(|method| method != wanted) || (!url.is_empty() && url != wanted_url)
        }
        None => method.is_some() || wanted_url.is_empty() || (!url.is_empty() && url != wanted_url),
    }
}

fn wanted_system(host: &Host) -> WantedSystem {
    let image = host.spec.image.clone().filter(|image| !image.url.is_empty());
    WantedSystem { image, procedure: host.spec.procedure().map(Arc::clone) }
}

/// Returns whether another system is wanted than the one of the last attempt, by any property.
fn is_another_system(host: &Host) -> bool {
    host.status.last_attempt.as_ref().is_some_and(|last| *last != wanted_system(host))
}

/// Returns whether failures are counted that no wish is left for.
pub(crate) fn has_stale_failures(pass: &mut HostPass<'_>) -> Flow<bool> {
    let wants_nothing = wanted_system(&pass.host) == WantedSystem::default();
    Ok(wants_nothing && pass.host.status.provisioning_fail_count > 0)
}

/// Forgets failures to provision.
pub(crate) fn forget_failures(pass: &mut HostPass<'_>) {
    pass.host.status.provisioning_fail_count = 0;
    pass.host.status.last_attempt = None;
}

/// Returns whether a system is wanted that has failed as often as it may.
pub(crate) fn is_exhausted(pass: &mut HostPass<'_>) -> Flow<bool> {
    let most = pass.policy.max_provisioning_retries;
    let is_used_up = most > 0 && pass.host.status.provisioning_fail_count >= most;
    Ok(is_wanted(&pass.host) && is_used_up && !is_another_system(&pass.host))
}

/// Fails because no attempt is left.
pub(crate) fn give_up(pass: &mut HostPass<'_>) -> Flow {
    let failures = pass.host.status.provisioning_fail_count;
    let text = format!("provisioning failed {failures} times, which is as often as it may");
    pass.record_failure(HostErrorKind::Provisioning, text.into());
    Err(pass.back_off(WaitReason::RetriesExhausted))
}

/// Returns whether the host is to get a system now.
pub(crate) fn is_due(pass: &mut HostPass<'_>) -> Flow<bool> {
    Ok(is_wanted(&pass.host))
}

/// Begins a round of provisioning.
pub(crate) fn begin(pass: &mut HostPass<'_>) {
    if is_another_system(&pass.host) {
        pass.host.status.provisioning_fail_count = 0;
    }
    pass.clear_error();
    pass.events.push(HostEvent::ProvisioningStarted);
}

/// Returns whether the round has failed.
pub(crate) fn has_failed(pass: &mut HostPass<'_>) -> Flow<bool> {
    Ok(pass.host.status.error.is_some())
}

/// Counts a round that has failed.
pub(crate) fn count_failure(pass: &mut HostPass<'_>) {
    let count = &mut pass.host.status.provisioning_fail_count;
    *count = count.saturating_add(1);
    pass.events.push(HostEvent::DeprovisioningStarted);
}

/// Returns whether another system is wanted by now, or none.
pub(crate) fn is_unwanted(pass: &mut HostPass<'_>) -> Flow<bool> {
    Ok(is_cancelled(&pass.host))
}

/// Returns whether the driver has finished.
pub(crate) fn is_finished(pass: &mut HostPass<'_>) -> Flow<bool> {
    check_deploy_data(pass)?;
    let call = DriverCall::Provision(Box::new(call(pass)));
    let reply = pass.consult(call);
    if pass.call.is_some() {
        pass.host.status.last_attempt = Some(wanted_system(&pass.host));
    }
    match reply? {
        DriverReply::Running { .. } => {
            pass.remove_annotation(AnnotationName::Reboot);
            Err(pass.running())
        }
        DriverReply::Done(_) => {
            pass.remove_annotation(AnnotationName::Reboot);
            Ok(true)
        }
        DriverReply::Failed(text) => Err(pass.fail(HostErrorKind::Provisioning, text)),
        DriverReply::NotRegistered | DriverReply::NeedsRamdisk => Err(pass.register_again()),
    }
}

fn check_deploy_data(pass: &mut HostPass<'_>) -> Flow {
    match pass.seen.deploy_data.clone() {
        DeployData::Ready => Ok(()),
        DeployData::Unreadable { text } => {
            pass.metrics.push(HostMetric::DeployDataError);
            Err(pass.trouble(WaitReason::DeployDataUnreadable, text))
        }
        DeployData::PullSecretUnusable { problem, text } => {
            pass.events.push(HostEvent::ImageAuth(problem));
            Err(pass.fail(HostErrorKind::Provisioning, text))
        }
    }
}

fn call(pass: &HostPass<'_>) -> ProvisionCall {
    let applied = &pass.host.status.provisioning;
    ProvisionCall {
        system: wanted_system(&pass.host),
        boot_mode: applied.boot_mode.unwrap_or_default(),
        hints: applied.root_device_hints.clone(),
        force_reboot: reboot::is_forced(&pass.host),
    }
}

/// Notes the system that runs from now on.
pub(crate) fn finish(pass: &mut HostPass<'_>) {
    let WantedSystem { image, procedure } = wanted_system(&pass.host);
    let status = &mut pass.host.status;
    status.provisioning.image = image;
    status.provisioning.custom_deploy = procedure;
    status.error_count = 0;
    status.provisioning_fail_count = 0;
    pass.events.push(HostEvent::ProvisioningComplete);
}

/// Takes the wanted system for the one that runs, of a host that was installed by other means.
pub(crate) fn take_over(pass: &mut HostPass<'_>) {
    let WantedSystem { image, procedure } = wanted_system(&pass.host);
    let installed = &mut pass.host.status.provisioning;
    installed.image = image.or_else(|| installed.image.take());
    installed.custom_deploy = procedure.or_else(|| installed.custom_deploy.take());
}

/// Makes the driver take over a running system that its record lacks.
pub(crate) fn adopt(pass: &mut HostPass<'_>) -> Flow {
    let has_failed = pass.has_error(HostErrorKind::ProvisionedRegistration);
    if !needs_adoption(pass) && !has_failed {
        return Ok(());
    }
    let call = DriverCall::Adopt { state: pass.state(), restart: has_failed };
    pass.carry_out(call, HostErrorKind::ProvisionedRegistration, |_| {})?;
    pass.clear_error();
    Err(pass.again())
}

/// Returns whether the record of the backend lacks the running system.
fn needs_adoption(pass: &HostPass<'_>) -> bool {
    pass.latest_view().is_some_and(|view| view.needs_adoption)
}
