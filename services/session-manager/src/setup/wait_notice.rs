//! What people are told about why a session waits.

use std::time::Duration;

use domain::{bos_time, time::Timestamp};
use tokio::time::Instant;

use crate::setback::Outage;

/// How long a text stays while only the words for the same outage differ, so that neither the record nor those
/// who watch it are busy with an outage.
const LASTS: Duration = Duration::from_secs(30);

/// What was told, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    /// What is waited for.
    what: &'static str,
    /// Since when the session waits for it.
    since: Timestamp,
    /// What the record says.
    pub(super) text: String,
    written: Instant,
}

impl Told {
    /// What to tell about `outage`, when people were told `before` and their record says `shown`. `None`: that
    /// is good enough.
    pub(super) fn next(
        before: Option<&Self>,
        shown: &str,
        outage: &Outage,
        now: (Timestamp, Instant),
    ) -> Option<Self> {
        let (time, instant) = now;
        let same = before.filter(|before| before.what == outage.what);
        let since = same.map_or(time, |same| same.since);
        let text = format!("{}: {} (waiting since {}Z)", outage.what, outage.error, bos_time::text(since));
        let current =
            same.is_some_and(|same| instant.duration_since(same.written) < LASTS && same.text == shown);
        let next = Self { what: outage.what, since, text, written: instant };
        (!current && next.text != shown).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_outage_is_told_once_and_its_words_are_renewed_now_and_then() {
        let start = (Timestamp(1_732_119_012_345), Instant::now());
        let (mut before, mut shown, mut rows) = (None, String::new(), String::new());
        for (second, what, error) in [
            (0, "inventory", "connection refused"),
            (1, "inventory", "connection refused"),
            (2, "inventory", "no answer within 22 s"),
            (40, "inventory", "no answer within 22 s"),
            (41, "inventory", "connection refused"),
            (42, "image store", "connection refused"),
            (43, "inventory", "connection refused"),
        ] {
            let after = Duration::from_secs(second);
            let now = (start.0.plus(after), start.1 + after);
            let next = Told::next(before.as_ref(), &shown, &Outage { what, error: error.into() }, now);
            rows += &format!("{second} s: {}\n", next.as_ref().map_or("-", |next| &next.text));
            if let Some(next) = next {
                shown.clone_from(&next.text);
                before = Some(next);
            }
        }
        expect![[r#"
            0 s: inventory: connection refused (waiting since 2024-11-20T16:10:12Z)
            1 s: -
            2 s: -
            40 s: inventory: no answer within 22 s (waiting since 2024-11-20T16:10:12Z)
            41 s: -
            42 s: image store: connection refused (waiting since 2024-11-20T16:10:54Z)
            43 s: inventory: connection refused (waiting since 2024-11-20T16:10:55Z)
        "#]]
        .assert_eq(&rows);
        let outage = Outage { what: "inventory", error: "connection refused".into() };
        let now = (start.0.plus(Duration::from_secs(43)), start.1 + Duration::from_secs(43));
        assert!(
            Told::next(before.as_ref(), "", &outage, now).is_some(),
            "a record that was cleared says nothing"
        );
    }
}
