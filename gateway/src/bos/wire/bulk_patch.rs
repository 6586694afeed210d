//! The two shapes of a bulk patch of components (BOS reference 2.6.4).

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{
        MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use serde_json::{Value, json};

use super::{
    component::Component,
    primitive::{BoundedText, ResourceName},
    strict::JsonObject,
};

/// Most characters of a list of ids (BOS reference 2.6.4). An address has room for about as many.
pub(crate) const LONGEST_IDS: usize = 65_535;

/// Components to patch, and the changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BulkPatch {
    /// An array: each item is the patch of the component that it names.
    Each(Vec<JsonObject<Component>>),
    /// An object: one patch for every component that a filter selects.
    Filtered(Box<FilteredPatch>),
}

/// A patch for many components.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename = "Filtered", deny_unknown_fields)]
pub(crate) struct FilteredPatch {
    /// The components.
    pub filters: JsonObject<PatchFilters>,
    /// The change of each component.
    #[schemars(extend("minProperties" = 1))]
    pub patch: JsonObject<Component>,
}

/// Components by exactly one member; the other member may be absent, `null` or empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename = "Filters", default, deny_unknown_fields)]
pub(crate) struct PatchFilters {
    /// Ids, separated by commas.
    pub ids: Option<String>,
    /// Name of a session.
    pub session: Option<String>,
}

impl<'de> Deserialize<'de> for BulkPatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BulkPatchVisitor)
    }
}

impl JsonSchema for BulkPatch {
    fn schema_name() -> Cow<'static, str> {
        "BulkPatch".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let each = generator.subschema_for::<Vec<Component>>();
        let filtered = generator.subschema_for::<FilteredPatch>();
        json_schema!({ "oneOf": [{ "allOf": [each, { "items": { "required": ["id"] } }] }, filtered] })
    }
}

impl JsonSchema for PatchFilters {
    fn schema_name() -> Cow<'static, str> {
        "Filters".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let ids = generator.subschema_for::<BoundedText<1, LONGEST_IDS>>();
        let session = generator.subschema_for::<ResourceName>();
        let unused = json_schema!({ "type": ["string", "null"], "enum": ["", null] });
        let one = |used: &str, properties: Value| {
            json!({
                "type": "object",
                "properties": properties,
                "required": [used],
                "additionalProperties": false,
            })
        };
        let by_ids = one("ids", json!({ "ids": ids, "session": unused }));
        let by_session = one("session", json!({ "ids": unused, "session": session }));
        json_schema!({ "oneOf": [by_ids, by_session] })
    }
}

/// Reads a bulk patch. A derived reader, which tries one shape after the other, forgets the place at which it failed.
struct BulkPatchVisitor;

impl<'de> Visitor<'de> for BulkPatchVisitor {
    type Value = BulkPatch;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("an array or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<BulkPatch, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(BulkPatch::Each)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<BulkPatch, A::Error> {
        FilteredPatch::deserialize(MapAccessDeserializer::new(members)).map(Box::new).map(BulkPatch::Filtered)
    }
}
