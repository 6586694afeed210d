//! Problem documents: the form of refusals.
//!
//! A refusal by this module's neighbours carries its [`RequestProblem`] in the extensions of the response, so that a
//! face whose contract has another form can answer that instead.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use chassis::{Fault, mesh::request_id};
use http::{
    HeaderValue, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use schemars::JsonSchema;
use serde::Serialize;

/// The reason why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestProblem {
    pub status: StatusCode,
    pub title: &'static str,
    pub detail: String,
    /// Time after which another attempt may succeed, where one may.
    pub retry_after: Option<Duration>,
}

/// Why a request was not done.
// Members are in alphabetical order.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct ProblemDocument<'a> {
    detail: &'a str,
    status: u16,
    title: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl RequestProblem {
    pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

    pub(crate) fn document(&self) -> Vec<u8> {
        let document = ProblemDocument {
            detail: &self.detail,
            status: self.status.as_u16(),
            title: self.title,
            kind: "about:blank",
        };
        serde_json::to_vec(&document).expect("texts and numbers can always be written as JSON")
    }

    /// Creates a problem with a title of the face's own.
    pub(crate) fn titled(status: StatusCode, title: &'static str, detail: impl Into<String>) -> Self {
        Self { status, title, detail: detail.into(), retry_after: None }
    }

    /// Creates a problem with the title of HTTP for its status.
    pub(crate) fn of_status(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::titled(status, status.canonical_reason().unwrap_or_default(), detail)
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::of_status(StatusCode::BAD_REQUEST, detail)
    }

    /// Creates the problem of a query parameter.
    pub(crate) fn of_parameter(name: &str, why: &str) -> Self {
        Self::bad_request(format!("query parameter '{name}': {why}"))
    }

    /// Creates the problem of a body that is not declared to be JSON.
    pub(crate) fn unsupported_media_type(given: &str) -> Self {
        let detail = format!("Invalid Content-type ({given}), expected JSON data");
        Self::of_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
    }

    /// Creates the problem of a body that is longer than its path accepts.
    pub(crate) fn too_large() -> Self {
        let detail = "the request body is larger than this path accepts";
        Self::titled(StatusCode::PAYLOAD_TOO_LARGE, "Content Too Large", detail)
    }

    /// Creates the problem of a body that did not arrive in time.
    pub(crate) fn too_slow() -> Self {
        Self::of_status(StatusCode::REQUEST_TIMEOUT, "the request body did not arrive in time")
    }

    /// Creates the problem of a request for which there is no room at present. Few clients know 429, and most repeat a
    /// request that was answered with 503.
    pub(crate) fn busy(reason: String, retry_after: Duration) -> Self {
        let busy = Self::titled(StatusCode::SERVICE_UNAVAILABLE, "Too many requests at a time", reason);
        Self { retry_after: Some(retry_after), ..busy }
    }

    /// Returns the problem of a refusal by our own admission.
    pub(crate) fn not_admitted(fault: Fault) -> Self {
        match fault {
            Fault::Busy { reason, retry_after } => Self::busy(reason, retry_after),
            other => Self::internal(&other.to_string()),
        }
    }

    /// Creates the problem of a defect of ours. The cause is logged under the request id, which is all that the caller
    /// learns.
    pub(crate) fn internal(cause: &str) -> Self {
        let id = request_id::current().unwrap_or_default();
        tracing::error!(cause, request_id = id, "request failed");
        let detail = format!("the request could not be done; its id is {id}");
        Self::of_status(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }
}

impl IntoResponse for RequestProblem {
    fn into_response(self) -> Response {
        let content_type = (CONTENT_TYPE, HeaderValue::from_static(Self::MEDIA_TYPE));
        let mut response = (self.status, [content_type], self.document()).into_response();
        if let Some(retry_after) = self.retry_after {
            // A zero would make the client retry at once.
            response.headers_mut().insert(RETRY_AFTER, retry_after.as_secs().max(1).into());
        }
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[tokio::test]
    async fn documents_have_four_sorted_members() {
        let response = RequestProblem::bad_request("it is \"wrong\"").into_response();
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        expect![[r#"{"detail":"it is \"wrong\"","status":400,"title":"Bad Request","type":"about:blank"}"#]]
            .assert_eq(std::str::from_utf8(&body).unwrap());
    }

    #[test]
    fn response_carries_its_problem() {
        let problem = RequestProblem::bad_request("it is wrong");
        let response = problem.clone().into_response();
        assert_eq!(response.extensions().get(), Some(&problem));
    }

    #[test]
    fn busy_problems_never_bring_clients_back_at_once() {
        for (milliseconds, expected) in [(3000, "3"), (0, "1")] {
            let busy = RequestProblem::busy(String::new(), Duration::from_millis(milliseconds));
            assert_eq!(busy.into_response().headers()[RETRY_AFTER], expected);
        }
    }
}
