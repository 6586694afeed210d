//! Decisions about devices as they are reported.

use chassis::kinds::device::{report::condition_to_wire, spec};
use domain::device::record::{
    Device,
    annotations::SpecHash,
    version::{RenderedVersion, TemplateVersionName},
};
use proto::device::{DeviceFleetDecision, DeviceRendering, DeviceRollout, device_rollout::Outcome};

/// Returns the decision that makes `after` of a device, whose revision is that of `before`.
pub(super) fn decision(before: &Device, revision: u64, after: &Device) -> DeviceFleetDecision {
    let is_moved = before.meta.owner != after.meta.owner;
    let owner = after.meta.owner.as_ref().map_or_else(String::new, ToString::to_string);
    let conditions = after.conditions.iter();
    let conditions = conditions.filter(|one| before.condition(one.kind) != Some(*one));
    DeviceFleetDecision {
        name: after.meta.name.to_string(),
        revision,
        owner_fleet: is_moved.then_some(owner),
        conditions: conditions.map(condition_to_wire).collect(),
        rollout: rollout(before, after, is_moved),
        rendering: rendering(before, after, is_moved),
    }
}

/// A device that has moved to another fleet forgets the template, so the report has it even if it is the same.
fn rollout(before: &Device, after: &Device, is_moved: bool) -> Option<DeviceRollout> {
    let (was, is) = (&before.meta.annotations, &after.meta.annotations);
    let is_other = is_moved
        || before.spec != after.spec
        || was.template_version != is.template_version
        || was.last_rollout_error != is.last_rollout_error;
    let outcome = match (&*is.last_rollout_error, &is.template_version) {
        ("", None) => return None,
        ("", Some(_)) => Outcome::Spec(spec::to_wire(&after.spec)),
        (error, _) => Outcome::Error(error.to_owned()),
    };
    let template_version = name(is.template_version.as_ref());
    is_other.then_some(DeviceRollout { outcome: Some(outcome), template_version })
}

fn rendering(before: &Device, after: &Device, is_moved: bool) -> Option<DeviceRendering> {
    let (was, is) = (&before.meta.annotations, &after.meta.annotations);
    let SpecHash(spec_hash) = is.rendered_spec_hash.as_ref()?;
    let RenderedVersion(version) = is.rendered_version?;
    let is_other = was.rendered_version != is.rendered_version
        || was.rendered_spec_hash != is.rendered_spec_hash
        || is_moved && is.rendered_template_version.is_some()
        || was.rendered_template_version != is.rendered_template_version;
    let template_version = name(is.rendered_template_version.as_ref());
    is_other.then(|| DeviceRendering { spec_hash: spec_hash.to_string(), version, template_version })
}

fn name(version: Option<&TemplateVersionName>) -> String {
    version.map_or_else(String::new, |TemplateVersionName(name)| name.to_string())
}
