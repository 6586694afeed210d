//! Registration: the driver knows the host, with the facts of its present record (host reference 1.10).
//!
//! A registered host is registered again only for a reason: another login or fact, a recorded failure, or a backend
//! that has lost its record.

use std::{sync::Arc, time::Duration};

use crate::host::{
    credentials,
    decision::{CompanionChange, HostEvent, HostMetric},
    evidence::{DriverSight, RamdiskSight},
    inspection,
    pass::{DriverReply, Flow, HostPass, PassEnd},
    preparation, profile,
    record::{
        Host,
        call::{DoneFacts, DriverCall, RamdiskImage, RegisterCall, Registration},
        operation::OperationKind,
        reason::WaitReason,
        spec::{HostImage, InspectionMode, image_url},
        state::HostState,
        status::{HostErrorKind, OperationalStatus},
    },
};

/// Longest wait for a ramdisk image. Its change ends the wait earlier.
const RAMDISK_MISSING: Duration = Duration::from_secs(5 * 60);

/// Makes the driver know the host with its present facts.
pub(crate) fn check(pass: &mut HostPass<'_>) -> Flow {
    if !pass.state().is_registered() || pass.lacks_credentials {
        return Ok(());
    }
    let registration = wanted(pass)?;
    if !is_due(pass, &registration) {
        return Ok(());
    }
    let call = call(pass, &registration);
    let is_first = pass.host.progress.registered.is_none();
    let reply = pass.consult(call);
    if is_first && pass.call.is_some() {
        pass.metrics.push(HostMetric::RegistrationRequired);
    }
    match reply? {
        DriverReply::Running { .. } => Err(pass.running()),
        DriverReply::Done(facts) => Err(complete(pass, registration, facts)),
        DriverReply::Failed(text) => {
            pass.metrics.push(HostMetric::NoManagementAccess);
            Err(pass.fail(HostErrorKind::Registration, text))
        }
        DriverReply::NeedsRamdisk => Err(lacks_ramdisk(pass, &registration)),
        DriverReply::NotRegistered => Err(pass.incomplete_answer("the driver refused to register the host")),
    }
}

/// Returns whether the driver has to be told about the host. A registration that goes on ends before anything else begins,
/// although nobody sees its error any more.
fn is_due(pass: &HostPass<'_>, registration: &Registration) -> bool {
    let current = credentials::current(pass);
    pass.host.progress.registered.as_ref() != Some(registration)
        || pass.host.status.tried_credentials.as_ref() != Some(&current)
        || pass.host.status.good_credentials.as_ref() != Some(&current)
        || pass.has_error(HostErrorKind::Registration)
        || pass.operation() == Some(OperationKind::Register)
        || was_forgotten(pass)
}

/// Returns whether the backend has lost its record of the host, by a look from after the last answer.
fn was_forgotten(pass: &HostPass<'_>) -> bool {
    match pass.seen.driver {
        DriverSight::Absent { asked_at } => {
            pass.host.progress.answered_at.is_none_or(|answered| asked_at > answered)
        }
        DriverSight::Unlisted | DriverSight::NotReady | DriverSight::Known(_) => false,
    }
}

fn call(pass: &mut HostPass<'_>, registration: &Registration) -> DriverCall {
    let current = credentials::current(pass);
    let restart = pass.has_error(HostErrorKind::Registration);
    let is_retry = restart || !credentials::are_good(pass);
    let status = &mut pass.host.status;
    if is_retry && status.provisioning.state != HostState::Registering {
        status.history.register.begin(pass.moment.now);
    }
    let credentials_changed = status.tried_credentials.as_ref() != Some(&current);
    status.tried_credentials = Some(current);
    DriverCall::Register(Box::new(RegisterCall {
        registration: registration.clone(),
        state: status.provisioning.state,
        operational: status.operational,
        architecture: inspection::architecture(pass),
        credentials_changed,
        restart,
    }))
}

/// Returns the facts that the driver is to keep.
pub(crate) fn wanted(pass: &mut HostPass<'_>) -> Flow<Registration> {
    let ramdisk = wanted_ramdisk(pass)?;
    let Host { spec, status, .. } = &pass.host;
    Ok(Registration {
        address: Arc::clone(&spec.bmc_address),
        disable_certificate_verification: spec.disable_certificate_verification,
        boot_mac: spec.boot_mac.clone(),
        boot_mode: status.provisioning.boot_mode.or(spec.boot_mode).unwrap_or_default(),
        cleaning_disabled: spec.cleaning_disabled,
        image: current_image(&pass.host),
        has_procedure: status.provisioning.custom_deploy.is_some() || spec.procedure().is_some(),
        disable_power_off: spec.disable_power_off,
        ramdisk,
        inspection: spec.inspection.unwrap_or_default(),
    })
}

/// Returns the image that runs, or that is about to.
fn current_image(host: &Host) -> Option<HostImage> {
    let installed = host.status.provisioning.image.clone();
    if !image_url(installed.as_ref()).is_empty() {
        return installed;
    }
    let comes = matches!(host.state(), HostState::Provisioning | HostState::ExternallyProvisioned);
    host.spec.image.clone().filter(|_| comes)
}

/// Returns the ramdisk image, where the backend wants one and the host may boot it.
fn wanted_ramdisk(pass: &mut HostPass<'_>) -> Flow<Option<Arc<RamdiskImage>>> {
    let wants_one = pass.seen.driver.view().is_some_and(|view| view.wants_ramdisk);
    if !wants_one || !boots_ramdisk(&pass.host) {
        return Ok(None);
    }
    match pass.seen.ramdisk.clone() {
        RamdiskSight::Pending => Ok(None),
        RamdiskSight::Built(image) => Ok(Some(image)),
        RamdiskSight::Failed { text } => Err(pass.fail(HostErrorKind::Registration, text)),
    }
}

fn boots_ramdisk(host: &Host) -> bool {
    match host.state() {
        HostState::Provisioned | HostState::ExternallyProvisioned => {
            host.status.operational == OperationalStatus::Servicing
        }
        HostState::Deprovisioning => !host.spec.cleaning_disabled,
        HostState::Inspecting => host.spec.inspection != Some(InspectionMode::Fast),
        HostState::Preparing | HostState::Available | HostState::Ready | HostState::Provisioning => true,
        HostState::Unset
        | HostState::Unmanaged
        | HostState::Registering
        | HostState::MatchProfile
        | HostState::PoweringOffBeforeDelete
        | HostState::Deleting => false,
    }
}

fn lacks_ramdisk(pass: &mut HostPass<'_>, registration: &Registration) -> PassEnd {
    if registration.ramdisk.is_some() {
        return pass.fail(HostErrorKind::Registration, "the driver refused the ramdisk image".into());
    }
    pass.metrics.push(HostMetric::WaitingForRamdisk);
    pass.rest(WaitReason::AwaitingRamdisk, Some(RAMDISK_MISSING))
}

fn complete(pass: &mut HostPass<'_>, registration: Registration, facts: DoneFacts) -> PassEnd {
    pass.host.progress.registered = Some(registration);
    if let Some(id) = facts.id {
        store_id(pass, id);
    }
    if pass.state() != HostState::Registering {
        pass.host.status.history.register.finish(pass.moment.now);
    }
    if let Err(unknown) = profile::choose(pass) {
        return pass.fail(HostErrorKind::Registration, unknown);
    }
    if !pass.host.is_deleted() {
        pass.companions.push(CompanionChange::MakeFirmwareRecords);
    }
    let is_new = credentials::confirm(pass);
    if is_new || pass.has_error(HostErrorKind::Registration) {
        pass.clear_error();
    }
    pass.again()
}

/// Stores the id of the host at the driver. A record that is new to the driver has none of the settings that were
/// applied.
fn store_id(pass: &mut HostPass<'_>, id: Arc<str>) {
    if pass.host.status.provisioning.id == id {
        return;
    }
    pass.host.status.provisioning.id = id;
    if pass.state() == HostState::Preparing {
        preparation::forget_settings(pass);
    }
}

/// Ends the registration of a host.
pub(crate) fn registered(pass: &mut HostPass<'_>) {
    pass.host.status.error_count = 0;
    pass.events.push(HostEvent::Registered);
}
