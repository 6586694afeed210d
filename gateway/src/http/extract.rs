//! Parts of a request that handlers take: a JSON body, and a name from the path.

use std::{fmt::Display, marker::PhantomData};

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use http::{HeaderMap, header::CONTENT_TYPE, request::Parts};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::problem::RequestProblem;

/// Longest text about a body that does not fit. Such texts quote the value, which may be megabytes.
const LONGEST_DETAIL: usize = 1000;

/// A body that is JSON of the shape `T`.
pub(crate) struct JsonBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = RequestProblem;

    async fn from_request(request: Request, state: &S) -> Result<Self, RequestProblem> {
        let media_type = media_type(request.headers());
        let body = Bytes::from_request(request, state).await;
        let body = body.map_err(|_| RequestProblem::bad_request("the request body could not be read"))?;
        if media_type.is_empty() && body.is_empty() {
            return Err(RequestProblem::bad_request("a request body is required"));
        }
        if !is_json(&media_type) {
            return Err(RequestProblem::unsupported_media_type(&media_type));
        }
        parse(&body).map(Self)
    }
}

/// Returns the type of the body without parameters such as the charset; empty if it has none.
fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_owned()
}

/// Returns whether the type is JSON, such as that of a merge patch.
fn is_json(media_type: &str) -> bool {
    let media_type = media_type.to_ascii_lowercase();
    media_type == "application/json" || media_type.ends_with("+json")
}

/// Reads a body.
///
/// # Errors
/// When the text is no JSON, or JSON of another shape; then the place of the mismatch is named.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, RequestProblem> {
    // Reading straight into the shape is fast, and right for every good body except one that repeats a member, where
    // the last has to win. The second reading settles that, and reports better: a body that breaks off is no JSON,
    // however wrong its shape was before.
    serde_json::from_slice(body).or_else(|_| {
        let value: Value = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
        serde_path_to_error::deserialize(value).map_err(|error| misfit(error.path(), error.inner()))
    })
}

/// Names the limit that a body exceeds: JSON itself has none for numbers and depth.
fn unreadable(error: &serde_json::Error) -> RequestProblem {
    let text = error.to_string();
    let limits = [
        "number out of range",
        "recursion limit exceeded",
        "lone leading surrogate",
        "unexpected end of hex escape",
    ];
    RequestProblem::bad_request(match limits.iter().any(|limit| text.starts_with(limit)) {
        true => format!("Request body cannot be read: {text}"),
        false => "Request body is not valid JSON".to_owned(),
    })
}

fn misfit(path: &serde_path_to_error::Path, error: &serde_json::Error) -> RequestProblem {
    let text: String = error.to_string().chars().take(LONGEST_DETAIL).collect();
    RequestProblem::bad_request(match path.iter().len() {
        0 => text,
        _ => at(path, text),
    })
}

/// Returns a text with the place of the mistake in the document.
pub(crate) fn at(path: impl Display, text: impl Display) -> String {
    format!("{text} - '{path}'")
}

/// Name of a resource in the path of a request, documented as a `T`. Handlers judge it after the body.
pub(crate) struct PathName<T> {
    text: String,
    documented: PhantomData<T>,
}

impl<T> PathName<T> {
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

impl<S: Send + Sync, T> FromRequestParts<S> for PathName<T> {
    type Rejection = RequestProblem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestProblem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(text)| Self { text, documented: PhantomData })
            .map_err(|_| RequestProblem::bad_request("the path is not valid UTF-8"))
    }
}

/// Names of a resource and of a part of it, in the path of a request.
pub(crate) struct PathNames(String, String);

impl PathNames {
    pub(crate) fn into_texts(self) -> (String, String) {
        (self.0, self.1)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathNames {
    type Rejection = RequestProblem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestProblem> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        path.map(|Path((resource, part))| Self(resource, part))
            .map_err(|_| RequestProblem::bad_request("the path is not valid UTF-8"))
    }
}

#[cfg(test)]
mod tests;
