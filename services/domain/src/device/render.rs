//! Rendering: when the spec of a device becomes a new version for its agent (device reference 3.2).

use std::sync::Arc;

use crate::{
    core::{condition::ConditionStatus, time::Timestamp},
    device::record::{
        Device,
        annotations::SpecHash,
        condition::{self, ConditionChange, ConditionKind, ConditionReason},
        version::RenderedVersion,
    },
};

/// Rendered spec of a device, or the reason why there is none, for people.
pub type RenderResult = Result<SpecHash, Arc<str>>;

/// Consequence of rendering the spec of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenderDecision {
    /// The device is paused since a restored database, so nothing is rendered.
    Suspended,
    /// The agent keeps its spec. The device may still change, for example because a new template renders the same.
    Unchanged(Box<Device>),
    /// The agent gets a new version: wake those that wait for one.
    Rendered(Box<Device>),
    /// The spec cannot be rendered.
    Failed(Box<Device>),
}

/// Decides about a rendered spec of a device. The caller evaluates the device.
pub fn render(device: &Device, result: RenderResult, now: Timestamp) -> RenderDecision {
    if device.meta.annotations.restore_mark.is_some() {
        return RenderDecision::Suspended;
    }
    let mut rendered = Box::new(device.clone());
    match result {
        Err(reason) => {
            set_validity(&mut rendered, ConditionReason::Invalid, reason, now);
            RenderDecision::Failed(rendered)
        }
        Ok(hash) => {
            set_validity(&mut rendered, ConditionReason::Valid, Arc::default(), now);
            note_template(&mut rendered);
            if is_same(device, &hash) {
                return RenderDecision::Unchanged(rendered);
            }
            raise_version(&mut rendered, hash);
            RenderDecision::Rendered(rendered)
        }
    }
}

fn is_same(device: &Device, hash: &SpecHash) -> bool {
    let annotations = &device.meta.annotations;
    annotations.rendered_version.is_some() && annotations.rendered_spec_hash.as_ref() == Some(hash)
}

/// A template counts as rendered even if it renders the same as before (choice V8), or the device would stay out of
/// date for ever.
fn note_template(device: &mut Device) {
    let annotations = &mut device.meta.annotations;
    if annotations.template_version.is_some() {
        annotations.rendered_template_version.clone_from(&annotations.template_version);
    }
}

/// The new version is also above the one that the agent runs, which a restored database may not know.
fn raise_version(device: &mut Device, hash: SpecHash) {
    let annotations = &mut device.meta.annotations;
    let known = annotations.rendered_version.unwrap_or(RenderedVersion::NONE);
    let reported = RenderedVersion::reported(&device.reported.rendered_version);
    annotations.rendered_version = Some(known.max(reported).next());
    annotations.rendered_spec_hash = Some(hash);
}

fn set_validity(device: &mut Device, reason: ConditionReason, message: Arc<str>, now: Timestamp) {
    let is_valid = reason == ConditionReason::Valid;
    let status = if is_valid { ConditionStatus::True } else { ConditionStatus::False };
    let change = ConditionChange { status, reason, message };
    condition::set(&mut device.conditions, ConditionKind::SpecValid, change, now);
}
