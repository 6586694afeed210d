//! The two shapes of a bulk patch of components (BOS reference 2.6.4).

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{
        MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};

use super::{component::Component, strict::Object};

/// Which components to patch, and how.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BulkPatch {
    /// An array: each item is the patch of the component that it names.
    Each(Vec<Object<Component>>),
    /// An object: one patch for every component that a filter selects.
    Filtered(Box<Filtered>),
}

/// One patch for many components.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Filtered {
    /// Which components.
    pub filters: Object<Filters>,
    /// What to change on each.
    pub patch: Object<Component>,
}

/// One of these selects components; the other may be absent, `null` or empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Filters {
    /// Ids, separated by commas.
    pub ids: Option<String>,
    /// Name of a session.
    pub session: Option<String>,
}

impl<'de> Deserialize<'de> for BulkPatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Shapes)
    }
}

/// By hand, because a derived reader that tries one shape after the other forgets where it failed.
struct Shapes;

impl<'de> Visitor<'de> for Shapes {
    type Value = BulkPatch;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("an array or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<BulkPatch, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(BulkPatch::Each)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<BulkPatch, A::Error> {
        Filtered::deserialize(MapAccessDeserializer::new(members)).map(Box::new).map(BulkPatch::Filtered)
    }
}
