//! Annotations that steer a host, read from their texts (host reference 1.2, 1.12, 1.14, 1.15).

use std::{collections::BTreeMap, sync::Arc};

use domain::{
    core::bos_time,
    host::{
        node::NodeMarks,
        record::{
            annotations::{
                AnnotationName, DISCARD_UNTIL, DetachMark, HostAnnotations, InspectRequest, RebootMode,
                RebootRequest, UnreadableText,
            },
            status::HostInventory,
        },
    },
};
use proto::host as wire;
use serde::Deserialize;
use serde_json::Value;

use super::{inventory_text, status_text, value};

/// Annotation that pauses a host.
pub const PAUSED: &str = "baremetalhost.metal3.io/paused";

/// Annotation that detaches a host.
pub const DETACHED: &str = "baremetalhost.metal3.io/detached";

/// Annotation with the id of the component that the host becomes.
pub const XNAME: &str = "reveille.io/xname";

/// Annotation with the numeric node id.
pub const NID: &str = "reveille.io/nid";

/// Label with the group of the node.
pub const GROUP: &str = "reveille.io/group";

/// Finalizer of a host.
pub const FINALIZER: &str = "baremetalhost.metal3.io";

/// Beginning of the names of reboot annotations that hold the power off.
const HOLD: &str = "reboot.metal3.io/";

/// Modes of a reboot. An empty one is the usual one.
const MODES: [&str; 3] = ["", "soft", "hard"];

/// Value of the annotation against inspection.
const NO_INSPECTION: &str = "disabled";

/// Value of a detach mark.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DetachValue {
    force: bool,
    #[serde(rename = "deleteAction")]
    delete_action: String,
}

/// Value of a reboot annotation.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RebootValue {
    mode: String,
    force: bool,
}

/// Reads the annotations that rules read.
pub fn from_wire(annotations: &BTreeMap<String, String>) -> HostAnnotations {
    let value = |name: AnnotationName| annotations.get(name.word()).map(String::as_str);
    HostAnnotations {
        paused: annotations.contains_key(PAUSED),
        detached: annotations.get(DETACHED).map(|text| detach_mark(text)),
        reboots: reboots(annotations),
        inspect: value(AnnotationName::Inspect).map(inspect_request),
        is_inspect_unreadable: value(AnnotationName::Inspect)
            .is_some_and(|text| !["", NO_INSPECTION].contains(&text)),
        discard_until: annotations
            .get(DISCARD_UNTIL)
            .and_then(|text| bos_time::read(text.strip_suffix('Z')?)),
        hardware_details: value(AnnotationName::HardwareDetails).map(supplied_inventory),
        status: value(AnnotationName::Status).map(|text| status_text::read(text).map(Box::new)),
    }
}

/// Reads the marks of the node that a host becomes.
pub fn node_marks(meta: &wire::ObjectMeta) -> NodeMarks {
    let nid = meta.annotations.get(NID).map(|text| text.parse().map_err(|_| UnreadableText));
    let group = meta.labels.get(GROUP).filter(|group| !group.is_empty());
    NodeMarks {
        xname: value::shared(meta.annotations.get(XNAME)),
        nid,
        group: value::shared(group),
        created_at: value::time_or_none(meta.created_at),
    }
}

fn detach_mark(text: &str) -> DetachMark {
    let value: DetachValue = serde_json::from_str(text).unwrap_or_default();
    DetachMark { force: value.force, delays_deletion: value.delete_action == "delay" }
}

fn reboots(annotations: &BTreeMap<String, String>) -> Vec<RebootRequest> {
    let requests = annotations.iter().filter_map(|(name, text)| {
        let key = if name == AnnotationName::Reboot.word() { None } else { Some(name.strip_prefix(HOLD)?) };
        Some(reboot(key.map(Into::into), text))
    });
    requests.collect()
}

fn reboot(key: Option<Arc<str>>, text: &str) -> RebootRequest {
    let value = if text.is_empty() { Ok(RebootValue::default()) } else { serde_json::from_str(text) };
    let is_unreadable = value.as_ref().map_or(true, |value| !MODES.contains(&&*value.mode));
    let value = value.unwrap_or_default();
    let mode = if value.mode == "hard" { RebootMode::Hard } else { RebootMode::Soft };
    RebootRequest { key, mode, force: value.force, is_unreadable }
}

fn inspect_request(text: &str) -> InspectRequest {
    if text == NO_INSPECTION { InspectRequest::Disabled } else { InspectRequest::Again }
}

/// Reads an inventory that a person supplies: one with an unknown member is a mistake.
fn supplied_inventory(text: &str) -> Result<Arc<HostInventory>, UnreadableText> {
    let value: Value = serde_json::from_str(text).map_err(|_| UnreadableText)?;
    if inventory_text::is_known(&value) { inventory(text) } else { Err(UnreadableText) }
}

/// Reads an inventory in the form of the contract.
///
/// # Errors
/// The text is no JSON object.
pub fn inventory(text: &str) -> Result<Arc<HostInventory>, UnreadableText> {
    let value: Value = serde_json::from_str(text).map_err(|_| UnreadableText)?;
    if !value.is_object() {
        return Err(UnreadableText);
    }
    let architecture = value.pointer("/cpu/arch").and_then(Value::as_str).unwrap_or_default();
    Ok(Arc::new(HostInventory { architecture: architecture.into(), details: text.into() }))
}
