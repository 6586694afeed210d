//! Answers about requests: successes without a resource, and refusals.

use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    meta::{ApiVersion, api_version},
    words::{Outcomes, StatusKind, Word},
};

/// Outcome of a request.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutcomeStatus {
    /// Version of the contract.
    pub api_version: ApiVersion,
    /// Kind of the answer.
    pub kind: Word<StatusKind>,
    /// Whether the request was done.
    pub status: Word<Outcomes>,
    /// Status of HTTP.
    pub code: u16,
    /// Text of HTTP for the status.
    pub reason: String,
    /// Text for people, which names the field or the resource at fault.
    pub message: String,
}

impl OutcomeStatus {
    /// Creates the outcome with that status of HTTP.
    pub(crate) fn of(code: StatusCode, message: impl Into<String>) -> Self {
        Self {
            api_version: api_version(),
            kind: Word::stored("Status"),
            status: Word::stored(if code.is_success() { "Success" } else { "Failure" }),
            code: code.as_u16(),
            reason: code.canonical_reason().unwrap_or_default().to_owned(),
            message: message.into(),
        }
    }
}
