//! Requests of agents to be enrolled (device reference 1.7, 3.3).

use std::collections::BTreeMap;

use proto::{device::Device, fleet as record};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    meta::{ApiVersion, ListMeta, ObjectMeta, api_version},
    moment::Moment,
    status::{Condition, DeviceStatus},
    strict::maybe_object,
    words::{EnrolmentConditions, EnrolmentKind, EnrolmentListKind, OsModes, Word},
};
use crate::http::problem::RequestProblem;

/// Annotation of a request of an agent that ran before a database was restored.
const AWAITING: &str = "device-controller/awaitingReconnect";

/// Request of an agent to be enrolled.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "EnrollmentRequest")]
pub(crate) struct EnrolmentRequest {
    /// Version of the contract.
    pub api_version: ApiVersion,
    /// Kind of the resource.
    pub kind: Word<EnrolmentKind>,
    /// Facts about the request. Its name is that of the device.
    pub metadata: ObjectMeta,
    /// Request.
    pub spec: EnrolmentSpec,
    /// Status, which the service writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<EnrolmentStatus>,
}

/// Wishes of an agent.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "EnrollmentRequestSpec")]
pub(crate) struct EnrolmentSpec {
    /// Request for a certificate, in PEM.
    pub csr: String,
    /// Status of the device, of which the facts about its system are kept.
    #[serde(default, deserialize_with = "maybe_object", skip_serializing_if = "Option::is_none")]
    pub device_status: Option<DeviceStatus>,
    /// Labels that the agent suggests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Version of the spec that the agent runs from an earlier enrolment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_rendered_version: Option<String>,
    /// Manner in which the system is updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_mode: Option<Word<OsModes>>,
}

/// Status of a request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EnrollmentRequestStatus")]
pub(crate) struct EnrolmentStatus {
    /// Certificate in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// Conditions.
    pub conditions: Vec<Condition<EnrolmentConditions>>,
    /// Approval; absent: nobody has approved the request yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<EnrolmentApproval>,
}

/// Approval of a request, as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "EnrollmentRequestApprovalStatus")]
pub(crate) struct EnrolmentApproval {
    /// Whether the request is approved.
    pub approved: bool,
    /// Labels of the device.
    pub labels: BTreeMap<String, String>,
    /// Person who approved.
    pub approved_by: String,
    /// Time of the approval.
    pub approved_at: Moment,
}

/// Decision about a request.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "EnrollmentRequestApproval")]
pub(crate) struct EnrolmentDecision {
    /// Whether the request is approved, which is the only decision: a request that is unwanted is deleted.
    pub approved: bool,
    /// Labels of the device, which win over those that the agent suggests.
    pub labels: Option<BTreeMap<String, String>>,
    /// Whether these replace the labels that the agent suggests.
    pub replace_labels: Option<bool>,
}

/// Page of a list of requests.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "EnrollmentRequestList")]
pub(crate) struct EnrolmentList {
    /// Version of the contract.
    pub api_version: ApiVersion,
    /// Kind of the list.
    pub kind: Word<EnrolmentListKind>,
    /// Facts about the page.
    pub metadata: ListMeta,
    /// Requests, ordered by name.
    pub items: Vec<EnrolmentRequest>,
}

impl EnrolmentRequest {
    /// Returns the document of a record.
    ///
    /// # Errors
    /// When the facts about the system cannot be shown.
    pub(crate) fn shown(request: record::EnrolmentRequest) -> Result<Self, RequestProblem> {
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        let device_status = request.system_info.map(|system_info| {
            let mut device = Device::default();
            device.reported.get_or_insert_default().system_info = Some(system_info);
            DeviceStatus::shown(&device)
        });
        let annotations =
            request.awaits_reconnect.then(|| BTreeMap::from([(AWAITING.to_owned(), "true".to_owned())]));
        let metadata = ObjectMeta {
            name: Some(request.name),
            annotations,
            resource_version: Some(request.revision.to_string()),
            creation_timestamp: request.created_at.map(Moment),
            ..ObjectMeta::default()
        };
        let spec = EnrolmentSpec {
            csr: request.csr,
            device_status: device_status.transpose()?,
            labels: Some(request.labels),
            known_rendered_version: given(request.known_rendered_version),
            os_mode: given(request.os_mode).map(Word::stored),
        };
        let approval = request.approval.map(EnrolmentApproval::shown);
        let conditions = approval.iter().map(EnrolmentApproval::condition).collect();
        Ok(Self {
            api_version: api_version(),
            kind: Word::stored("EnrollmentRequest"),
            metadata,
            spec,
            status: Some(EnrolmentStatus { certificate: given(request.certificate), conditions, approval }),
        })
    }

    /// Returns the request as a record, under that name.
    pub(crate) fn into_record(self, name: String) -> record::EnrolmentRequest {
        let EnrolmentSpec { csr, device_status, labels, known_rendered_version, os_mode } = self.spec;
        let reported = device_status.as_ref().and_then(|status| status.capabilities.as_ref());
        let os_mode = os_mode.or_else(|| reported.and_then(|capabilities| capabilities.os_mode.clone()));
        record::EnrolmentRequest {
            name,
            csr,
            labels: labels.unwrap_or_default(),
            system_info: device_status.map(|status| status.system_info.into_record()),
            os_mode: os_mode.map(Word::into_text).unwrap_or_default(),
            known_rendered_version: known_rendered_version.unwrap_or_default(),
            ..record::EnrolmentRequest::default()
        }
    }
}

impl EnrolmentApproval {
    fn shown(approval: record::EnrolmentApproval) -> Self {
        let record::EnrolmentApproval { labels, approved_by, approved_at, has_device: _ } = approval;
        Self { approved: true, labels, approved_by, approved_at: Moment(approved_at.unwrap_or_default()) }
    }

    fn condition(&self) -> Condition<EnrolmentConditions> {
        Condition {
            kind: Word::stored("Approved"),
            status: Word::stored("True"),
            reason: "ManuallyApproved".to_owned(),
            message: format!("approved by {}", self.approved_by),
            last_transition_time: self.approved_at,
            observed_generation: None,
        }
    }
}
