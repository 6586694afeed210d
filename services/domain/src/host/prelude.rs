//! Order in the record before the state machine runs: pause, restored status, inventory, finalizer (host reference
//! 1.2).

use std::{sync::Arc, time::Duration};

use crate::host::{
    decision::{CompanionChange, HostEvent, HostMetric},
    evidence::DriverSight,
    inspection,
    pass::{Flow, HostPass, PassEnd},
    record::{PowerAuthority, annotations::AnnotationName, reason::WaitReason, status::HostInventory},
};

/// Time until a backend that is not ready is looked at again.
const DRIVER_NOT_READY: Duration = Duration::from_secs(30);

/// Leaves a paused host alone, its deletion included (host reference Q10).
pub(crate) fn pause(pass: &mut HostPass<'_>) -> Flow {
    if pass.host.meta.annotations.paused {
        Err(HostPass::wait_for_change(WaitReason::Paused))
    } else {
        Ok(())
    }
}

/// Leaves a host alone while a session acts on the node that it is; only its power is shown as it is.
pub(crate) fn yield_to_session(pass: &mut HostPass<'_>) -> Flow {
    match pass.host.meta.power_authority {
        PowerAuthority::Spec | PowerAuthority::LastSession => Ok(()),
        PowerAuthority::Session => {
            if let Some(is_on) = pass.latest_view().and_then(|view| view.powered_on) {
                pass.host.status.powered_on = is_on;
            }
            Err(HostPass::wait_for_change(WaitReason::NodeInUse))
        }
    }
}

/// Takes the status from its annotation, once, for a record that never had one. The durable inventory counts more than
/// that of the annotation.
pub(crate) fn restore_status(pass: &mut HostPass<'_>) -> Flow {
    let Some(annotation) = pass.host.meta.annotations.status.take() else { return Ok(()) };
    let (None, Ok(status)) = (pass.host.status.last_updated, annotation) else {
        pass.events.push(HostEvent::RemoveAnnotation(AnnotationName::Status));
        return Err(pass.again());
    };
    pass.host.status = *status;
    pass.host.status.last_updated.get_or_insert(pass.moment.now);
    if let Some(hardware) = &pass.seen.hardware_data {
        pass.host.status.hardware = Some(Arc::clone(hardware));
    }
    Err(pass.again())
}

/// Takes the architecture from the durable inventory, unless a person has given one.
pub(crate) fn fill_architecture(pass: &mut HostPass<'_>) -> Flow {
    let known = pass.seen.hardware_data.as_ref().map(|hardware| &hardware.architecture);
    let Some(architecture) = known.filter(|known| !known.is_empty()) else { return Ok(()) };
    if !pass.host.spec.architecture.is_empty() {
        return Ok(());
    }
    pass.host.spec.architecture = Arc::clone(architecture);
    Err(pass.again())
}

/// Takes the inventory from its durable copy, or from an annotation, where no inspection provides it.
pub(crate) fn take_inventory(pass: &mut HostPass<'_>) -> Flow {
    let wants_inventory = pass.host.status.hardware.is_none() || inspection::is_disabled(&pass.host);
    let is_new = wants_inventory && adopt_inventory(pass)?;
    let was_consumed = is_new && pass.seen.hardware_data.is_none();
    let was_removed = pass.remove_annotation(AnnotationName::HardwareDetails);
    if was_removed && !was_consumed {
        pass.events.push(HostEvent::RemoveAnnotation(AnnotationName::HardwareDetails));
    }
    if is_new || was_removed { Err(pass.again()) } else { Ok(()) }
}

/// Takes an inventory that differs from the known one; returns whether there was one.
fn adopt_inventory(pass: &mut HostPass<'_>) -> Flow<bool> {
    let Some(inventory) = offered_inventory(pass)? else { return Ok(false) };
    if pass.host.status.hardware.as_ref() == Some(&inventory) {
        return Ok(false);
    }
    if pass.seen.hardware_data.is_none() {
        pass.companions.push(CompanionChange::StoreHardwareData(Arc::clone(&inventory)));
    }
    pass.host.status.hardware = Some(inventory);
    pass.events.push(HostEvent::UpdateHardwareDetails);
    Ok(true)
}

fn offered_inventory(pass: &mut HostPass<'_>) -> Result<Option<Arc<HostInventory>>, PassEnd> {
    if let Some(stored) = &pass.seen.hardware_data {
        return Ok(Some(Arc::clone(stored)));
    }
    match pass.host.meta.annotations.hardware_details.clone() {
        None => Ok(None),
        Some(Ok(inventory)) => Ok(Some(inventory)),
        Some(Err(_)) => {
            let text = "the hardware details annotation cannot be read";
            Err(pass.trouble(WaitReason::HardwareDetailsUnreadable, text.into()))
        }
    }
}

/// Keeps the record until the host is released.
pub(crate) fn add_finalizer(pass: &mut HostPass<'_>) -> Flow {
    if pass.host.meta.has_finalizer || pass.host.is_deleted() {
        return Ok(());
    }
    pass.host.meta.has_finalizer = true;
    Err(pass.again())
}

/// Lets a host rest until its time is over or something about it has changed.
pub(crate) fn rest(pass: &mut HostPass<'_>) -> Flow {
    let Some(rest) = pass.host.progress.rest else { return Ok(()) };
    let is_over = rest.until.is_some_and(|until| pass.now() >= until);
    if is_over || rest.change != pass.host.meta.change {
        pass.host.progress.rest = None;
        return Ok(());
    }
    Err(PassEnd { reason: rest.reason, look: rest.until })
}

/// Claims the secret with network data for the ramdisk.
pub(crate) fn claim_network_secret(pass: &mut HostPass<'_>) -> Flow {
    let wanted = pass.host.spec.network_secret.clone();
    if wanted != pass.host.progress.network_secret && !pass.host.is_deleted() {
        pass.companions.extend(wanted.clone().map(CompanionChange::ClaimNetworkSecret));
        pass.host.progress.network_secret = wanted;
    }
    Ok(())
}

/// Waits for the backend of a managed host.
pub(crate) fn await_driver(pass: &mut HostPass<'_>) -> Flow {
    let is_managed = !pass.state().is_unmanaged() || pass.host.spec.names_a_bmc();
    if !is_managed || pass.seen.driver != DriverSight::NotReady {
        return Ok(());
    }
    pass.metrics.push(HostMetric::DriverNotReady);
    Err(pass.wait(WaitReason::DriverNotReady, DRIVER_NOT_READY))
}
