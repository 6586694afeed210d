//! Answers about the service, and about requests that concern many devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    meta::{ApiVersion, ListMeta, ObjectMeta, api_version},
    words::{OrganizationKind, OrganizationListKind, Word},
};

/// Version of the service.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServiceVersion {
    /// Version.
    pub version: String,
}

/// Organisation. There is one.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Organization {
    /// Version of the contract.
    pub api_version: ApiVersion,
    /// Kind of the resource.
    pub kind: Word<OrganizationKind>,
    /// Facts about the organisation.
    pub metadata: ObjectMeta,
    /// Names for people.
    pub spec: OrganizationSpec,
}

/// Names of an organisation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OrganizationSpec {
    /// Name for people.
    pub display_name: String,
    /// Id for other systems.
    pub external_id: String,
}

/// List of organisations.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OrganizationList {
    /// Version of the contract.
    pub api_version: ApiVersion,
    /// Kind of the list.
    pub kind: Word<OrganizationListKind>,
    /// Facts about the list.
    pub metadata: ListMeta,
    /// Organisations.
    pub items: Vec<Organization>,
}

/// Devices that are to be resumed. One selector is needed.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ResumeRequest {
    /// Selector by labels.
    pub label_selector: Option<String>,
    /// Selector by fields.
    pub field_selector: Option<String>,
}

/// Number of devices that were resumed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResumeAnswer {
    /// Devices that were paused.
    pub resumed_devices: u64,
}

impl OrganizationList {
    /// Returns the list with the only organisation.
    pub(crate) fn of_one(name: &str, display_name: &str) -> Self {
        let organization = Organization {
            api_version: api_version(),
            kind: Word::stored("Organization"),
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            spec: OrganizationSpec { display_name: display_name.to_owned(), external_id: String::new() },
        };
        Self {
            api_version: api_version(),
            kind: Word::stored("OrganizationList"),
            metadata: ListMeta::default(),
            items: vec![organization],
        }
    }
}
