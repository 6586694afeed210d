//! Statuses of a device (device reference 1.3). All eleven required members are in every answer, because generated
//! clients insist on them.

use proto::device as record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    moment::Moment,
    report::{ApplicationStatus, ResourceStatuses, SystemInfo},
    strict::maybe_object,
    words::{
        ApplicationsWords, ConditionStatuses, DeviceConditions, IntegrityWords, LifecycleWords, OsModes,
        SummaryWords, UpdatedWords, Word, WordList,
    },
};
use crate::http::problem::RequestProblem;

/// Status of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DeviceStatus {
    /// Conditions of the agent, and after them those of the service.
    pub conditions: Vec<Condition<DeviceConditions>>,
    /// Facts about the running system.
    pub system_info: SystemInfo,
    /// Applications.
    pub applications: Vec<ApplicationStatus>,
    /// Whether the applications are well.
    pub applications_summary: StatusEntry<ApplicationsWords>,
    /// Resources that may run short.
    pub resources: ResourceStatuses,
    /// Integrity.
    pub integrity: Integrity,
    /// Spec that the agent runs.
    pub config: RunningConfig,
    /// Running system.
    pub os: RunningOs,
    /// Whether the device runs its spec. Without effect in a write.
    pub updated: StatusEntry<UpdatedWords>,
    /// Whether the device can be reached and is well. Without effect in a write.
    pub summary: StatusEntry<SummaryWords>,
    /// Stage of its life.
    pub lifecycle: StatusEntry<LifecycleWords>,
    /// Units of systemd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub systemd: Option<Vec<Value>>,
    /// Sources that the service keeps in step with. Without effect in a write.
    #[serde(skip_serializing)]
    pub dependency_sync: Option<Value>,
    /// Abilities of the device.
    #[serde(default, deserialize_with = "maybe_object", skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// Time at which the agent was last seen, which has a path of its own. Without effect in a write.
    #[serde(skip_serializing)]
    pub last_seen: Option<Moment>,
}

/// Status with a text for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(bound = "L: WordList")]
#[schemars(bound = "L: WordList")]
pub(crate) struct StatusEntry<L> {
    /// Status.
    pub status: Word<L>,
    /// Text for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<String>,
}

/// Statement about a resource that holds, or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(bound = "L: WordList", rename_all = "camelCase")]
#[schemars(bound = "L: WordList")]
pub(crate) struct Condition<L> {
    /// Statement.
    #[serde(rename = "type")]
    pub kind: Word<L>,
    /// Whether it holds.
    pub status: Word<ConditionStatuses>,
    /// Reason.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// Time of the last change of the status.
    pub last_transition_time: Moment,
    /// Generation that the condition is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Integrity of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Integrity {
    /// Integrity as a whole.
    pub status: Word<IntegrityWords>,
    /// Text for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<String>,
    /// Time of the last check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_verified: Option<Moment>,
    /// Identity of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_identity: Option<StatusEntry<IntegrityWords>>,
    /// Trusted platform module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpm: Option<StatusEntry<IntegrityWords>>,
}

/// Spec that an agent runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunningConfig {
    /// Version, in the words of the agent.
    pub rendered_version: String,
}

/// Running system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunningOs {
    /// Reference of the image; empty: not known.
    pub image: String,
    /// Digest of the image; empty: not known.
    pub image_digest: String,
}

/// Abilities of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Capabilities {
    /// Manner in which the system is updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_mode: Option<Word<OsModes>>,
}

impl DeviceStatus {
    /// Returns the status of a record: what the agent reported, and what follows from it.
    pub(crate) fn shown(device: &record::Device) -> Result<Self, RequestProblem> {
        let report = device.reported.clone().unwrap_or_default();
        let status = device.status.clone().unwrap_or_default();
        let conditions = report.conditions.into_iter().chain(device.conditions.iter().cloned());
        let systemd = match report.systemd_json.as_str() {
            "" => None,
            text => Some(
                serde_json::from_str(text)
                    .map_err(|error| RequestProblem::internal(&format!("stored units: {error}")))?,
            ),
        };
        let os = report.os.unwrap_or_default();
        let os_mode = Some(report.os_mode).filter(|mode| !mode.is_empty());
        Ok(Self {
            conditions: conditions.map(Condition::shown).collect(),
            system_info: SystemInfo::shown(report.system_info.unwrap_or_default()),
            applications: report.applications.into_iter().map(ApplicationStatus::shown).collect(),
            applications_summary: StatusEntry::shown(status.applications),
            resources: ResourceStatuses::shown(report.resources.unwrap_or_default()),
            integrity: Integrity::shown(report.integrity.unwrap_or_default()),
            config: RunningConfig { rendered_version: report.rendered_version },
            os: RunningOs { image: os.image, image_digest: os.image_digest },
            updated: StatusEntry::shown(status.updated),
            summary: StatusEntry::shown(status.summary),
            lifecycle: StatusEntry::shown(status.lifecycle),
            systemd,
            dependency_sync: None,
            capabilities: os_mode.map(|mode| Capabilities { os_mode: Some(Word::stored(mode)) }),
            last_seen: None,
        })
    }

    /// Returns the document of an agent. The summary and the updated status in it have no effect.
    pub(crate) fn into_record(self) -> record::StatusDocument {
        let os_mode = self.capabilities.and_then(|capabilities| capabilities.os_mode);
        let report = record::AgentReport {
            conditions: self.conditions.into_iter().map(Condition::into_record).collect(),
            system_info: Some(self.system_info.into_record()),
            applications: self.applications.into_iter().map(ApplicationStatus::into_record).collect(),
            applications_verdict: Some(self.applications_summary.into_record()),
            resources: Some(self.resources.into_record()),
            integrity: Some(self.integrity.into_record()),
            rendered_version: self.config.rendered_version,
            os: Some(record::RunningOs { image: self.os.image, image_digest: self.os.image_digest }),
            systemd_json: self.systemd.map(|units| Value::Array(units).to_string()).unwrap_or_default(),
            os_mode: os_mode.map(Word::into_text).unwrap_or_default(),
        };
        record::StatusDocument { report: Some(report), lifecycle: Some(self.lifecycle.into_record()) }
    }
}

impl<L> StatusEntry<L> {
    pub(crate) fn shown(entry: Option<record::StatusEntry>) -> Self {
        let record::StatusEntry { status, info } = entry.unwrap_or_default();
        Self { status: Word::status(status), info: Some(info).filter(|info| !info.is_empty()) }
    }

    fn into_record(self) -> record::StatusEntry {
        record::StatusEntry { status: self.status.into_text(), info: self.info.unwrap_or_default() }
    }
}

impl<L> Condition<L> {
    pub(crate) fn shown(condition: record::DeviceCondition) -> Self {
        Self {
            kind: Word::stored(condition.r#type),
            status: Word::status(condition.status),
            reason: condition.reason,
            message: condition.message,
            last_transition_time: Moment(condition.since.unwrap_or_default()),
            observed_generation: condition.observed_generation,
        }
    }

    fn into_record(self) -> record::DeviceCondition {
        record::DeviceCondition {
            r#type: self.kind.into_text(),
            status: self.status.into_text(),
            reason: self.reason,
            message: self.message,
            since: Some(self.last_transition_time.0),
            observed_generation: self.observed_generation,
        }
    }
}

impl Integrity {
    fn shown(integrity: record::DeviceIntegrity) -> Self {
        let record::DeviceIntegrity { overall, last_verified, device_identity, tpm } = integrity;
        let StatusEntry { status, info } = StatusEntry::shown(overall);
        let part = |entry: record::StatusEntry| StatusEntry::shown(Some(entry));
        Self {
            status,
            info,
            last_verified: last_verified.map(Moment),
            device_identity: device_identity.map(part),
            tpm: tpm.map(part),
        }
    }

    fn into_record(self) -> record::DeviceIntegrity {
        let overall = StatusEntry { status: self.status, info: self.info };
        record::DeviceIntegrity {
            overall: Some(overall.into_record()),
            last_verified: self.last_verified.map(|time| time.0),
            device_identity: self.device_identity.map(StatusEntry::into_record),
            tpm: self.tpm.map(StatusEntry::into_record),
        }
    }
}
