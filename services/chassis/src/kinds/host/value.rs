//! Values that the messages of hosts have in common: texts, words and times.

use std::sync::Arc;

use domain::core::{invalid::Invalid, time::Timestamp};

use crate::mesh::time;

/// Reads a word.
pub(super) fn word<W>(field: &str, text: &str, read: impl Fn(&str) -> Option<W>) -> Result<W, Invalid> {
    read(text).ok_or_else(|| Invalid::new(field, format!("'{text}' is unknown")))
}

/// Reads a word that may be empty.
pub(super) fn word_or_none<W>(
    field: &str,
    text: &str,
    read: impl Fn(&str) -> Option<W>,
) -> Result<Option<W>, Invalid> {
    if text.is_empty() { Ok(None) } else { word(field, text, read).map(Some) }
}

/// Reads a text for which empty means none.
pub(super) fn text_or_none(text: &str) -> Option<Arc<str>> {
    Some(text).filter(|text| !text.is_empty()).map(Into::into)
}

/// Reads a text that may be unset.
pub(super) fn shared(text: Option<&String>) -> Option<Arc<str>> {
    text.map(|text| text.as_str().into())
}

/// Returns a text that may be unset for the wire.
pub(super) fn owned(text: Option<&Arc<str>>) -> Option<String> {
    text.map(|text| text.to_string())
}

/// Reads a time that may be unset.
pub(super) fn time_or_none(time: Option<prost_types::Timestamp>) -> Option<Timestamp> {
    time.map(time::from_wire)
}

/// Reads a time; unset means the beginning of time.
pub(super) fn time(time: Option<prost_types::Timestamp>) -> Timestamp {
    time_or_none(time).unwrap_or_default()
}

/// Returns a time for the wire.
pub(super) fn at(time: Timestamp) -> Option<prost_types::Timestamp> {
    Some(time::to_wire(time))
}

/// Returns the refusal of a message that lacks a field.
pub(super) fn missing(field: &str) -> Invalid {
    Invalid::new(field, "is missing")
}
