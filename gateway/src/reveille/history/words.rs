//! Words of histories as forms of parameters.

use std::borrow::Cow;

use chassis::kinds::history::{HISTORY_KINDS, HistoryKind, INDEX_DIGITS, REVISION_DIGITS};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// Most kinds of events in a parameter.
const MOST_EVENTS: usize = 100;

/// Kind of resources with events.
pub(crate) struct ResourceWord;

/// Kinds of resources with events, separated by commas.
pub(crate) struct SeparatedResources;

/// Kinds of events, separated by commas.
pub(crate) struct SeparatedEvents;

/// Place in the histories of all kinds, which an answer gives.
pub(crate) struct HistoryPlace;

/// Reads a kind of resources.
///
/// # Errors
/// The kind has no events.
pub(crate) fn resource(text: &str) -> Result<String, String> {
    HistoryKind::named(text).map(|_| text.to_owned()).ok_or_else(|| format!("'{text}' has no events"))
}

/// Reads kinds of resources, separated by commas.
///
/// # Errors
/// There are too many, or one has no events.
pub(crate) fn resources(text: &str) -> Result<Vec<String>, String> {
    separated(text, HISTORY_KINDS.len(), resource)
}

/// Reads kinds of events, separated by commas.
///
/// # Errors
/// There are too many, or one is no kind of event of any resource.
pub(crate) fn events(text: &str) -> Result<Vec<String>, String> {
    let is_known = |word: &str| HISTORY_KINDS.iter().any(|kind| kind.words.contains(&word));
    separated(text, MOST_EVENTS, |word| {
        is_known(word).then(|| word.to_owned()).ok_or_else(|| format!("'{word}' is no kind of event"))
    })
}

fn separated(
    text: &str,
    most: usize,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, String> {
    let items: Vec<_> = text.split(',').collect();
    if items.len() > most {
        return Err(format!("has {} items, more than {most}", items.len()));
    }
    items.into_iter().map(read).collect()
}

/// Returns words as alternatives of a pattern.
fn alternatives<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    format!("({})", words.into_iter().collect::<Vec<_>>().join("|"))
}

fn resource_words() -> String {
    alternatives(HISTORY_KINDS.iter().map(|kind| kind.resource))
}

fn event_words() -> String {
    let words: std::collections::BTreeSet<_> = HISTORY_KINDS.iter().flat_map(|kind| kind.words).collect();
    alternatives(words.into_iter().copied())
}

/// Returns the form of up to `most` items of a pattern, separated by commas.
fn list_of(one: &str, most: usize) -> Schema {
    let pattern = format!("^{one}(,{one}){{0,{}}}$", most.saturating_sub(1));
    json_schema!({ "type": "string", "pattern": pattern })
}

impl JsonSchema for ResourceWord {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ResourceWord".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<_> = HISTORY_KINDS.iter().map(|kind| kind.resource).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}

impl JsonSchema for SeparatedResources {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SeparatedResources".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        list_of(&resource_words(), HISTORY_KINDS.len())
    }
}

impl JsonSchema for SeparatedEvents {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SeparatedEvents".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        list_of(&event_words(), MOST_EVENTS)
    }
}

impl JsonSchema for HistoryPlace {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "HistoryPlace".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let resource = resource_words();
        let one = format!("{resource}:[0-9]{{1,{REVISION_DIGITS}}}:[0-9]{{1,{INDEX_DIGITS}}}");
        list_of(&one, HISTORY_KINDS.len())
    }
}
