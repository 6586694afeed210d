//! Rollout: when a device gets the template of its fleet (device reference 3.2).
//!
//! Every device gets a template at once. Batches and budgets would decide before [`roll_out`] which devices are asked
//! about.

use crate::device::{
    fleet::{record::Fleet, template},
    record::{
        Device,
        condition::{ConditionKind, DeviceCondition},
    },
    write::with_spec,
};

/// Decision about the rollout of a template to a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutDecision {
    /// The device needs no template.
    Skip(RolloutSkip),
    /// The device gets the template. The caller renders and evaluates it.
    RollOut(Box<Device>),
    /// The template does not fit the device, which notes why. The caller evaluates it.
    Fail(Box<Device>),
}

/// Reason for which a device gets no template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RolloutSkip {
    /// The fleet does not own the device.
    NotOwned,
    /// Several fleets select the device.
    MultipleOwners,
    /// The device is being decommissioned.
    Decommissioning,
    /// The device has the template, rendered.
    Current,
}

impl RolloutSkip {
    /// The word in logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotOwned => "not_owned",
            Self::MultipleOwners => "multiple_owners",
            Self::Decommissioning => "decommissioning",
            Self::Current => "current",
        }
    }
}

/// Decides whether a device gets the present template of `fleet`.
pub fn roll_out(fleet: &Fleet, device: &Device) -> RolloutDecision {
    if let Some(skip) = obstacle(fleet, device) {
        return RolloutDecision::Skip(skip);
    }
    match template::fill(&fleet.spec.template, &device.meta) {
        Err(error) => {
            let mut failed = Box::new(device.clone());
            failed.meta.annotations.last_rollout_error = error.to_string().into();
            RolloutDecision::Fail(failed)
        }
        Ok(spec) => {
            let mut rolled_out = with_spec(device, spec);
            let annotations = &mut rolled_out.meta.annotations;
            annotations.template_version = Some(fleet.template_version.clone());
            annotations.last_rollout_error = "".into();
            if rolled_out == *device && is_rendered(device) {
                return RolloutDecision::Skip(RolloutSkip::Current);
            }
            RolloutDecision::RollOut(Box::new(rolled_out))
        }
    }
}

fn obstacle(fleet: &Fleet, device: &Device) -> Option<RolloutSkip> {
    let several = device.condition(ConditionKind::MultipleOwners);
    if device.meta.owner.as_ref() != Some(&fleet.name) {
        Some(RolloutSkip::NotOwned)
    } else if several.is_some_and(DeviceCondition::is_true) {
        Some(RolloutSkip::MultipleOwners)
    } else if device.spec.decommissioning.is_some() {
        Some(RolloutSkip::Decommissioning)
    } else {
        None
    }
}

/// A device that has the template and was not rendered since would stay out of date for ever if it were skipped.
fn is_rendered(device: &Device) -> bool {
    device.meta.annotations.rendered_template_version == device.meta.annotations.template_version
}
