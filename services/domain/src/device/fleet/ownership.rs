//! Ownership: which fleet a device belongs to (device reference 3.1).

use crate::{
    core::{condition::ConditionStatus, time::Timestamp},
    device::{
        fleet::record::Fleet,
        record::{
            Device,
            condition::{self, ConditionChange, ConditionKind, ConditionReason},
            name::FleetName,
        },
    },
};

/// Returns the device with the owner that the fleets give it. `None`: nothing changes, as for a device that is being
/// decommissioned.
pub fn assign<'a>(
    device: &Device,
    fleets: impl Iterator<Item = &'a Fleet>,
    now: Timestamp,
) -> Option<Device> {
    if device.spec.decommissioning.is_some() {
        return None;
    }
    let matching = fleets.filter(|fleet| fleet.spec.selector.matches(&device.meta.labels));
    let mut owners: Vec<_> = matching.map(|fleet| &fleet.name).collect();
    owners.sort_unstable();
    let mut assigned = device.clone();
    match owners.as_slice() {
        [] => assigned.meta.owner = None,
        [owner] => assigned.meta.owner = Some((*owner).clone()),
        // No fleet wins over another, so the device stays where it is.
        [_, _, ..] => {}
    }
    if assigned.meta.owner != device.meta.owner {
        forget_template(&mut assigned);
    }
    set_multiple_owners(&mut assigned, &owners, now);
    (assigned != *device).then_some(assigned)
}

/// Returns the device without an owner: its fleet is gone. The spec stays.
pub fn release(device: &Device) -> Device {
    let mut released = device.clone();
    if released.meta.owner.take().is_some() {
        forget_template(&mut released);
    }
    released
}

/// Versions of templates are names within one fleet: `v1` of the last owner says nothing about `v1` of the next.
fn forget_template(device: &mut Device) {
    let annotations = &mut device.meta.annotations;
    annotations.template_version = None;
    annotations.rendered_template_version = None;
    annotations.last_rollout_error = "".into();
}

/// A device that was never selected twice has no condition that says so.
fn set_multiple_owners(device: &mut Device, owners: &[&FleetName], now: Timestamp) {
    let is_contested = owners.len() > 1;
    if !is_contested && device.condition(ConditionKind::MultipleOwners).is_none() {
        return;
    }
    let status = if is_contested { ConditionStatus::True } else { ConditionStatus::False };
    let names: Vec<_> = owners.iter().map(|owner| owner.as_str()).filter(|_| is_contested).collect();
    let reason = ConditionReason::MultipleOwners;
    let change = ConditionChange { status, reason, message: names.join(",").into() };
    condition::set(&mut device.conditions, ConditionKind::MultipleOwners, change, now);
}
