//! Companions of hosts, as far as rules read them (host reference 2.6).

use std::sync::Arc;

use domain::{
    core::bos_time,
    host::{
        evidence::{DataImageSight, FirmwareWish, RamdiskSight, UpdatePolicy},
        record::{call::RamdiskImage, status::HostInventory},
    },
};
use proto::host as wire;
use serde_json::Value;

use super::annotations;

/// Text before the inventory in the spec of hardware data.
const BEFORE: &str = r#"{"hardware":"#;

/// Returns the spec of hardware data with this inventory, word by word.
pub fn hardware_spec(inventory: &wire::HostInventory) -> String {
    match annotations::inventory(&inventory.details_json) {
        Ok(_) => format!("{BEFORE}{}}}", inventory.details_json),
        Err(_) => format!("{BEFORE}{{}}}}"),
    }
}

/// Reads hardware data.
pub fn hardware(document: &wire::HostDocument) -> Option<Arc<HostInventory>> {
    let spec = document.spec_json.as_str();
    let whole = spec.strip_prefix(BEFORE).and_then(|rest| rest.strip_suffix('}'));
    // A person may have written it another way.
    let inner = || Some(object(spec).get("hardware")?.to_string());
    let read = |text: &str| annotations::inventory(text).ok();
    whole.and_then(read).or_else(|| read(&inner()?))
}

/// Reads wishes about firmware settings; `None`: there are none.
pub fn settings(document: &wire::HostDocument) -> Option<FirmwareWish> {
    let spec = object(&document.spec_json);
    let wishes = spec.get("settings").and_then(Value::as_object);
    wishes.filter(|wishes| !wishes.is_empty())?;
    let status = object(&document.status_json);
    let is_read = status.get("settings").and_then(Value::as_object).is_some_and(|known| !known.is_empty());
    Some(FirmwareWish { is_read, is_pending: true, ..judged(document, &status) })
}

/// Reads wishes about firmware versions; `None`: there are none.
pub fn components(document: &wire::HostDocument) -> Option<FirmwareWish> {
    let spec = object(&document.spec_json);
    let wishes =
        spec.get("updates").filter(|wishes| wishes.as_array().is_some_and(|list| !list.is_empty()))?;
    let status = object(&document.status_json);
    let is_pending = status.get("updates") != Some(wishes);
    Some(FirmwareWish { is_read: true, is_pending, ..judged(document, &status) })
}

/// Reads the changes of firmware that a running host allows.
pub fn policy(document: &wire::HostDocument) -> UpdatePolicy {
    let spec = object(&document.spec_json);
    let is_on_reboot = |name: &str| spec.get(name).and_then(Value::as_str) == Some("onReboot");
    UpdatePolicy { settings: is_on_reboot("firmwareSettings"), components: is_on_reboot("firmwareUpdates") }
}

/// Reads a data image. One that is to be deleted is not wanted.
pub fn data_image(document: &wire::HostDocument) -> DataImageSight {
    let (spec, status) = (object(&document.spec_json), object(&document.status_json));
    let is_deleted = document.meta.as_ref().is_some_and(|meta| meta.deleted_at.is_some());
    let url = |value: &Value| value.as_str().filter(|url| !url.is_empty()).map(Into::into);
    DataImageSight {
        wanted: spec.get("url").filter(|_| !is_deleted).and_then(url),
        inserted: status.pointer("/attachedImage/url").and_then(url),
    }
}

/// Reads a ramdisk image.
pub fn ramdisk(document: &wire::HostDocument) -> RamdiskSight {
    let status = object(&document.status_json);
    let text = |path: &str| status.pointer(path).and_then(Value::as_str).unwrap_or_default();
    if let Some(failure) = condition(&status, "Error").filter(|one| is_true(one)) {
        let text = failure.get("message").and_then(Value::as_str).unwrap_or_default();
        return RamdiskSight::Failed { text: text.into() };
    }
    if !condition(&status, "Ready").is_some_and(is_true) || text("/imageUrl").is_empty() {
        return RamdiskSight::Pending;
    }
    let (url, network_version) = (text("/imageUrl").into(), text("/networkData/version").into());
    RamdiskSight::Built(Arc::new(RamdiskImage { url, network_version }))
}

/// Reads the wishes in the record itself.
pub(super) fn judged(document: &wire::HostDocument, status: &Value) -> FirmwareWish {
    let generation = document.meta.as_ref().map(|meta| meta.generation);
    let present = |name: &str| {
        let is_present = |one: &&Value| one.get("observedGeneration").and_then(Value::as_u64) == generation;
        condition(status, name).filter(is_present)
    };
    let (changed, valid) = (present("ChangeDetected"), present("Valid"));
    FirmwareWish {
        is_judged: changed.is_some() && valid.is_some(),
        is_changed: changed.is_some_and(is_true),
        is_valid: valid.is_some_and(is_true),
        read_at: status
            .get("lastUpdated")
            .and_then(Value::as_str)
            .and_then(bos_time::read)
            .unwrap_or_default(),
        ..FirmwareWish::default()
    }
}

pub(super) fn condition<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    let mut conditions = status.get("conditions")?.as_array()?.iter();
    conditions.find(|one| one.get("type").and_then(Value::as_str) == Some(name))
}

fn is_true(condition: &Value) -> bool {
    condition.get("status").and_then(Value::as_str) == Some("True")
}

/// Reads a text in JSON; an empty or unreadable one has no members.
pub(super) fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
