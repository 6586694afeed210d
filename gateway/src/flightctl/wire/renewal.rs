//! Requests for certificates by agents that are enrolled (device reference 3.4).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use proto::fleet as record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    meta::{ApiVersion, ObjectMeta, api_version},
    moment::Moment,
    status::Condition,
    words::{EnrolmentConditions, RenewalSigners, SigningRequestKind, Word},
};
use crate::http::problem::RequestProblem;

/// Signer of renewals in documents.
const SIGNER: &str = "flightctl.io/device-management-renewal";

/// Request for a certificate.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "CertificateSigningRequest")]
pub(crate) struct SigningRequest {
    /// Version of the contract.
    pub api_version: ApiVersion,
    /// Kind of the resource.
    pub kind: Word<SigningRequestKind>,
    /// Facts about the request. Its name is any that the agent has not used before.
    pub metadata: ObjectMeta,
    /// Request.
    pub spec: SigningSpec,
    /// Status, which the service writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<SigningStatus>,
}

/// Wishes of an agent. Usages and times are those of every certificate of a device, whatever the agent asks for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CertificateSigningRequestSpec")]
pub(crate) struct SigningSpec {
    /// Request for a certificate in PEM, in base 64.
    pub request: String,
    /// Signer.
    pub signer_name: Word<RenewalSigners>,
}

/// Status of a request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CertificateSigningRequestStatus")]
pub(crate) struct SigningStatus {
    /// Certificate in PEM, in base 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// Conditions.
    pub conditions: Vec<Condition<EnrolmentConditions>>,
}

impl SigningSpec {
    /// Returns the request for a certificate, in PEM.
    ///
    /// # Errors
    /// When it is no text in base 64.
    pub(crate) fn pem(&self) -> Result<String, RequestProblem> {
        let pem = STANDARD.decode(&self.request).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        pem.ok_or_else(|| RequestProblem::bad_request("spec.request: is no PEM in base 64"))
    }
}

impl SigningRequest {
    /// Returns the document of a renewal and the certificate that it brought.
    pub(crate) fn shown(renewal: record::CertificateRenewal, certificate: &str) -> Self {
        let at = Moment(renewal.renewed_at.unwrap_or_default());
        let metadata =
            ObjectMeta { name: Some(renewal.name), creation_timestamp: Some(at), ..ObjectMeta::default() };
        let approved = Condition {
            kind: Word::stored("Approved"),
            status: Word::stored("True"),
            reason: "Approved".to_owned(),
            message: "the agent of the device renews its certificate".to_owned(),
            last_transition_time: at,
            observed_generation: None,
        };
        Self {
            api_version: api_version(),
            kind: Word::stored("CertificateSigningRequest"),
            metadata,
            spec: SigningSpec { request: STANDARD.encode(renewal.csr), signer_name: Word::stored(SIGNER) },
            status: Some(SigningStatus {
                certificate: Some(STANDARD.encode(certificate)),
                conditions: vec![approved],
            }),
        }
    }
}
