//! What handlers take from a request: a JSON body, a name from the path, and the tenant.

use std::fmt::Display;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use http::{HeaderMap, header::CONTENT_TYPE, request::Parts};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    mesh::Mesh,
    problem::Problem,
    query::{LONGEST_ID, is_name},
    tenant::{self, Tenant},
};

/// Longest text about a body that does not fit. Such texts quote the value, which may be megabytes.
const LONGEST_DETAIL: usize = 1000;

/// A body that is JSON of the shape `T`.
pub(crate) struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Mesh> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, mesh: &Mesh) -> Result<Self, Problem> {
        let media_type = media_type(request.headers());
        let body = Bytes::from_request(request, mesh).await;
        let body = body.map_err(|_| Problem::bad_request("the request body could not be read"))?;
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
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // Straight into the shape is fast and right for every good body except one that repeats a member, where
    // the last one has to win (BOS reference 2.1). The second reading settles that, and knows better what is
    // wrong: a body that breaks off is no JSON, however wrong its shape was before.
    serde_json::from_slice(body).or_else(|_| {
        let value: Value = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
        serde_path_to_error::deserialize(value).map_err(|error| misfit(error.path(), error.inner()))
    })
}

/// JSON has no limits to numbers and depth; who meets ours should learn which. All else is told as BOS does.
fn unreadable(error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let limits = [
        "number out of range",
        "recursion limit exceeded",
        "lone leading surrogate",
        "unexpected end of hex escape",
    ];
    Problem::bad_request(match limits.iter().any(|limit| text.starts_with(limit)) {
        true => format!("Request body cannot be read: {text}"),
        false => "Request body is not valid JSON".to_owned(),
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
pub(crate) fn at(path: impl Display, text: impl Display) -> String {
    format!("{text} - '{path}'")
}

/// What the path calls the resource that a request is about. Handlers judge it after the body, because BOS
/// does (BOS reference 2.1, "check order").
pub(crate) struct Name(String);

impl Name {
    /// The name of a session or session template.
    ///
    /// # Errors
    /// When no session or template can have that name.
    pub(crate) fn of_session(self) -> Result<String, Problem> {
        if is_name(&self.0) {
            return Ok(self.0);
        }
        Err(Problem::bad_request(format!("the path has '{}', which is no name", self.0)))
    }

    /// The id of a component.
    ///
    /// # Errors
    /// When it is too long (BOS reference 2.3, ComponentId).
    pub(crate) fn of_component(self) -> Result<String, Problem> {
        if self.0.chars().count() <= LONGEST_ID {
            return Ok(self.0);
        }
        Err(Problem::bad_request(format!("the path has an id of more than {LONGEST_ID} characters")))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| Self(name)).map_err(|_| Problem::bad_request("the path is not valid UTF-8"))
    }
}

impl<S: Sync> FromRequestParts<S> for Tenant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut named = parts.headers.get_all(tenant::HEADER).iter();
        let first = named.next().map(|value| std::str::from_utf8(value.as_bytes()));
        // Who checked the header may have read another one, and no name at all would be the administrator.
        if named.next().is_some() {
            return Err(Problem::bad_request(format!("header '{}' is there more than once", tenant::HEADER)));
        }
        let named = first
            .transpose()
            .map_err(|_| Problem::bad_request(format!("header '{}' is not valid UTF-8", tenant::HEADER)))?;
        Self::named(named.unwrap_or_default()).map_err(Problem::bad_request)
    }
}

#[cfg(test)]
mod tests;
