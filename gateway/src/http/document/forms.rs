//! Forms of texts and numbers, for the description of parameters and members.
//!
//! No value has these types: the reader of a value refuses longer or larger ones by the same limits.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// A text with a number of characters.
pub(crate) struct BoundedText<const LEAST: usize, const MOST: usize>;

/// A whole number.
pub(crate) struct WholeNumber<const LEAST: u32, const MOST: u32>;

/// Up to `MOST` texts in a text of at most `LONGEST` characters, separated by commas. No text is empty.
pub(crate) struct SeparatedTexts<const MOST: usize, const LONGEST: usize>;

/// A time with a zone, as RFC 3339 writes it.
pub(crate) struct ZonedTime;

impl<const LEAST: usize, const MOST: usize> JsonSchema for BoundedText<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("TextOf{LEAST}To{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": LEAST, "maxLength": MOST })
    }
}

impl<const LEAST: u32, const MOST: u32> JsonSchema for WholeNumber<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Number{LEAST}To{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MOST })
    }
}

impl<const MOST: usize, const LONGEST: usize> JsonSchema for SeparatedTexts<MOST, LONGEST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("SeparatedTextsTo{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = format!("^[^,]+(,[^,]+){{0,{}}}$", MOST.saturating_sub(1));
        json_schema!({ "type": "string", "minLength": 1, "maxLength": LONGEST, "pattern": pattern })
    }
}

impl JsonSchema for ZonedTime {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ZonedTime".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}
