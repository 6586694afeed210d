//! Wishes for a device. Most of them are passed on as they are.

use proto::device::{self as record, os_target::Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::strict::maybe_object;
use super::words::{DecommissionTargets, Word};
use crate::http::problem::RequestProblem;

/// Wishes for a device, or for each device of a fleet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DeviceSpec {
    /// Wanted system.
    #[serde(default, deserialize_with = "maybe_object", skip_serializing_if = "Option::is_none")]
    pub os: Option<OsSpec>,
    /// End of the device, which the path for decommissioning alone sets.
    #[serde(default, deserialize_with = "maybe_object", skip_serializing_if = "Option::is_none")]
    pub decommissioning: Option<Decommission>,
    /// Applications, configuration, resources, policies and whatever else agents know.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Wanted system: an image, or an item of a catalogue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OsSpec {
    /// Reference of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Item of a catalogue.
    #[serde(default, deserialize_with = "maybe_object", skip_serializing_if = "Option::is_none")]
    pub catalog_item_ref: Option<CatalogItemRef>,
}

/// Item of a catalogue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CatalogItemRef {
    /// Catalogue.
    pub catalog: String,
    /// Item in the catalogue.
    pub item: String,
    /// Version of the item.
    pub version: String,
}

/// Request for the end of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decommission {
    /// Manner of the end.
    pub target: Word<DecommissionTargets>,
}

impl DeviceSpec {
    /// Returns the wishes of a record.
    pub(crate) fn shown(spec: record::DeviceSpec) -> Result<Self, RequestProblem> {
        let record::DeviceSpec { os, decommissioning, document_json } = spec;
        let others = match document_json.as_str() {
            "" => Map::new(),
            text => serde_json::from_str(text)
                .map_err(|error| RequestProblem::internal(&format!("stored spec: {error}")))?,
        };
        let target = Some(decommissioning).filter(|target| !target.is_empty());
        Ok(Self {
            os: os.and_then(|os| os.target).map(OsSpec::shown),
            decommissioning: target.map(|target| Decommission { target: Word::stored(target) }),
            others,
        })
    }

    /// Returns the wishes as a record. `field` is the place of the spec in the document.
    ///
    /// # Errors
    /// When two systems are wanted.
    pub(crate) fn into_record(self, field: &str) -> Result<record::DeviceSpec, RequestProblem> {
        let Self { os, decommissioning, others } = self;
        Ok(record::DeviceSpec {
            os: os.unwrap_or_default().into_record(field)?,
            decommissioning: decommissioning.map(|wish| wish.target.into_text()).unwrap_or_default(),
            document_json: if others.is_empty() { String::new() } else { Value::Object(others).to_string() },
        })
    }
}

impl OsSpec {
    fn shown(target: Target) -> Self {
        match target {
            Target::Image(image) => Self { image: Some(image), catalog_item_ref: None },
            Target::CatalogItem(record::CatalogItem { catalog, item, version }) => {
                Self { image: None, catalog_item_ref: Some(CatalogItemRef { catalog, item, version }) }
            }
        }
    }

    fn into_record(self, field: &str) -> Result<Option<record::OsTarget>, RequestProblem> {
        let target = match (self.image.filter(|image| !image.is_empty()), self.catalog_item_ref) {
            (None, None) => return Ok(None),
            (Some(image), None) => Target::Image(image),
            (None, Some(CatalogItemRef { catalog, item, version })) => {
                Target::CatalogItem(record::CatalogItem { catalog, item, version })
            }
            (Some(_), Some(_)) => {
                let text = format!("{field}.os: has both image and catalogItemRef, of which one is possible");
                return Err(RequestProblem::bad_request(text));
            }
        };
        Ok(Some(record::OsTarget { target: Some(target) }))
    }
}
