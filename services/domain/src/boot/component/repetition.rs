//! Reports of nodes that repeat the record: running nodes repeat their reports.

use std::time::Duration;

use crate::{
    boot::component::{
        Component, ComponentPatch,
        write::{self, KnownToken},
    },
    core::time::Timestamp,
};

/// Change by a report that repeats the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repetition {
    /// No change: the time stamp on record is new enough.
    Nothing,
    /// The old time stamp is replaced.
    TimeStamp,
}

/// Number of parts of the age at which reports are distrusted; a time stamp is accurate to one part.
const PARTS: u32 = 24;

/// Most age of a time stamp before it is rewritten.
const OLDEST: Duration = Duration::from_secs(10 * 60);

/// Returns the most time by which the time stamp on record may be older than the last report of a node, where reports
/// are distrusted at the age of `ttl`. The report of a node that falls silent may be forgotten by that much earlier.
pub fn precision(ttl: Duration) -> Duration {
    (ttl / PARTS).min(OLDEST)
}

/// Returns the change of `stored` by a `report` that a node sends `now`; `None`: the report has news, is more than the
/// report of a boot, or is about a component that is acted on, where contents and time of a report matter.
pub fn repetition(
    stored: &Component,
    report: &ComponentPatch,
    tokens: impl Fn(&str) -> Option<KnownToken>,
    ttl: Duration,
    now: Timestamp,
) -> Option<Repetition> {
    report.actual_state.as_ref().filter(|_| !stored.is_enabled())?;
    let stamped = stored.reported.actual_state.as_ref()?.last_updated;
    let mut written = write::patch(stored, report.clone(), tokens, now);
    let stamp = std::mem::replace(&mut written.reported.actual_state.as_mut()?.last_updated, stamped);
    written.reported.running_report = stored.reported.running_report;
    if written != *stored {
        return None;
    }
    let is_old = now.since(stamped?) >= precision(ttl);
    Some(if stamp == stamped || !is_old { Repetition::Nothing } else { Repetition::TimeStamp })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::component::{
        ActualState, ComponentWish, ReportedBoots,
        view::{artifacts, bare},
    };

    const HOUR: Duration = Duration::from_secs(60 * 60);
    const NOW: Timestamp = Timestamp(1_000_000_000);

    fn tokens(token: &str) -> Option<KnownToken> {
        (token == "known").then(|| KnownToken { boot_artifacts: artifacts("k p i"), number: 1 })
    }

    fn state(boot: &str, token: &str) -> ActualState {
        ActualState {
            boot_artifacts: (!boot.is_empty()).then(|| artifacts(boot)),
            bss_token: (!token.is_empty()).then(|| token.into()),
            last_updated: None,
        }
    }

    fn report(boot: &str, token: &str) -> ComponentPatch {
        ComponentPatch { actual_state: Some(state(boot, token)), ..ComponentPatch::default() }
    }

    /// Returns a component whose report was stored `age` ago.
    fn stored(age: Duration) -> Component {
        let at = Timestamp(NOW.0 - i64::try_from(age.as_millis()).expect("short"));
        let actual = ActualState { last_updated: Some(at), ..state("k p i", "known") };
        Component {
            revision: 7,
            reported: ReportedBoots { actual_state: Some(actual), ..ReportedBoots::default() },
            wish: ComponentWish { enabled: Some(false), ..ComponentWish::default() }.into(),
            ..bare()
        }
    }

    fn judged(stored: &Component, report: &ComponentPatch, ttl: Duration) -> Option<Repetition> {
        repetition(stored, report, tokens, ttl, NOW)
    }

    #[test]
    fn what_is_said_again_changes_nothing_until_its_time_stamp_is_old() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let (same, known) = (report("k p i", "known"), report("", "known"));
        for (age, ttl, expected) in [
            (Duration::ZERO, 4 * HOUR, Repetition::Nothing),
            (minutes(10) - Duration::from_millis(1), 4 * HOUR, Repetition::Nothing),
            (minutes(10), 4 * HOUR, Repetition::TimeStamp),
            (minutes(10), 400 * HOUR, Repetition::TimeStamp),
            (minutes(2), HOUR, Repetition::Nothing),
            (minutes(3), HOUR, Repetition::TimeStamp),
        ] {
            for report in [&same, &known] {
                assert_eq!(judged(&stored(age), report, ttl), Some(expected), "{age:?} of {ttl:?}");
            }
        }
        let ahead = Component {
            reported: ReportedBoots {
                actual_state: stored(HOUR).reported.actual_state,
                ..stored(HOUR).reported
            },
            ..stored(HOUR)
        };
        assert_eq!(repetition(&ahead, &same, tokens, HOUR, Timestamp(5)), Some(Repetition::Nothing));
    }

    #[test]
    fn a_token_that_says_nothing_has_no_time_stamp_to_be_renewed() {
        let mut unknown = stored(9 * HOUR);
        unknown.reported.actual_state.as_mut().expect("there").bss_token = Some("forgotten".into());
        assert_eq!(judged(&unknown, &report("", "forgotten"), HOUR), Some(Repetition::Nothing));
        assert_eq!(judged(&unknown, &report("", "known"), HOUR), None);
    }

    #[test]
    fn whatever_is_new_is_written() {
        let (fresh, same) = (stored(Duration::ZERO), report("k p i", "known"));
        let with = |change: fn(&mut ComponentPatch)| {
            let mut changed = same.clone();
            change(&mut changed);
            changed
        };
        for (what, report) in [
            ("another boot", report("other p i", "")),
            ("another token", report("k p i", "other")),
            ("no report", ComponentPatch::default()),
            ("an error", with(|one| one.error = Some("e".into()))),
            ("a wish", with(|one| one.enabled = Some(true))),
        ] {
            assert_eq!(judged(&fresh, &report, HOUR), None, "{what}");
        }
        let acted_on = Component {
            wish: ComponentWish { enabled: Some(true), ..(*fresh.wish).clone() }.into(),
            ..fresh.clone()
        };
        assert_eq!(judged(&acted_on, &same, HOUR), None, "somebody acts on it");
        let mut unstamped = fresh.clone();
        unstamped.reported.actual_state.as_mut().expect("there").last_updated = None;
        assert_eq!(judged(&unstamped, &same, HOUR), None, "it has no time stamp yet");
        assert_eq!(
            judged(
                &Component { reported: ReportedBoots { actual_state: None, ..fresh.reported }, ..fresh },
                &same,
                HOUR
            ),
            None,
            "the first report"
        );
    }
}
