//! Positions in the histories of all kinds, as one text that an answer gives and a request repeats.

use std::{borrow::Cow, collections::BTreeMap};

use proto::event::EventPosition;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::source::{self, EventSource, SOURCES};

/// Most digits of a revision: more might not fit into 63 bits.
const REVISION_DIGITS: usize = 18;

/// Most digits of an index.
const INDEX_DIGITS: usize = 9;

/// Positions by kind of resources. The history of a kind that is missing has no older events.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct EventPositions(BTreeMap<&'static str, EventPosition>);

impl EventPositions {
    /// Reads a text.
    ///
    /// # Errors
    /// Names what is wrong with the text.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let items: Vec<_> = text.split(',').collect();
        if items.len() > SOURCES.len() {
            return Err(format!("has {} items, more than {}", items.len(), SOURCES.len()));
        }
        let read = items.into_iter().map(|item| {
            position(item).ok_or_else(|| format!("'{item}' is no position such as component:12:0"))
        });
        read.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the position in the history of a kind.
    pub(super) fn of(&self, source: &EventSource) -> Option<EventPosition> {
        self.0.get(source.resource).copied()
    }

    /// Adds the position in the history of a kind.
    pub(super) fn add(&mut self, source: &EventSource, position: EventPosition) {
        self.0.insert(source.resource, position);
    }

    /// Returns the text; `None`: no history has older events.
    pub(super) fn text(&self) -> Option<String> {
        let items = self.0.iter();
        let items: Vec<_> =
            items.map(|(kind, one)| format!("{kind}:{}:{}", one.revision, one.index)).collect();
        (!items.is_empty()).then(|| items.join(","))
    }
}

fn position(item: &str) -> Option<(&'static str, EventPosition)> {
    let mut parts = item.split(':');
    let source = EventSource::named(parts.next()?)?;
    let revision = number(parts.next()?, REVISION_DIGITS)?;
    let index = number(parts.next()?, INDEX_DIGITS)?.try_into().ok()?;
    parts.next().is_none().then_some((source.resource, EventPosition { revision, index }))
}

fn number(text: &str, digits: usize) -> Option<u64> {
    let is_number = (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

impl JsonSchema for EventPositions {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "EventPositions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = format!("{}:[0-9]{{1,{REVISION_DIGITS}}}:[0-9]{{1,{INDEX_DIGITS}}}", source::words());
        let pattern = format!("^{one}(,{one}){{0,{}}}$", SOURCES.len() - 1);
        json_schema!({ "type": "string", "pattern": pattern })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_come_back_as_they_went() {
        let text = "component:12:0,host:999999999999999999:999999999";
        assert_eq!(EventPositions::read(text).unwrap().text().unwrap(), text);
        assert_eq!(EventPositions::default().text(), None);
    }

    #[test]
    fn other_texts_are_refused() {
        let many = ["component:1:0"; 9].join(",");
        for text in [
            "",
            "component",
            "node:1:0",
            "component:1",
            "component:+1:0",
            "component::0",
            "component:1:0:0",
            "component:1:0,",
            "component:1000000000000000000:0",
            &many,
        ] {
            assert!(EventPositions::read(text).is_err(), "{text}");
        }
    }
}
