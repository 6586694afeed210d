//! Writes of people and fleets: what they change, and which are refused (device reference 4.4).

use crate::{
    core::invalid::Invalid,
    device::{
        label::check_labels,
        record::{Device, DeviceLabels, report::OsMode, spec::DeviceSpec},
    },
};

/// Wishes for a device. Everything else in a written document has no effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceWish {
    /// Labels.
    pub labels: DeviceLabels,
    /// Spec.
    pub spec: DeviceSpec,
}

/// Refusal of a write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteRefusal {
    /// The document breaks a rule, whatever the state of the resource.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The state of the resource forbids the write.
    #[error("{0}")]
    Conflict(WriteConflict),
}

/// State of a resource that forbids a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum WriteConflict {
    /// A fleet owns the device and writes its spec.
    #[error("spec cannot be changed while a fleet owns the device")]
    Owned,
    /// The end of the device was asked for.
    #[error("the device is being decommissioned")]
    Decommissioning,
    /// The device of an enrolment request exists.
    #[error("the device of the enrolment request exists")]
    DeviceExists,
}

/// Checks the wishes for a new device.
///
/// # Errors
/// Names the field that breaks a rule.
pub fn check_new(wish: &DeviceWish) -> Result<(), Invalid> {
    check_labels(&wish.labels)?;
    check_end(&wish.spec)
}

/// Returns the device with the wishes of a person.
///
/// # Errors
/// When a field breaks a rule, or when the state of the device forbids the change.
pub fn replace(device: &Device, wish: DeviceWish) -> Result<Device, WriteRefusal> {
    check_new(&wish)?;
    check_system(device, &wish.spec)?;
    let is_spec_changed = wish.spec != device.spec;
    let is_ending = device.spec.decommissioning.is_some();
    if is_ending && (is_spec_changed || wish.labels != device.meta.labels) {
        return Err(WriteRefusal::Conflict(WriteConflict::Decommissioning));
    }
    if is_spec_changed && device.meta.owner.is_some() {
        return Err(WriteRefusal::Conflict(WriteConflict::Owned));
    }
    let mut replaced = with_spec(device, wish.spec);
    replaced.meta.labels = wish.labels;
    Ok(replaced)
}

/// Checks that a person may patch the status of a device. Agents report by replacing it.
///
/// # Errors
/// When the device is being decommissioned.
pub fn check_status_patch(device: &Device) -> Result<(), WriteConflict> {
    if device.spec.decommissioning.is_some() { Err(WriteConflict::Decommissioning) } else { Ok(()) }
}

/// Returns the device with another spec. Its generation counts the changes.
pub(crate) fn with_spec(device: &Device, spec: DeviceSpec) -> Device {
    let mut changed = device.clone();
    if changed.spec != spec {
        changed.spec = spec;
        changed.meta.generation = changed.meta.generation.saturating_add(1);
    }
    changed
}

fn check_end(spec: &DeviceSpec) -> Result<(), Invalid> {
    match spec.decommissioning {
        Some(_) => Err(Invalid::new("spec.decommissioning", "is set by the decommission call alone")),
        None => Ok(()),
    }
}

/// A device that updates packages takes no system as a whole. A wish from before its agent reported so may stay.
fn check_system(device: &Device, spec: &DeviceSpec) -> Result<(), Invalid> {
    let takes_packages = device.reported.os_mode == Some(OsMode::Package);
    if takes_packages && spec.os.is_some() && spec.os != device.spec.os {
        return Err(Invalid::new("spec.os", "cannot be set, because the device updates packages"));
    }
    Ok(())
}
