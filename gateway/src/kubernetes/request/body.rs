//! Bodies: JSON with or without a type, YAML, and the binary form of the kinds that clients send so.

use http::{HeaderMap, header::CONTENT_TYPE};
use serde_json::Value;

use super::{super::failure::ApiFailure, duplicates, protobuf};

/// Media type of the binary form.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Body of a write.
#[derive(Debug)]
pub(crate) struct ApiBody {
    pub value: Value,
    /// Paths of members that are repeated, of which the last counts.
    pub repeated: Vec<String>,
}

impl ApiBody {
    /// Reads an object. A body without a type is JSON.
    ///
    /// # Errors
    /// When the form is unknown, or the body is not of that form.
    pub(crate) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Self, ApiFailure> {
        match &*media_type(headers) {
            "" | "application/json" => Self::json(body),
            "application/yaml" => Self::yaml(body),
            PROTOBUF => {
                let value = protobuf::read(body)?;
                Ok(Self { value, repeated: Vec::new() })
            }
            other => {
                let accepted = format!("application/json, application/yaml, {PROTOBUF}");
                Err(ApiFailure::unsupported_media_type(other, &accepted))
            }
        }
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// When the text is no JSON.
    pub(crate) fn json(body: &[u8]) -> Result<Self, ApiFailure> {
        let (value, repeated) = duplicates::read(body).map_err(|error| unreadable(&error.to_string()))?;
        Ok(Self { value, repeated })
    }

    /// Reads YAML, of which JSON is a part.
    ///
    /// # Errors
    /// When the text is no YAML, or has no form in JSON.
    pub(crate) fn yaml(body: &[u8]) -> Result<Self, ApiFailure> {
        // Most clients put JSON here, and its parser finds repeated members.
        if let Ok(json) = Self::json(body) {
            return Ok(json);
        }
        let text = std::str::from_utf8(body).map_err(|error| unreadable(&error.to_string()))?;
        let value = serde_saphyr::from_str(text).map_err(|error| unreadable(&error.to_string()))?;
        Ok(Self { value, repeated: Vec::new() })
    }
}

fn unreadable(why: &str) -> ApiFailure {
    ApiFailure::bad_request(format!("the object provided is unrecognized: {why}"))
}

/// Returns the type of a body without parameters; empty if it has none.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
