//! Errors as people see them: problem documents with the titles and texts of BOS (BOS reference 2.2, A.1).

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use chassis::{Fault, admission, request_id};
use http::{
    HeaderValue, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::tenant::Tenant;

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    status: StatusCode,
    title: &'static str,
    detail: String,
    /// When to try again at the earliest, where that may help.
    retry_after: Option<Duration>,
}

/// Why a request was not done.
// Members are in alphabetical order.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct Document<'a> {
    detail: &'a str,
    status: u16,
    title: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl Problem {
    /// Media type of the document.
    pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

    /// The document.
    pub(crate) fn document(&self) -> Vec<u8> {
        let document = Document {
            detail: &self.detail,
            status: self.status.as_u16(),
            title: self.title,
            kind: "about:blank",
        };
        serde_json::to_vec(&document).expect("texts and numbers can always be written as JSON")
    }

    /// The request breaks a rule.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, BAD_REQUEST, detail)
    }

    /// The request is for a tenant that does not exist.
    pub(crate) fn invalid_tenant(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "Invalid tenant", detail)
    }

    /// There is no such thing here.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not Found", detail)
    }

    /// There is no such path.
    pub(crate) fn no_such_path() -> Self {
        let detail = "The requested URL was not found on the server. If you entered the URL manually please \
                      check your spelling and try again.";
        Self::new(StatusCode::NOT_FOUND, "Not Found", detail)
    }

    /// The path does not take this method.
    pub(crate) fn method_not_allowed() -> Self {
        let detail = "The method is not allowed for the requested URL.";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed", detail)
    }

    /// The body is not declared to be JSON.
    pub(crate) fn unsupported_media_type(given: &str) -> Self {
        let detail = format!("Invalid Content-type ({given}), expected JSON data");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Unsupported Media Type", detail)
    }

    /// The body is longer than this path takes.
    pub(crate) fn too_large() -> Self {
        let detail = "the request body is larger than this path accepts";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "Content Too Large", detail)
    }

    /// The body did not arrive in the time that clients have.
    pub(crate) fn too_slow() -> Self {
        Self::unreadable(StatusCode::REQUEST_TIMEOUT, "the request body did not arrive in time")
    }

    /// What was sent cannot be read as a request.
    pub(crate) fn unreadable(status: StatusCode, detail: &str) -> Self {
        Self::new(status, status.canonical_reason().unwrap_or_default(), detail)
    }

    /// A defect of ours. The cause is logged under the request id, which is all that the caller learns.
    pub(crate) fn internal(cause: &str) -> Self {
        let id = request_id::current().unwrap_or_default();
        tracing::error!(cause, request_id = id, "request failed");
        let detail = format!("the request could not be done; its id is {id}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error", detail)
    }

    /// What a refusal by a service means to somebody who asked as `tenant`, whose name is part of the texts
    /// about sessions and templates.
    pub(crate) fn of(fault: Fault, tenant: &Tenant) -> Self {
        match fault {
            Fault::NotFound { kind, .. } if kind == TENANT => {
                Self::invalid_tenant("The provided tenant does not exist")
            }
            Fault::NotFound { kind, name } => {
                let detail = format!("{} does not exist", absent(&kind, &name, tenant));
                Self::new(StatusCode::NOT_FOUND, "The resource was not found", detail)
            }
            Fault::AlreadyExists { kind, name } => {
                let detail = format!("{} already exists{}", quoted(&kind, &name), tenant.suffix());
                Self::new(StatusCode::CONFLICT, "The resource to be created already exists", detail)
            }
            Fault::Invalid(invalid) if invalid.field.is_empty() => Self::bad_request(invalid.reason),
            Fault::Invalid(invalid) => Self::bad_request(format!("{} - '{}'", invalid.reason, invalid.field)),
            // Only reports of the actual state are ever locked out (BOS reference 2.6.6).
            Fault::Locked { .. } => Self::new(StatusCode::CONFLICT, LOCKED_TITLE, LOCKED_DETAIL),
            Fault::Unavailable { what, reason } => Self::unavailable(&format!("{what}: {reason}")),
            Fault::Busy { reason, retry_after } => {
                let retry_after = Some(retry_after);
                Self { retry_after, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, BUSY_TITLE, reason) }
            }
            Fault::Stale { .. } => Self::internal("a call without leases was told that they are over"),
            Fault::ResumeExpired(_) => Self::internal("a call that resumes nothing was told to start over"),
            Fault::Internal(cause) => Self::internal(&cause),
        }
    }

    /// What is wrong.
    #[cfg(test)]
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Puts `text` before the detail of a bad request, where BOS says which step refused it.
    #[must_use]
    pub(crate) fn prefixed(mut self, text: &str) -> Self {
        if self.title == BAD_REQUEST {
            self.detail.insert_str(0, text);
        }
        self
    }

    fn unavailable(detail: &str) -> Self {
        let retry_after = Some(admission::come_back());
        Self { retry_after, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE_TITLE, detail) }
    }

    fn new(status: StatusCode, title: &'static str, detail: impl Into<String>) -> Self {
        Self { status, title, detail: detail.into(), retry_after: None }
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::of(fault, &Tenant::default())
    }
}

/// The kind of resource that a tenant is.
pub(crate) const TENANT: &str = "tenant";

const BAD_REQUEST: &str = "Bad Request";

/// The title is part of the contract and says Redis although there is none; the detail names what is really
/// not available.
const UNAVAILABLE_TITLE: &str = "Unable to connect to the Redis database";
/// Clients of BOS repeat what is answered with 503, and few of them know 429.
const BUSY_TITLE: &str = "Too many requests at a time";
const LOCKED_TITLE: &str = "Actual state can not be updated.";
const LOCKED_DETAIL: &str = "BOS is currently changing the state of the node, and the actual state can not \
                             be accurately recorded";

/// `Component 'x1'`.
fn quoted(kind: &str, name: &str) -> String {
    format!("{} '{name}'", capitalised(kind))
}

/// `Session 's1'`, or `Session for tenant 't' 's1'`. Components are the same for every tenant.
fn absent(kind: &str, name: &str, tenant: &Tenant) -> String {
    if kind == "component" {
        return quoted(kind, name);
    }
    format!("{}{} '{name}'", capitalised(kind), tenant.suffix())
}

/// `Session template` of `session_template`.
fn capitalised(kind: &str) -> String {
    let words = kind.replace('_', " ");
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let content_type = (CONTENT_TYPE, HeaderValue::from_static(Self::MEDIA_TYPE));
        let mut response = (self.status, [content_type], self.document()).into_response();
        if let Some(retry_after) = self.retry_after {
            // Never zero, which would have them come back at once.
            response.headers_mut().insert(RETRY_AFTER, retry_after.as_secs().max(1).into());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tonic_types::StatusExt;

    use super::*;

    #[test]
    fn refusals_have_the_titles_and_texts_of_the_contract() {
        let taken = |kind: &str, name: &str| Fault::AlreadyExists { kind: kind.into(), name: name.into() };
        let invalid = |field: &str, reason: &str| {
            let mut details = tonic_types::ErrorDetails::with_error_info("INVALID", "", []);
            details.add_bad_request_violation(field, reason);
            Fault::from(tonic::Status::with_error_details(tonic::Code::InvalidArgument, "", details))
        };
        let busy =
            Fault::Locked { kind: "component".into(), name: "x1".into(), reason: "powering off".into() };
        let faults = [
            (Fault::not_found("component", "x1"), ""),
            (Fault::not_found("component", "x1"), "blue"),
            (Fault::not_found("session", "s1"), ""),
            (Fault::not_found("session", "s1"), "blue"),
            (Fault::not_found("session_template", "t1"), ""),
            (Fault::not_found("session_template", "t1"), "blue"),
            (Fault::not_found("tenant", "blue"), "blue"),
            (taken("session", "s1"), ""),
            (taken("session", "s1"), "blue"),
            (invalid("desired_state.configuration", "is too long"), ""),
            (invalid("", "is too long"), ""),
            (busy, ""),
            (Fault::unavailable("database", "connection refused"), ""),
            (Fault::Busy { reason: "too many lists".into(), retry_after: Duration::from_secs(3) }, ""),
            (Fault::ResumeExpired(3), ""),
            (Fault::Internal("secret".into()), ""),
        ];
        let lines = faults.into_iter().map(|(fault, tenant)| {
            let problem = Problem::of(fault, &Tenant(tenant.to_owned()));
            format!("{} {}: {}\n", problem.status.as_u16(), problem.title, problem.detail)
        });
        expect![[r#"
            404 The resource was not found: Component 'x1' does not exist
            404 The resource was not found: Component 'x1' does not exist
            404 The resource was not found: Session 's1' does not exist
            404 The resource was not found: Session for tenant 'blue' 's1' does not exist
            404 The resource was not found: Session template 't1' does not exist
            404 The resource was not found: Session template for tenant 'blue' 't1' does not exist
            400 Invalid tenant: The provided tenant does not exist
            409 The resource to be created already exists: Session 's1' already exists
            409 The resource to be created already exists: Session 's1' already exists for tenant 'blue'
            400 Bad Request: is too long - 'desired_state.configuration'
            400 Bad Request: is too long
            409 Actual state can not be updated.: BOS is currently changing the state of the node, and the actual state can not be accurately recorded
            503 Unable to connect to the Redis database: database: connection refused
            503 Too many requests at a time: too many lists
            500 Internal Server Error: the request could not be done; its id is 
            500 Internal Server Error: the request could not be done; its id is 
        "#]].assert_eq(&lines.collect::<String>());
    }

    #[tokio::test]
    async fn documents_have_four_sorted_members() {
        let response = Problem::bad_request("it is \"wrong\"").into_response();
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        expect![[r#"{"detail":"it is \"wrong\"","status":400,"title":"Bad Request","type":"about:blank"}"#]]
            .assert_eq(std::str::from_utf8(&body).unwrap());
    }

    #[test]
    fn who_may_try_again_is_told_when() {
        let busy = |millis| Fault::Busy { reason: String::new(), retry_after: Duration::from_millis(millis) };
        let told = |fault: Fault| {
            let response = Problem::from(fault).into_response();
            response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(told(busy(3000)).as_deref(), Some("3"));
        assert_eq!(told(busy(0)).as_deref(), Some("1"));
        assert!(told(Fault::unavailable("database", "gone")).is_some());
        assert_eq!(told(Fault::not_found("component", "x1")), None);
    }

    #[test]
    fn only_bad_requests_say_what_was_being_done() {
        let told = |problem: Problem| problem.prefixed("not done: ").detail;
        assert_eq!(told(Problem::bad_request("why")), "not done: why");
        assert_eq!(told(Fault::unavailable("database", "gone").into()), "database: gone");
        assert_eq!(told(Problem::invalid_tenant("why")), "why");
    }
}
