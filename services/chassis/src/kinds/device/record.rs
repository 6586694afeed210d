//! The record of a device as a whole, and the facts about it.

use std::{collections::BTreeMap, sync::Arc};

use domain::{
    core::{invalid::Invalid, text::text, time::Timestamp},
    device::record::{
        Device, DeviceLabels, DeviceMeta,
        annotations::{DeviceAnnotations, RestoreMark, SpecHash},
        name::{DeviceName, FleetName},
        version::{RenderedVersion, TemplateVersionName},
    },
};
use proto::device as wire;

use super::{report, spec, status};
use crate::{kinds::Interner, mesh::time};

/// Reads a device.
///
/// # Errors
/// Names the field that no device can have.
pub fn from_wire(message: wire::Device, texts: &mut Interner) -> Result<Device, Invalid> {
    Ok(Device {
        meta: meta_from_wire(message.meta.unwrap_or_default(), texts)?,
        spec: spec::from_wire(message.spec.unwrap_or_default(), texts)?,
        reported: report::from_wire(message.reported.unwrap_or_default(), texts)?,
        conditions: report::conditions_from_wire(message.conditions, texts)?,
        status: status::from_wire(message.status.unwrap_or_default(), texts)?,
    })
}

/// Returns the message of a device, without its revisions.
pub fn to_wire(device: &Device) -> wire::Device {
    wire::Device {
        meta: Some(meta_to_wire(&device.meta)),
        spec: Some(spec::to_wire(&device.spec)),
        reported: Some(report::to_wire(&device.reported)),
        conditions: device.conditions.iter().map(report::condition_to_wire).collect(),
        status: Some(status::to_wire(&device.status)),
        revision: 0,
        last_event: 0,
    }
}

/// Shares the texts of labels.
pub fn labels(labels: BTreeMap<String, String>, texts: &mut Interner) -> DeviceLabels {
    labels.into_iter().map(|(key, value)| (texts.share(&key), texts.share(&value))).collect()
}

/// Returns the message of labels.
pub fn labels_to_wire(labels: &DeviceLabels) -> BTreeMap<String, String> {
    labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// Reads the owner of a device; empty: none.
///
/// # Errors
/// The name can be that of no fleet.
pub fn owner(name: &str) -> Result<Option<FleetName>, Invalid> {
    let refused = |invalid: Invalid| Invalid::new("metadata.owner", invalid.reason);
    (!name.is_empty()).then(|| FleetName::parse(name)).transpose().map_err(refused)
}

/// Returns the name of a template version; `None`: the text is empty.
pub fn template_version(name: &str, texts: &mut Interner) -> Option<TemplateVersionName> {
    (!name.is_empty()).then(|| TemplateVersionName(texts.share(name)))
}

fn meta_from_wire(meta: wire::DeviceMeta, texts: &mut Interner) -> Result<DeviceMeta, Invalid> {
    Ok(DeviceMeta {
        name: DeviceName::parse(&meta.name)?,
        labels: labels(meta.labels, texts),
        annotations: annotations_from_wire(meta.annotations.unwrap_or_default(), texts),
        owner: owner(&meta.owner_fleet)?,
        generation: meta.generation,
        created: meta.created_at.map_or(Timestamp(0), time::from_wire),
    })
}

fn meta_to_wire(meta: &DeviceMeta) -> wire::DeviceMeta {
    wire::DeviceMeta {
        name: meta.name.as_str().to_owned(),
        labels: labels_to_wire(&meta.labels),
        annotations: Some(annotations_to_wire(&meta.annotations)),
        owner_fleet: meta.owner.as_ref().map_or_else(String::new, FleetName::to_string),
        generation: meta.generation,
        created_at: Some(time::to_wire(meta.created)),
    }
}

fn annotations_from_wire(annotations: wire::DeviceAnnotations, texts: &mut Interner) -> DeviceAnnotations {
    let restore_mark = match annotations.restore_mark() {
        wire::RestoreMark::Unspecified => None,
        wire::RestoreMark::AwaitingReconnect => Some(RestoreMark::AwaitingReconnect),
        wire::RestoreMark::ConflictPaused => Some(RestoreMark::ConflictPaused),
    };
    let hash = annotations.rendered_spec_hash;
    DeviceAnnotations {
        rendered_version: Some(annotations.rendered_version)
            .filter(|version| *version > 0)
            .map(RenderedVersion),
        rendered_spec_hash: (!hash.is_empty()).then(|| SpecHash(hash.into())),
        restore_mark,
        template_version: template_version(&annotations.template_version, texts),
        rendered_template_version: template_version(&annotations.rendered_template_version, texts),
        last_rollout_error: text(&annotations.last_rollout_error),
    }
}

fn annotations_to_wire(annotations: &DeviceAnnotations) -> wire::DeviceAnnotations {
    let restore_mark = match annotations.restore_mark {
        None => wire::RestoreMark::Unspecified,
        Some(RestoreMark::AwaitingReconnect) => wire::RestoreMark::AwaitingReconnect,
        Some(RestoreMark::ConflictPaused) => wire::RestoreMark::ConflictPaused,
    };
    let version = |name: &Option<TemplateVersionName>| {
        name.as_ref().map_or_else(String::new, |TemplateVersionName(name)| name.to_string())
    };
    let hash = annotations.rendered_spec_hash.as_ref().map(|SpecHash(hash)| Arc::clone(hash));
    wire::DeviceAnnotations {
        rendered_version: annotations.rendered_version.map_or(0, |RenderedVersion(number)| number),
        rendered_spec_hash: hash.map_or_else(String::new, |hash| hash.to_string()),
        restore_mark: restore_mark.into(),
        template_version: version(&annotations.template_version),
        rendered_template_version: version(&annotations.rendered_template_version),
        last_rollout_error: annotations.last_rollout_error.to_string(),
    }
}
