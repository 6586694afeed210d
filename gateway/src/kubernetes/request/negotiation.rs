//! The choice of a form for an answer: the first entry of `Accept` that can be served.

use http::{HeaderMap, header::ACCEPT};

use super::super::failure::ApiFailure;

/// Form of an answer with objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectForm {
    /// The objects themselves.
    Whole,
    /// Rows with printed columns.
    Table,
    /// Metadata alone.
    Metadata,
}

/// Form of the list of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiscoveryForm {
    /// Groups and versions.
    Groups,
    /// Everything at once, in this version of the form.
    Aggregated(&'static str),
}

/// Form of the OpenAPI document of version 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenApiForm {
    Json,
    Protobuf,
}

/// Entry of `Accept`.
struct MediaRange<'a> {
    kind: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> MediaRange<'a> {
    fn read(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let parameters = parts.filter_map(|part| part.split_once('=')).collect();
        Self { kind, parameters }
    }

    fn parameter(&self, name: &str) -> &'a str {
        self.parameters.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }

    fn is_json(&self) -> bool {
        matches!(self.kind, "application/json" | "application/*" | "*/*")
    }
}

/// Returns the form in which objects are answered.
///
/// # Errors
/// When no form is acceptable.
pub(crate) fn object_form(headers: &HeaderMap) -> Result<ObjectForm, ApiFailure> {
    chosen(headers, ObjectForm::Whole, |range| match range.parameter("as") {
        _ if !range.is_json() => None,
        "" => Some(ObjectForm::Whole),
        "Table" => Some(ObjectForm::Table),
        "PartialObjectMetadata" | "PartialObjectMetadataList" => Some(ObjectForm::Metadata),
        _ => None,
    })
}

/// Returns the form in which groups are answered.
///
/// # Errors
/// When no form is acceptable.
pub(crate) fn discovery_form(headers: &HeaderMap) -> Result<DiscoveryForm, ApiFailure> {
    chosen(headers, DiscoveryForm::Groups, |range| {
        match (range.is_json(), range.parameter("as"), range.parameter("v")) {
            (true, "", _) => Some(DiscoveryForm::Groups),
            (true, "APIGroupDiscoveryList", "v2") => Some(DiscoveryForm::Aggregated("v2")),
            (true, "APIGroupDiscoveryList", "v2beta1") => Some(DiscoveryForm::Aggregated("v2beta1")),
            _ => None,
        }
    })
}

/// Returns the form in which the OpenAPI document of version 2 is answered.
///
/// # Errors
/// When no form is acceptable.
pub(crate) fn open_api_form(headers: &HeaderMap) -> Result<OpenApiForm, ApiFailure> {
    chosen(headers, OpenApiForm::Json, |range| match range.kind {
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
        | "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" => Some(OpenApiForm::Protobuf),
        _ if range.is_json() => Some(OpenApiForm::Json),
        _ => None,
    })
}

fn chosen<T>(
    headers: &HeaderMap,
    usual: T,
    served: impl Fn(&MediaRange<'_>) -> Option<T>,
) -> Result<T, ApiFailure> {
    let values: Vec<_> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let accepted = values.join(",");
    if accepted.trim().is_empty() {
        return Ok(usual);
    }
    let mut ranges = accepted.split(',').map(|text| MediaRange::read(text.trim()));
    ranges.find_map(|range| served(&range)).ok_or_else(ApiFailure::not_acceptable)
}
