//! Troubles from their begin to their end, as a record shows them.
//!
//! A begin and an end are events that name the same trouble: its kind, its time, and the text that it began with, which
//! names the peer. Every end has had its begin, and a trouble begins once.

use std::sync::Arc;

use crate::core::{
    bos_time,
    event::EventContent,
    time::Timestamp,
    trouble::{Trouble, TroubleKind},
};

/// Begin of the trouble that a record shows. The text of a passing trouble changes while it lasts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TroubleBegin {
    /// Time of the begin.
    pub since: Timestamp,
    /// Text at that time.
    pub text: Arc<str>,
}

impl TroubleBegin {
    /// Returns the begin of the trouble that a record shows from `now` on; `None`: it shows none. A trouble that goes on
    /// keeps its `begin`, which is unknown if an earlier version recorded it.
    pub fn after(
        before: Option<&Trouble>,
        begin: Option<&Arc<Self>>,
        after: Option<&Trouble>,
        now: Timestamp,
    ) -> Option<Arc<Self>> {
        let after = after?;
        match before {
            Some(before) if before.goes_on_as(after) => begin.cloned(),
            Some(_) | None => Some(Self { since: now, text: Arc::clone(after.text()) }.into()),
        }
    }
}

/// Trouble that a record shows, with its begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedTrouble {
    /// Kind of the trouble.
    pub kind: TroubleKind,
    /// Text with which it began, or its newest one if that is unknown.
    pub text: Arc<str>,
    /// Time at which it began; `None`: unknown, an earlier version recorded it.
    pub since: Option<Timestamp>,
}

impl RecordedTrouble {
    /// Joins a trouble with its begin.
    pub fn new(trouble: &Trouble, begin: Option<&TroubleBegin>) -> Self {
        let text = begin.map_or(trouble.text(), |begin| &begin.text);
        Self { kind: trouble.kind(), text: Arc::clone(text), since: begin.map(|begin| begin.since) }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.kind == other.kind && (self.kind.passes() || self.text == other.text)
    }

    /// Returns the content of the event of its begin.
    pub fn began(self) -> EventContent {
        self.content("trouble_began")
    }

    /// Returns the content of the event of its end.
    pub fn ended(self) -> EventContent {
        self.content("trouble_ended")
    }

    fn content(self, kind: &'static str) -> EventContent {
        let since = self.since.map(|since| bos_time::text(since) + "Z").unwrap_or_default();
        EventContent::of(kind).because(self.kind.word()).saying(&self.text).with("since", since)
    }
}

/// Troubles that a change of a record ends and begins.
///
/// ```
/// use domain::core::{
///     time::Timestamp,
///     trouble::{
///         Trouble,
///         recorded::{RecordedTrouble, TroubleBegin, TroubleChange},
///     },
/// };
///
/// let waiting = Trouble::waiting_for("PCS");
/// let begin = TroubleBegin::after(None, None, Some(&waiting), Timestamp(1000));
/// let shown = RecordedTrouble::new(&waiting, begin.as_deref());
/// let change = TroubleChange::between(Some(shown.clone()), None);
/// assert_eq!(change, TroubleChange { ended: Some(shown), began: None });
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TroubleChange {
    /// Trouble that was shown and has ended.
    pub ended: Option<RecordedTrouble>,
    /// Trouble that has begun.
    pub began: Option<RecordedTrouble>,
}

impl TroubleChange {
    /// Compares the troubles that a record shows before and after a change.
    pub fn between(before: Option<RecordedTrouble>, after: Option<RecordedTrouble>) -> Self {
        match (before, after) {
            (Some(before), Some(after)) if before.is_same(&after) => Self::default(),
            (ended, began) => Self { ended, began },
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn line(content: &EventContent) -> String {
        let since = content.details.first().map_or("unknown", |(_, since)| since);
        format!("    {} {} '{}' since {since}\n", content.kind, content.reason, content.text)
    }

    /// Shows the troubles one after the other, a second apart, as a record does.
    fn story(rows: &[(&str, Option<Trouble>)]) -> String {
        let mut lines = String::new();
        let mut shown: Option<Trouble> = None;
        let mut begin: Option<Arc<TroubleBegin>> = None;
        for (second, (name, trouble)) in (0..).zip(rows) {
            let now = Timestamp(second * 1000);
            let before = shown.as_ref().map(|one| RecordedTrouble::new(one, begin.as_deref()));
            begin = TroubleBegin::after(shown.as_ref(), begin.as_ref(), trouble.as_ref(), now);
            shown.clone_from(trouble);
            let after = shown.as_ref().map(|one| RecordedTrouble::new(one, begin.as_deref()));
            let TroubleChange { ended, began } = TroubleChange::between(before, after);
            lines.push_str(&format!("{second} {name}\n"));
            let events =
                [ended.map(RecordedTrouble::ended), began.map(RecordedTrouble::began)].into_iter().flatten();
            events.for_each(|event| lines.push_str(&line(&event)));
        }
        lines
    }

    #[test]
    fn an_end_names_the_trouble_that_began() {
        let held = |text: &str| Some(Trouble::own(TroubleKind::Held, text));
        let shown = story(&[
            ("outage", Some(Trouble::waiting_for("PCS"))),
            ("newer text", Some(Trouble::waiting_for("PCS (503)"))),
            ("end", None),
            ("nothing", None),
            ("refusal", Trouble::failed("no")),
            ("same refusal", Trouble::failed("no")),
            ("other refusal", Trouble::failed("never")),
            ("other kind with the same text", held("never")),
            ("the lock stays", held("locked")),
            ("outage again", Some(Trouble::waiting_for("PCS"))),
        ]);
        expect![[r#"
            0 outage
                trouble_began waiting 'waiting for PCS' since 1970-01-01T00:00:00Z
            1 newer text
            2 end
                trouble_ended waiting 'waiting for PCS' since 1970-01-01T00:00:00Z
            3 nothing
            4 refusal
                trouble_began failed 'no' since 1970-01-01T00:00:04Z
            5 same refusal
            6 other refusal
                trouble_ended failed 'no' since 1970-01-01T00:00:04Z
                trouble_began failed 'never' since 1970-01-01T00:00:06Z
            7 other kind with the same text
                trouble_ended failed 'never' since 1970-01-01T00:00:06Z
                trouble_began held 'never' since 1970-01-01T00:00:07Z
            8 the lock stays
            9 outage again
                trouble_ended held 'never' since 1970-01-01T00:00:07Z
                trouble_began waiting 'waiting for PCS' since 1970-01-01T00:00:09Z
        "#]]
        .assert_eq(&shown);
    }

    #[test]
    fn a_trouble_of_an_earlier_version_ends_without_a_time() {
        let waiting = Trouble::waiting_for("PCS");
        let before = RecordedTrouble::new(&waiting, None);
        assert_eq!(TroubleBegin::after(Some(&waiting), None, Some(&waiting), Timestamp(7)), None);
        let TroubleChange { ended, began } = TroubleChange::between(Some(before), None);
        assert_eq!(
            (ended.map(|ended| line(&ended.ended())), began),
            (Some("    trouble_ended waiting 'waiting for PCS' since unknown\n".to_owned()), None)
        );
    }
}
