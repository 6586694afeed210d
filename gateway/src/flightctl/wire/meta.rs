//! Facts about documents and lists (device reference 1.1, 1.2).

use std::collections::BTreeMap;

use proto::device::{DeviceAnnotations, DeviceMeta, RestoreMark};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    moment::Moment,
    words::{DocumentVersions, Word},
};

/// Version of the contract in answers.
pub(crate) const API_VERSION: &str = "flightctl.io/v1beta1";

/// Prefix of the owner of what belongs to a fleet.
const FLEET: &str = "Fleet/";

/// Version of the contract that a document follows.
pub(crate) type ApiVersion = Word<DocumentVersions>;

/// Returns the version that answers follow.
pub(crate) fn api_version() -> ApiVersion {
    Word::stored(API_VERSION)
}

/// Facts about a resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectMeta {
    /// Name: a DNS subdomain of at most 253 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations, which the service writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Owner, such as `Fleet/kiosk`, which the service writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Number of changes of the spec, which the service writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Version of the resource. In a write: the version that it must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Time of creation, which the service writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Moment>,
    /// Time at which the deletion was requested, which the service writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Moment>,
}

/// Facts about a page of a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListMeta {
    /// Value of the parameter `continue` for the next page; absent: there is none.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Approximate number of items after this page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<i64>,
}

impl ObjectMeta {
    /// Facts about a device.
    pub(super) fn of_device(meta: DeviceMeta, revision: u64) -> Self {
        let DeviceMeta { name, labels, annotations, owner_fleet, generation, created_at } = meta;
        Self {
            name: Some(name),
            labels: Some(labels),
            annotations: Some(annotations_of(annotations.unwrap_or_default())),
            owner: (!owner_fleet.is_empty()).then(|| fleet_owner(&owner_fleet)),
            generation: i64::try_from(generation).ok(),
            resource_version: Some(revision.to_string()),
            creation_timestamp: created_at.map(Moment),
            deletion_timestamp: None,
        }
    }
}

/// Returns the fleet as the owner of a resource.
pub(crate) fn fleet_owner(fleet: &str) -> String {
    format!("{FLEET}{fleet}")
}

/// Returns the annotations that carry state (device reference 1.6).
fn annotations_of(annotations: DeviceAnnotations) -> BTreeMap<String, String> {
    let is_marked = |mark| (annotations.restore_mark() == mark).then(|| "true".to_owned());
    let awaiting = is_marked(RestoreMark::AwaitingReconnect);
    let paused = is_marked(RestoreMark::ConflictPaused);
    let DeviceAnnotations {
        rendered_version,
        rendered_spec_hash,
        restore_mark: _,
        template_version,
        rendered_template_version,
        last_rollout_error,
    } = annotations;
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    let all = [
        ("device-controller/awaitingReconnect", awaiting),
        ("device-controller/conflictPaused", paused),
        ("device-controller/renderedSpecHash", given(rendered_spec_hash)),
        ("device-controller/renderedVersion", (rendered_version > 0).then(|| rendered_version.to_string())),
        ("fleet-controller/lastRolloutError", given(last_rollout_error)),
        ("fleet-controller/renderedTemplateVersion", given(rendered_template_version)),
        ("fleet-controller/templateVersion", given(template_version)),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
