//! What handlers take from a request: a JSON body, and a name from the path.

use std::fmt::Display;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE, request::Parts};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::problem::Problem;

/// Longest text about a body that does not fit. Such texts quote the value, which may be megabytes.
const LONGEST_DETAIL: usize = 1000;

/// A body that is JSON of the shape `T`.
pub struct Json<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let media_type = media_type(request.headers());
        let body = Bytes::from_request(request, state).await.map_err(|rejection| {
            match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => Problem::too_large(),
                _ => Problem::bad_request("the request body could not be read"),
            }
        })?;
        if media_type.is_empty() && body.is_empty() {
            return Err(Problem::bad_request("a request body is required"));
        }
        if !is_json(&media_type) {
            return Err(Problem::unsupported_media_type(&media_type));
        }
        parse(&body).map(Self)
    }
}

/// The type of the body without parameters such as the charset; empty when there is none.
fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_owned()
}

/// Any JSON type will do (BOS reference 2.1, "accepted request types").
fn is_json(media_type: &str) -> bool {
    let media_type = media_type.to_ascii_lowercase();
    media_type == "application/json" || media_type.ends_with("+json")
}

/// Reads a body.
///
/// # Errors
/// When the text is no JSON, or JSON of another shape; then the place of the mismatch is named.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // Straight into the shape is fast and right for every good body except one that repeats a member, where
    // the last one has to win (BOS reference 2.1). The second reading settles that, and knows better what is
    // wrong: a body that breaks off is no JSON, however wrong its shape was before.
    serde_json::from_slice(body).or_else(|_| {
        let value: Value = serde_json::from_slice(body)
            .map_err(|_| Problem::bad_request("Request body is not valid JSON"))?;
        serde_path_to_error::deserialize(value).map_err(|error| misfit(&error.path(), error.inner()))
    })
}

fn misfit(path: &serde_path_to_error::Path, error: &serde_json::Error) -> Problem {
    let text: String = error.to_string().chars().take(LONGEST_DETAIL).collect();
    Problem::bad_request(match path.iter().len() {
        0 => text,
        _ => at(path, text),
    })
}

/// Says where in the document something is wrong, as BOS does.
pub fn at(path: impl Display, text: impl Display) -> String {
    format!("{text} - '{path}'")
}

/// The last part of the path: the id or name of one resource.
pub struct Name(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| Self(name)).map_err(|_| Problem::bad_request("the path is not valid UTF-8"))
    }
}
