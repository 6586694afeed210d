//! Management: everything that fleets and rendering do to one device (device reference 3.1, 3.2).

use crate::{
    core::time::Timestamp,
    device::{
        fleet::{
            ownership::{assign, release},
            record::Fleet,
            rollout::{RolloutDecision, roll_out},
        },
        record::{Device, spec::DeviceSpec},
        render::{RenderDecision, RenderResult, render},
    },
};

/// Fleets that one decision about a device rests on.
#[derive(Debug, Clone)]
pub struct FleetEvidence<'a> {
    /// Every fleet whose selector may match the device.
    pub candidates: Vec<&'a Fleet>,
    /// Fleet that owns the device by its record; `None`: there is no such fleet.
    pub owner: Option<&'a Fleet>,
}

/// Returns the device with its owner, the template of its owner, and a rendered spec; `None`: nothing changes. A device
/// that no fleet owns is rendered too. `render_spec` renders the spec that the device then has.
pub fn manage(
    device: &Device,
    fleets: &FleetEvidence<'_>,
    render_spec: impl FnOnce(&DeviceSpec) -> RenderResult,
    now: Timestamp,
) -> Option<Device> {
    let owned = owned(device, fleets, now);
    let rolled_out = rolled_out(owned, fleets);
    let result = render_spec(&rolled_out.spec);
    let managed = match render(&rolled_out, result, now) {
        RenderDecision::Suspended => rolled_out,
        RenderDecision::Unchanged(managed)
        | RenderDecision::Rendered(managed)
        | RenderDecision::Failed(managed) => *managed,
    };
    (managed != *device).then_some(managed)
}

fn owned(device: &Device, fleets: &FleetEvidence<'_>, now: Timestamp) -> Device {
    let known = match fleets.owner {
        Some(_) => device.clone(),
        None => release(device),
    };
    assign(&known, fleets.candidates.iter().copied(), now).unwrap_or(known)
}

fn rolled_out(device: Device, fleets: &FleetEvidence<'_>) -> Device {
    let mut known = fleets.candidates.iter().copied().chain(fleets.owner);
    let Some(owner) = known.find(|fleet| device.meta.owner.as_ref() == Some(&fleet.name)) else {
        return device;
    };
    match roll_out(owner, &device) {
        RolloutDecision::Skip(_) => device,
        RolloutDecision::RollOut(changed) | RolloutDecision::Fail(changed) => *changed,
    }
}
