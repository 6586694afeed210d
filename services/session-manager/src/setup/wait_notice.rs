//! Notices for people about the dependency that a session waits for.

use std::time::Duration;

use domain::core::{bos_time, time::Timestamp};
use tokio::time::Instant;

use crate::dependency::{Dependency, DependencyError, DependencyOutage};

/// Time for which a notice stays if only the error text of the same outage changes, so that an outage does not keep
/// the record and its watches busy.
const LASTS: Duration = Duration::from_secs(30);

/// A notice, and the time at which it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaitNotice {
    /// Dependency that the session waits for.
    what: Dependency,
    /// Beginning of the wait.
    since: Timestamp,
    /// Text in the record.
    pub(super) text: String,
    /// Beginning of the wait by the monotonic clock.
    began: Instant,
    written: Instant,
}

impl WaitNotice {
    /// Returns the next notice about `outage`, after the notice `before` and with the text `shown` in the record.
    /// `None`: the record needs no change.
    pub(super) fn next(
        before: Option<&Self>,
        shown: &str,
        outage: &DependencyOutage,
        now: (Timestamp, Instant),
    ) -> Option<Self> {
        let (_, instant) = now;
        let same = before.filter(|before| before.what == outage.what);
        let (since, began) = same.map_or(now, |same| (same.since, same.began));
        let text = format!("{}: {} (waiting since {}Z)", outage.what, outage.error, bos_time::text(since));
        let current =
            same.is_some_and(|same| instant.duration_since(same.written) < LASTS && same.text == shown);
        let next = Self { what: outage.what, since, text, began, written: instant };
        (!current && next.text != shown).then_some(next)
    }

    /// Returns how long the session has waited at `now` for the dependency of `error`.
    pub(super) fn waited_for(&self, error: &DependencyError, now: Instant) -> Duration {
        match error {
            DependencyError::Retryable(outage) if outage.what == self.what => now.duration_since(self.began),
            DependencyError::Retryable(_) | DependencyError::Fatal(_) | DependencyError::Idle { .. } => {
                Duration::ZERO
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_outage_is_written_once_and_its_text_refreshed() {
        let start = (Timestamp(1_732_119_012_345), Instant::now());
        let mut before = None;
        let mut shown = String::new();
        let mut rows = String::new();
        for (second, what, error) in [
            (0, Dependency::Inventory, "connection refused"),
            (1, Dependency::Inventory, "connection refused"),
            (2, Dependency::Inventory, "no answer within 22 s"),
            (40, Dependency::Inventory, "no answer within 22 s"),
            (41, Dependency::Inventory, "connection refused"),
            (42, Dependency::ImageStore, "connection refused"),
            (43, Dependency::Inventory, "connection refused"),
        ] {
            let after = Duration::from_secs(second);
            let now = (start.0.plus(after), start.1 + after);
            let next = WaitNotice::next(
                before.as_ref(),
                &shown,
                &DependencyOutage { what, error: error.into() },
                now,
            );
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
        let outage = DependencyOutage { what: Dependency::Inventory, error: "connection refused".into() };
        let error = DependencyError::Retryable(outage.clone());
        let last = before.as_ref().expect("noted");
        assert_eq!(last.waited_for(&error, start.1 + Duration::from_secs(50)), Duration::from_secs(7));
        let now = (start.0.plus(Duration::from_secs(43)), start.1 + Duration::from_secs(43));
        assert!(
            WaitNotice::next(before.as_ref(), "", &outage, now).is_some(),
            "a record that was cleared says nothing"
        );
    }
}
