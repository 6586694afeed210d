//! Fleets, and the versions of their templates (device reference 1.7).

use std::collections::BTreeMap;

use proto::fleet as record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    counts::DevicesSummary,
    meta::{ApiVersion, ListMeta, ObjectMeta, api_version, fleet_owner},
    moment::Moment,
    spec::DeviceSpec,
    status::Condition,
    strict::maybe_object,
    words::{FleetConditions, FleetKind, FleetListKind, TemplateVersionKind, TemplateVersionListKind, Word},
};
use crate::http::problem::RequestProblem;

/// Place of the template in the document.
const TEMPLATE: &str = "spec.template.spec";

/// Annotation with the present version of the template.
const TEMPLATE_VERSION: &str = "fleet-controller/templateVersion";

/// Devices that share a template.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Fleet {
    /// Version of the contract.
    pub api_version: ApiVersion,
    /// Kind of the resource.
    pub kind: Word<FleetKind>,
    /// Facts about the fleet.
    pub metadata: ObjectMeta,
    /// Wishes.
    pub spec: FleetSpec,
    /// Status, which the service writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<FleetStatus>,
}

/// Wishes for a fleet.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FleetSpec {
    /// Selector of the devices; absent or empty: none.
    #[serde(default, deserialize_with = "maybe_object", skip_serializing_if = "Option::is_none")]
    pub selector: Option<FleetSelector>,
    /// Template of the spec of each device.
    pub template: FleetTemplate,
    /// Policy of rollouts; absent: devices get a template at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_policy: Option<Value>,
}

/// Selector of the devices of a fleet.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FleetSelector {
    /// Labels that a device must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Expressions, which no device is matched against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_expressions: Option<Vec<Value>>,
}

/// Template of the spec of each device of a fleet. Facts about the template itself have no effect.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FleetTemplate {
    /// Spec, whose texts may have parameters.
    pub spec: DeviceSpec,
}

/// Status of a fleet.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FleetStatus {
    /// Conditions.
    pub conditions: Vec<Condition<FleetConditions>>,
    /// Numbers of its devices, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices_summary: Option<DevicesSummary>,
}

/// Page of a list of fleets.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FleetList {
    /// Version of the contract.
    pub api_version: ApiVersion,
    /// Kind of the list.
    pub kind: Word<FleetListKind>,
    /// Facts about the page.
    pub metadata: ListMeta,
    /// Fleets, ordered by name.
    pub items: Vec<Fleet>,
}

/// Version of the template of a fleet.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplateVersion {
    /// Version of the contract.
    pub api_version: ApiVersion,
    /// Kind of the resource.
    pub kind: Word<TemplateVersionKind>,
    /// Facts about the version.
    pub metadata: ObjectMeta,
    /// Fleet of the template.
    pub spec: TemplateVersionSpec,
    /// Template.
    pub status: TemplateVersionStatus,
}

/// Fleet of a template.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TemplateVersionSpec {
    /// Name of the fleet.
    pub fleet: String,
}

/// Template as it was in a version.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplateVersionStatus {
    /// Parts of the template.
    #[serde(flatten)]
    pub template: DeviceSpec,
    /// Conditions.
    pub conditions: Vec<Condition<FleetConditions>>,
    /// Time of creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Moment>,
}

/// Page of a list of versions.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplateVersionList {
    /// Version of the contract.
    pub api_version: ApiVersion,
    /// Kind of the list.
    pub kind: Word<TemplateVersionListKind>,
    /// Facts about the page.
    pub metadata: ListMeta,
    /// Versions, the oldest first.
    pub items: Vec<TemplateVersion>,
}

impl Fleet {
    /// Returns the document of a record.
    ///
    /// # Errors
    /// When a stored text cannot be read.
    pub(crate) fn shown(fleet: record::Fleet) -> Result<Self, RequestProblem> {
        let record::Fleet { name, labels, generation, spec, template_version, created_at, revision, .. } =
            fleet;
        let version = Some(template_version).filter(|version| !version.is_empty());
        let annotations = version.map(|version| BTreeMap::from([(TEMPLATE_VERSION.to_owned(), version)]));
        let metadata = ObjectMeta {
            name: Some(name),
            labels: Some(labels),
            annotations,
            owner: None,
            generation: i64::try_from(generation).ok(),
            resource_version: Some(revision.to_string()),
            creation_timestamp: created_at.map(Moment),
            deletion_timestamp: None,
        };
        let conditions = created_at.map(valid).into_iter().collect();
        Ok(Self {
            api_version: api_version(),
            kind: Word::stored("Fleet"),
            metadata,
            spec: FleetSpec::shown(spec.unwrap_or_default())?,
            status: Some(FleetStatus { conditions, devices_summary: None }),
        })
    }
}

/// A fleet whose spec breaks a rule is refused, so every fleet is valid from the beginning.
fn valid(since: prost_types::Timestamp) -> Condition<FleetConditions> {
    Condition {
        kind: Word::stored("Valid"),
        status: Word::stored("True"),
        reason: "Valid".to_owned(),
        message: String::new(),
        last_transition_time: Moment(since),
        observed_generation: None,
    }
}

impl FleetSpec {
    fn shown(spec: record::FleetSpec) -> Result<Self, RequestProblem> {
        let record::FleetSpec { selector, template, rollout_policy_json } = spec;
        Ok(Self {
            selector: selector.map(FleetSelector::shown).transpose()?,
            template: FleetTemplate { spec: DeviceSpec::shown(template.unwrap_or_default())? },
            rollout_policy: stored(&rollout_policy_json)?,
        })
    }

    /// Returns the wishes as a record.
    ///
    /// # Errors
    /// When two systems are wanted.
    pub(crate) fn into_record(self) -> Result<record::FleetSpec, RequestProblem> {
        let Self { selector, template, rollout_policy } = self;
        Ok(record::FleetSpec {
            selector: selector.map(FleetSelector::into_record),
            template: Some(template.spec.into_record(TEMPLATE)?),
            rollout_policy_json: rollout_policy.map(|policy| policy.to_string()).unwrap_or_default(),
        })
    }
}

impl FleetSelector {
    fn shown(selector: record::FleetSelector) -> Result<Self, RequestProblem> {
        let record::FleetSelector { match_labels, match_expressions_json } = selector;
        Ok(Self {
            match_labels: Some(match_labels).filter(|labels| !labels.is_empty()),
            match_expressions: stored(&match_expressions_json)?,
        })
    }

    fn into_record(self) -> record::FleetSelector {
        let expressions = self.match_expressions.filter(|expressions| !expressions.is_empty());
        record::FleetSelector {
            match_labels: self.match_labels.unwrap_or_default(),
            match_expressions_json: expressions.map(|all| Value::Array(all).to_string()).unwrap_or_default(),
        }
    }
}

/// Reads a stored JSON text; none: it is empty.
fn stored<T: serde::de::DeserializeOwned>(text: &str) -> Result<Option<T>, RequestProblem> {
    let internal = |error: serde_json::Error| RequestProblem::internal(&format!("stored text: {error}"));
    (!text.is_empty()).then(|| serde_json::from_str(text).map_err(internal)).transpose()
}

impl TemplateVersion {
    /// Returns the document of a record.
    ///
    /// # Errors
    /// When a stored text cannot be read.
    pub(crate) fn shown(version: record::TemplateVersion) -> Result<Self, RequestProblem> {
        let record::TemplateVersion { fleet, name, template, created_at, revision } = version;
        let metadata = ObjectMeta {
            name: Some(name),
            owner: Some(fleet_owner(&fleet)),
            resource_version: Some(revision.to_string()),
            creation_timestamp: created_at.map(Moment),
            ..ObjectMeta::default()
        };
        let status = TemplateVersionStatus {
            template: DeviceSpec::shown(template.unwrap_or_default())?,
            conditions: Vec::new(),
            updated_at: created_at.map(Moment),
        };
        Ok(Self {
            api_version: api_version(),
            kind: Word::stored("TemplateVersion"),
            metadata,
            spec: TemplateVersionSpec { fleet },
            status,
        })
    }
}
