//! Reading JSON as strictly as the contract demands (BOS reference 2.1).
//!
//! Derived readers take `null` for an absent member and an array for an object. Both are errors here.

use std::{borrow::Cow, fmt, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, Unexpected, Visitor, value::MapAccessDeserializer},
};

use super::primitive::LONGEST_ID;

/// A value that is written as a JSON object and nothing else.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct JsonObject<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData)).map(Self)
    }
}

impl<T: JsonSchema> JsonSchema for JsonObject<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members))
    }
}

/// Reads a member that may be left out but not be `null`.
///
/// # Errors
/// When the value does not have the type `T`.
pub(crate) fn given<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Reads a member that is an object when it is there.
///
/// # Errors
/// When the value is no object, or one with other members than `T` has.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    JsonObject::deserialize(deserializer).map(|object| Some(object.0))
}

/// Reads a member that is a whole number, not negative, when it is there.
///
/// # Errors
/// When the value is no integer or negative.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    deserializer.deserialize_u32(CountVisitor).map(Some)
}

/// Reads the id of a component when it is there. It has to be one even where it is ignored.
///
/// # Errors
/// When the value is no text, or too short or too long (BOS reference 2.3, ComponentId).
pub(crate) fn component_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let id = String::deserialize(deserializer)?;
    match id.chars().count() {
        1..=LONGEST_ID => Ok(Some(id)),
        length => {
            Err(D::Error::custom(format_args!("has {length} characters, not between 1 and {LONGEST_ID}")))
        }
    }
}

/// Reads a whole number. A derived reader would name Rust types in its errors.
struct CountVisitor;

impl Visitor<'_> for CountVisitor {
    type Value = u32;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a whole number that is not negative")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u32, E> {
        u32::try_from(number)
            .map_err(|_| E::custom(format_args!("{number} is more than any number may be here")))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u32, E> {
        u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }
}
