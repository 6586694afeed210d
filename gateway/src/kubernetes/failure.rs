//! Refusals in the form of the Kubernetes API: a `Status` with a reason that programs read, and causes with fields.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use chassis::{mesh::request_id, process::pause};
use http::{
    HeaderValue, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::kinds::ResourceKind;

/// Refusal of a request.
#[derive(Debug, Clone)]
pub(crate) struct ApiFailure {
    pub code: StatusCode,
    /// Word for the reason, such as `NotFound`.
    pub reason: &'static str,
    pub message: String,
    pub details: Box<FailureDetails>,
}

/// Object that a refusal is about, and everything that is wrong with it.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailureDetails {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub group: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<FailureCause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
}

/// Defect of one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FailureCause {
    /// Word for the reason, such as `FieldValueRequired`.
    pub reason: &'static str,
    pub message: String,
    /// Path of the field, such as `spec.bmc.address`.
    pub field: String,
}

impl FailureCause {
    pub(crate) fn new(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), field: field.into() }
    }

    /// Creates the cause of a value that breaks a rule.
    pub(crate) fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new("FieldValueInvalid", field, message)
    }
}

impl ApiFailure {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Box::default() }
    }

    fn about(self, kind: &ResourceKind, name: &str) -> Self {
        let FailureDetails { causes, retry_after_seconds, .. } = *self.details;
        let details = FailureDetails {
            name: name.to_owned(),
            group: kind.group,
            kind: kind.plural,
            causes,
            retry_after_seconds,
        };
        Self { details: Box::new(details), ..self }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn not_found(kind: &ResourceKind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.qualified());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(kind, name)
    }

    pub(crate) fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    pub(crate) fn already_exists(kind: &ResourceKind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(kind, name)
    }

    pub(crate) fn conflict(kind: &ResourceKind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.qualified());
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(kind, name)
    }

    /// Creates the refusal of an object in a namespace that is being deleted.
    pub(crate) fn namespace_terminating(kind: &ResourceKind, name: &str, namespace: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.qualified());
        let field = format!("namespace {namespace} is being terminated");
        let cause = FailureCause::new("NamespaceTerminating", "metadata.namespace", field);
        let mut failure = Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(kind, name);
        failure.details.causes = vec![cause];
        failure
    }

    /// Creates the refusal of a write that is based on an older object.
    pub(crate) fn outdated(kind: &ResourceKind, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    /// Creates the refusal of an apply whose fields belong to others.
    pub(crate) fn owned_by_others(causes: Vec<FailureCause>) -> Self {
        let number = causes.len();
        let s = if number == 1 { "" } else { "s" };
        let lines: String =
            causes.iter().map(|cause| format!("\n- {}: {}", cause.message, cause.field)).collect();
        let message = format!("Apply failed with {number} conflict{s}:{lines}");
        let mut failure = Self::new(StatusCode::CONFLICT, "Conflict", message);
        failure.details.causes = causes;
        failure
    }

    /// Creates the refusal of an object with these defects.
    pub(crate) fn invalid(kind: &ResourceKind, name: &str, causes: Vec<FailureCause>) -> Self {
        let lines: Vec<_> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let listed = match &lines[..] {
            [one] => one.clone(),
            _ => format!("[{}]", lines.join(", ")),
        };
        let message = format!("{} \"{name}\" is invalid: {listed}", kind.qualified_kind());
        let mut failure = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(kind, name);
        failure.details.causes = causes;
        failure.details.kind = kind.kind;
        failure
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub(crate) fn method_not_allowed(kind: &ResourceKind) -> Self {
        let message = format!("the server does not allow this method on {}", kind.qualified());
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about(kind, "")
    }

    pub(crate) fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    pub(crate) fn unsupported_media_type(given: &str, accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format ({given}) - accepted media types include: {accepted}"
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).retried_after(pause::retry_after())
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        let code = StatusCode::SERVICE_UNAVAILABLE;
        Self::new(code, "ServiceUnavailable", message).retried_after(pause::retry_after())
    }

    /// Returns the refusal with the time after which another attempt may succeed, in whole seconds.
    pub(crate) fn retried_after(mut self, time: Duration) -> Self {
        self.details.retry_after_seconds = Some(time.as_secs().max(1));
        self
    }

    /// Creates the refusal for a defect of ours, which is logged under the id of the request.
    pub(crate) fn internal(cause: &str) -> Self {
        let id = request_id::current().unwrap_or_default();
        tracing::error!(cause, request_id = id, "request failed");
        let message = format!("Internal error occurred: the request could not be done; its id is {id}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// Creates the refusal of a part of HTTP below this face.
    pub(crate) fn of_code(code: StatusCode, message: impl Into<String>) -> Self {
        let reason = match code {
            StatusCode::PAYLOAD_TOO_LARGE => "RequestEntityTooLarge",
            StatusCode::SERVICE_UNAVAILABLE => return Self::unavailable(message),
            StatusCode::REQUEST_TIMEOUT => "Timeout",
            StatusCode::BAD_REQUEST => "BadRequest",
            StatusCode::UNAUTHORIZED => "Unauthorized",
            StatusCode::FORBIDDEN => "Forbidden",
            _ => "InternalError",
        };
        Self::new(code, reason, message)
    }

    /// Returns the refusal as an object.
    pub(crate) fn status(&self) -> Value {
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "details": self.details,
            "code": self.code.as_u16(),
        })
    }
}

impl IntoResponse for ApiFailure {
    fn into_response(self) -> Response {
        let content_type = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut response = (self.code, [content_type], self.status().to_string()).into_response();
        if let Some(seconds) = self.details.retry_after_seconds {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}
