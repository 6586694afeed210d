//! Places in the timeline: a position in the history of each kind, as one text that an answer gives and a request repeats.

use std::collections::BTreeMap;

use chassis::kinds::history::{HISTORY_KINDS, HistoryKind, INDEX_DIGITS, REVISION_DIGITS};
use domain::core::invalid::Invalid;
use proto::event::EventPosition;

/// Position before every event of a history.
pub(super) const BEGINNING: EventPosition = EventPosition { revision: 0, index: 0 };

/// Positions by kind of resources. Older events are before the position of their kind, newer ones are not. A kind that is
/// missing is at its beginning.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TimelineCursor(BTreeMap<&'static str, EventPosition>);

impl TimelineCursor {
    /// Reads the text of `field`.
    ///
    /// # Errors
    /// Names the flaw of the text.
    pub(super) fn read(field: &str, text: &str) -> Result<Self, Invalid> {
        let items: Vec<_> = text.split(',').collect();
        if items.len() > HISTORY_KINDS.len() {
            let reason = format!("has {} items, more than {}", items.len(), HISTORY_KINDS.len());
            return Err(Invalid::new(field, reason));
        }
        let read = items.into_iter().map(|item| {
            let reason = || format!("'{item}' is no position such as component:12:0");
            position(item).ok_or_else(|| Invalid::new(field, reason()))
        });
        read.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the position in the history of a kind.
    pub(super) fn of(&self, kind: &HistoryKind) -> EventPosition {
        self.0.get(kind.resource).copied().unwrap_or(BEGINNING)
    }

    /// Sets the position in the history of a kind.
    pub(super) fn set(&mut self, kind: &HistoryKind, position: EventPosition) {
        self.0.insert(kind.resource, position);
    }

    /// Returns whether no history has older events.
    pub(super) fn is_beginning(&self) -> bool {
        self.0.values().all(|position| *position == BEGINNING)
    }

    /// Returns the text.
    pub(super) fn text(&self) -> String {
        let items = self.0.iter();
        let items: Vec<_> =
            items.map(|(kind, one)| format!("{kind}:{}:{}", one.revision, one.index)).collect();
        items.join(",")
    }
}

fn position(item: &str) -> Option<(&'static str, EventPosition)> {
    let mut parts = item.split(':');
    let kind = HistoryKind::named(parts.next()?)?;
    let revision = number(parts.next()?, REVISION_DIGITS)?;
    let index = number(parts.next()?, INDEX_DIGITS)?.try_into().ok()?;
    parts.next().is_none().then_some((kind.resource, EventPosition { revision, index }))
}

fn number(text: &str, digits: usize) -> Option<u64> {
    let is_number = (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_as_they_went() {
        let text = "component:12:0,host:999999999999999999:999999999";
        let cursor = TimelineCursor::read("before", text).unwrap();
        assert_eq!(cursor.text(), text);
        assert!(!cursor.is_beginning());
        assert!(TimelineCursor::read("before", "component:0:0,session:0:0").unwrap().is_beginning());
    }

    #[test]
    fn other_texts_are_refused() {
        let many = ["component:1:0"; 12].join(",");
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
            assert!(TimelineCursor::read("before", text).is_err(), "{text}");
        }
    }
}
