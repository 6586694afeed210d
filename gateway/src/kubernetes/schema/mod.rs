//! Schemas of objects: validation, unknown members, defaults, and the merging of lists.

use std::collections::BTreeMap;

use regex::Regex;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

mod check;
mod fill;

pub(crate) use check::check;
pub(crate) use fill::{drop_nulls, drop_unknown, fill_defaults};

/// Schema of a value.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SchemaNode {
    #[serde(rename = "type")]
    pub kind: ValueKind,
    pub properties: BTreeMap<String, SchemaNode>,
    pub additional_properties: Option<Box<SchemaNode>>,
    pub items: Option<Box<SchemaNode>>,
    pub required: Vec<String>,
    #[serde(rename = "enum")]
    pub allowed: Vec<Value>,
    #[serde(deserialize_with = "pattern")]
    pub pattern: Option<Regex>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub min_length: Option<usize>,
    pub max_length: Option<usize>,
    pub min_items: Option<usize>,
    pub max_items: Option<usize>,
    pub nullable: bool,
    pub format: String,
    pub default: Option<Value>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub keeps_unknown: bool,
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub is_number_or_text: bool,
    #[serde(rename = "x-kubernetes-list-type")]
    pub list: ListMerging,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    pub list_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-map-type")]
    pub map: MapMerging,
}

/// Type of a value.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ValueKind {
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// Manner in which several writers share a list.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ListMerging {
    /// The list has one writer.
    #[default]
    Atomic,
    /// Each value has its writers.
    Set,
    /// Each item is found by its keys, and its members have their writers.
    Map,
}

/// Manner in which several writers share an object.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MapMerging {
    /// Each member has its writers.
    #[default]
    Granular,
    /// The object has one writer.
    Atomic,
}

impl SchemaNode {
    /// Returns the schema of a member; none if the member is unknown.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.additional_properties.as_deref())
    }
}

fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Regex>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| Regex::new(&text).map_err(serde::de::Error::custom)).transpose()
}
