//! End of the life of a device (device reference 3.5).

use crate::device::{
    record::{
        Device, DeviceLabels,
        spec::DecommissionTarget,
        status::{LifecycleStatus, StatusEntry},
    },
    write::WriteConflict,
};

/// Returns the device with the wish to end its life. The device leaves its fleet and every selection by label. The
/// caller renders it, so that its agent gets the wish.
///
/// # Errors
/// When the wish was there before.
pub fn decommission(device: &Device, target: DecommissionTarget) -> Result<Device, WriteConflict> {
    if device.spec.decommissioning.is_some() {
        return Err(WriteConflict::Decommissioning);
    }
    let mut ending = device.clone();
    ending.spec.decommissioning = Some(target);
    ending.meta.owner = None;
    ending.meta.labels = DeviceLabels::new();
    let stage = device.status.lifecycle.status.max(LifecycleStatus::Decommissioning);
    ending.status.lifecycle = StatusEntry::new(stage, "the end of the device was requested");
    Ok(ending)
}
