//! Devices.

use proto::device as record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    counts::DevicesSummary,
    meta::{ApiVersion, ListMeta, ObjectMeta, api_version},
    moment::Moment,
    spec::DeviceSpec,
    status::DeviceStatus,
    strict::maybe_object,
    words::{DeviceKind, DeviceListKind, Word},
};
use crate::http::problem::RequestProblem;

/// Device that looks after itself: wishes, and its status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Device {
    /// Version of the contract.
    pub api_version: ApiVersion,
    /// Kind of the resource.
    pub kind: Word<DeviceKind>,
    /// Facts about the device.
    pub metadata: ObjectMeta,
    /// Wishes.
    #[serde(default, deserialize_with = "maybe_object", skip_serializing_if = "Option::is_none")]
    pub spec: Option<DeviceSpec>,
    /// Status, which paths of its own write.
    #[serde(default, deserialize_with = "maybe_object", skip_serializing_if = "Option::is_none")]
    pub status: Option<DeviceStatus>,
}

/// Page of a list of devices.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeviceList {
    /// Version of the contract.
    pub api_version: ApiVersion,
    /// Kind of the list.
    pub kind: Word<DeviceListKind>,
    /// Facts about the page.
    pub metadata: ListMeta,
    /// Devices, ordered by name.
    pub items: Vec<Device>,
    /// Numbers of the devices of the page; of all selected ones, if only these were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<DevicesSummary>,
}

/// Time at which the agent of a device was last seen.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LastSeen {
    /// The time.
    pub last_seen: Moment,
}

impl Device {
    /// Returns the document of a record.
    ///
    /// # Errors
    /// When a stored text cannot be read.
    pub(crate) fn shown(device: record::Device) -> Result<Self, RequestProblem> {
        let status = DeviceStatus::shown(&device)?;
        let record::Device { meta, spec, revision, .. } = device;
        Ok(Self {
            api_version: api_version(),
            kind: Word::stored("Device"),
            metadata: ObjectMeta::of_device(meta.unwrap_or_default(), revision),
            spec: Some(DeviceSpec::shown(spec.unwrap_or_default())?),
            status: Some(status),
        })
    }
}

impl DeviceList {
    pub(crate) fn new(metadata: ListMeta, items: Vec<Device>, summary: DevicesSummary) -> Self {
        let kind = Word::stored("DeviceList");
        Self { api_version: api_version(), kind, metadata, items, summary: Some(summary) }
    }
}
