//! Answers in JSON.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};
use serde::Serialize;

use super::problem::RequestProblem;

/// Answers `status` and `body`.
///
/// # Errors
/// [`RequestProblem::internal`] when `body` cannot be written as JSON.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Result<Response, RequestProblem> {
    let body = serde_json::to_vec(body).map_err(|error| RequestProblem::internal(&error.to_string()))?;
    let content_type = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok((status, [content_type], body).into_response())
}
