//! JSON answers.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};

/// Answers with a JSON text.
pub(crate) fn json_answer(code: StatusCode, body: impl Into<Body>) -> Response {
    typed_answer(code, "application/json", body)
}

/// Answers with a body of that type.
pub(crate) fn typed_answer(code: StatusCode, media_type: &'static str, body: impl Into<Body>) -> Response {
    let headers = [(CONTENT_TYPE, HeaderValue::from_static(media_type))];
    (code, headers, body.into()).into_response()
}
