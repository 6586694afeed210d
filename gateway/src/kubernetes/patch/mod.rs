//! Patches of objects: merge patch, JSON patch, and the strategic merge patch of the core kinds.

use http::HeaderMap;
use serde_json::Value;

use super::{
    failure::{ApiFailure, FailureCause},
    kinds::ResourceKind,
    request::body::{ApiBody, media_type},
};

mod merge;
mod strategic;

/// Patch of an object.
#[derive(Debug, Clone)]
pub(crate) enum ObjectPatch {
    /// Merge patch of RFC 7396.
    Merge(Value),
    /// JSON patch of RFC 6902.
    Json(json_patch::Patch),
    /// Merge patch with keys of lists and directives.
    Strategic(Value),
    /// The fields that a manager wants.
    Apply(Value),
}

impl ObjectPatch {
    /// Reads a patch of an object of `kind`, and returns it with the paths of repeated members.
    ///
    /// # Errors
    /// When the type of the body is no patch of that kind, or the body no patch of that type.
    pub(crate) fn read(
        kind: &ResourceKind,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<(Self, Vec<String>), ApiFailure> {
        match &*media_type(headers) {
            "application/merge-patch+json" => {
                let ApiBody { value, repeated } = an_object(ApiBody::json(body)?)?;
                Ok((Self::Merge(value), repeated))
            }
            "application/json-patch+json" => {
                let patch = serde_json::from_slice(body);
                let patch = patch
                    .map_err(|error| ApiFailure::bad_request(format!("error decoding patch: {error}")))?;
                Ok((Self::Json(patch), Vec::new()))
            }
            "application/strategic-merge-patch+json" if kind.is_core() => {
                let ApiBody { value, repeated } = an_object(ApiBody::json(body)?)?;
                Ok((Self::Strategic(value), repeated))
            }
            "application/apply-patch+yaml" | "application/apply-patch+json" => {
                let ApiBody { value, repeated } = an_object(ApiBody::yaml(body)?)?;
                Ok((Self::Apply(value), repeated))
            }
            other => Err(ApiFailure::unsupported_media_type(other, &accepted(kind))),
        }
    }

    /// Returns the object after the patch.
    ///
    /// # Errors
    /// When the patch does not fit the object.
    pub(crate) fn applied(
        &self,
        kind: &ResourceKind,
        name: &str,
        object: Value,
    ) -> Result<Value, ApiFailure> {
        let mut object = object;
        match self {
            Self::Merge(patch) | Self::Apply(patch) => merge::merge(&mut object, patch),
            Self::Strategic(patch) => strategic::merge(&mut object, patch, kind.schema()),
            Self::Json(patch) => json_patch::patch(&mut object, patch).map_err(|error| {
                let cause = FailureCause::invalid("patch", error.to_string());
                ApiFailure::invalid(kind, name, vec![cause])
            })?,
        }
        Ok(object)
    }
}

fn an_object(body: ApiBody) -> Result<ApiBody, ApiFailure> {
    match body.value.is_object() {
        true => Ok(body),
        false => Err(ApiFailure::bad_request("error decoding patch: a patch of this type is an object")),
    }
}

fn accepted(kind: &ResourceKind) -> String {
    let mut accepted =
        vec!["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
    if kind.is_core() {
        accepted.push("application/strategic-merge-patch+json");
    }
    accepted.join(", ")
}

#[cfg(test)]
mod tests;
