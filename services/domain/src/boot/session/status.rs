//! The extended status of a session: the progress of its members (BOS reference 3.8).

use std::collections::BTreeMap;

use crate::{
    boot::{
        bos::compatibility::Compatibility,
        component::{
            Component, Phase,
            status::{ComponentProgress, ComponentStatus, computed_status},
        },
        session::{
            Progress, Session,
            completion::{owns, stages},
        },
    },
    core::{bos_time, id::ComponentId, time::Timestamp},
};

/// Most ids that are listed per error.
const LISTED: usize = 10;

/// Progress of the members of a session. Percentages are of all managed components, with two decimals, and zero when
/// there are none; members on hold count in the total only, so they need not add up to 100.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionStatus {
    /// Progress of the session.
    pub progress: Progress,
    /// Number of components that the session owns, or whose staged state is of the session.
    pub managed_components_count: u32,
    /// Percentage that is owned and stable.
    pub percent_successful: f64,
    /// Percentage that is owned and failed.
    pub percent_failed: f64,
    /// Percentage that waits for the session to be applied.
    pub percent_staged: f64,
    /// Percentage that is owned, and stable or failed.
    pub percent_complete: f64,
    /// Percentage that is owned, enabled, not on hold and powering on.
    pub percent_powering_on: f64,
    /// Percentage that is owned, enabled, not on hold and powering off.
    pub percent_powering_off: f64,
    /// Percentage that is owned, enabled, not on hold and being configured.
    pub percent_configuring: f64,
    /// Errors of owned components, sorted by text.
    pub error_summary: Vec<ErrorSummary>,
    /// Start of the session as in its record.
    pub start_time: String,
    /// End of the session as in its record.
    pub end_time: Option<String>,
    /// Duration so far or in total, such as `0:02:17`.
    pub duration: String,
}

/// Error with the components that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorSummary {
    /// Text of the error.
    pub error: String,
    /// Number of components with the error.
    pub count: u32,
    /// First ten of their ids in order, comma-separated; `...` follows when there are more.
    pub list: String,
}

/// Returns the status of `session` at `now`, from the `components` that the caller may see: all of them, or those of
/// one tenant. Components unrelated to the session are ignored.
///
/// A component that is both owned and still staged by the session counts once, as owned; BOS counts it twice (BOS
/// reference 12, BUG-15).
pub fn session_status<'a>(
    session: &Session,
    components: impl IntoIterator<Item = &'a Component>,
    compatibility: Compatibility,
    now: Timestamp,
) -> SessionStatus {
    let mut tally = Tally::default();
    for component in components {
        let owned = owns(session, component);
        if owned {
            tally.count_owned(component);
        }
        if stages(session, component) && (!owned || compatibility.strict_bos) {
            tally.staged += 1;
        }
    }
    let total = tally.owned + tally.staged;
    SessionStatus {
        progress: session.progress,
        managed_components_count: total,
        percent_successful: percent(tally.stable, total),
        percent_failed: percent(tally.failed, total),
        percent_staged: percent(tally.staged, total),
        percent_complete: percent(tally.stable + tally.failed, total),
        percent_powering_on: percent(tally.powering_on, total),
        percent_powering_off: percent(tally.powering_off, total),
        percent_configuring: percent(tally.configuring, total),
        error_summary: tally.errors.into_iter().map(|(error, ids)| summary(error, ids)).collect(),
        start_time: session.start_time.clone(),
        end_time: session.end_time.clone(),
        duration: duration(session, now),
    }
}

#[derive(Default)]
struct Tally<'a> {
    owned: u32,
    staged: u32,
    stable: u32,
    failed: u32,
    powering_on: u32,
    powering_off: u32,
    configuring: u32,
    errors: BTreeMap<&'a str, Vec<&'a ComponentId>>,
}

impl<'a> Tally<'a> {
    fn count_owned(&mut self, component: &'a Component) {
        self.owned += 1;
        let status = computed_status(component);
        match status {
            ComponentStatus::Progress(ComponentProgress::Stable) => self.stable += 1,
            ComponentStatus::Failed => self.failed += 1,
            ComponentStatus::OnHold | ComponentStatus::Progress(_) | ComponentStatus::Overridden(_) => {}
        }
        if component.is_enabled() && status != ComponentStatus::OnHold {
            match component.phase() {
                Phase::None => {}
                Phase::PoweringOn => self.powering_on += 1,
                Phase::PoweringOff => self.powering_off += 1,
                Phase::Configuring => self.configuring += 1,
            }
        }
        if !component.error_text().is_empty() {
            self.errors.entry(component.error_text()).or_default().push(&component.id);
        }
    }
}

/// Returns a percentage with two decimals. Half a hundredth is rounded to the even neighbour, judged on the binary
/// value.
fn percent(part: u32, whole: u32) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    let exact = f64::from(part) / f64::from(whole) * 100.0;
    format!("{exact:.2}").parse().expect("a number that was just written can be read")
}

fn summary(error: &str, mut ids: Vec<&ComponentId>) -> ErrorSummary {
    ids.sort_unstable();
    let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    let listed: Vec<_> = ids.iter().take(LISTED).map(|id| id.as_str()).collect();
    let more = if ids.len() > LISTED { "..." } else { "" };
    ErrorSummary { error: error.to_owned(), count, list: listed.join(",") + more }
}

/// Returns the time from start to end in the record. While the session lasts, or when its end cannot be read, the end
/// is now.
fn duration(session: &Session, now: Timestamp) -> String {
    let end = session.end_time.as_deref().and_then(bos_time::read).unwrap_or(now);
    bos_time::duration(end.0.saturating_sub(session.started_at().0))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;

    use super::*;
    use crate::boot::{
        component::Status,
        session::{
            SessionEnd, SessionResult, complete,
            completion::tests::component,
            run,
            tests::{NOW, session},
        },
    };

    const STRICT: Compatibility = Compatibility { strict_bos: true };

    fn owned(id: &str, enabled: bool, phase: Phase, status_override: &str, error: &str) -> Component {
        component(id, enabled, "s", "").with(|one| {
            one.evaluation.status =
                Some(Status { phase: Some(phase), status_override: Some(status_override.into()) });
            one.evaluation.error = Some(error.into());
        })
    }

    #[test]
    fn every_member_counts_where_it_stands() {
        let components = [
            owned("n00", false, Phase::None, "", ""),
            owned("n01", true, Phase::None, "", "stable, and yet"),
            owned("n02", false, Phase::None, "failed", "broken"),
            owned("n03", false, Phase::PoweringOn, "failed", "broken"),
            owned("n04", true, Phase::PoweringOn, "", ""),
            owned("n05", true, Phase::PoweringOff, "failed", ""),
            owned("n06", true, Phase::Configuring, "", ""),
            owned("n07", false, Phase::Configuring, "", ""),
            owned("n08", true, Phase::PoweringOn, "on_hold", ""),
            owned("n09", true, Phase::PoweringOff, "odd", ""),
            component("n10", false, "", "s"),
            component("n11", true, "other", "").with(|one| one.evaluation.error = Some("not ours".into())),
            component("n12", true, "s", "s"),
        ];
        let running = run(session("s"), vec![], 1);
        let now = NOW.plus(Duration::from_secs(90));
        expect![[r#"
            SessionStatus {
                progress: Running,
                managed_components_count: 12,
                percent_successful: 25.0,
                percent_failed: 25.0,
                percent_staged: 8.33,
                percent_complete: 50.0,
                percent_powering_on: 8.33,
                percent_powering_off: 16.67,
                percent_configuring: 8.33,
                error_summary: [
                    ErrorSummary {
                        error: "broken",
                        count: 2,
                        list: "n02,n03",
                    },
                    ErrorSummary {
                        error: "stable, and yet",
                        count: 1,
                        list: "n01",
                    },
                ],
                start_time: "2024-11-20T16:10:12",
                end_time: None,
                duration: "0:01:30.345000",
            }
        "#]]
        .assert_debug_eq(&session_status(&running, &components, Compatibility::default(), now));
        let strict = session_status(
            &complete(running, now, SessionEnd { error: None, result: SessionResult::Partial }),
            &components,
            STRICT,
            now.plus(Duration::from_secs(60)),
        );
        expect![[r#"
            SessionStatus {
                progress: Complete,
                managed_components_count: 13,
                percent_successful: 23.08,
                percent_failed: 23.08,
                percent_staged: 15.38,
                percent_complete: 46.15,
                percent_powering_on: 7.69,
                percent_powering_off: 15.38,
                percent_configuring: 7.69,
                error_summary: [
                    ErrorSummary {
                        error: "broken",
                        count: 2,
                        list: "n02,n03",
                    },
                    ErrorSummary {
                        error: "stable, and yet",
                        count: 1,
                        list: "n01",
                    },
                ],
                start_time: "2024-11-20T16:10:12",
                end_time: Some(
                    "2024-11-20T16:11:42",
                ),
                duration: "0:01:30",
            }
        "#]]
        .assert_debug_eq(&strict);
    }

    #[test]
    fn a_session_without_components_has_zeros() {
        let status = session_status(&session("s"), &[], Compatibility::default(), NOW);
        assert_eq!((status.managed_components_count, status.percent_complete), (0, 0.0));
        assert_eq!(status.duration, "0:00:00.345000");
    }

    #[test]
    fn applied_members_count_once_unless_strict() {
        let both = [component("n0", false, "s", "s"), component("n1", false, "s", "s")];
        for (compatibility, total, successful, staged) in
            [(Compatibility::default(), 2, 100.0, 0.0), (STRICT, 4, 50.0, 50.0)]
        {
            let status = session_status(&session("s"), &both, compatibility, NOW);
            assert_eq!(
                (status.managed_components_count, status.percent_successful, status.percent_staged),
                (total, successful, staged)
            );
        }
    }

    #[test]
    fn ten_ids_are_listed_per_error() {
        let failing = |count: u32| -> Vec<_> {
            (0..count).rev().map(|n| owned(&format!("n{n:02}"), true, Phase::None, "", "e")).collect()
        };
        for (count, list) in [
            (2, "n00,n01"),
            (10, "n00,n01,n02,n03,n04,n05,n06,n07,n08,n09"),
            (11, "n00,n01,n02,n03,n04,n05,n06,n07,n08,n09..."),
        ] {
            let status = session_status(&session("s"), &failing(count), Compatibility::default(), NOW);
            let expected = ErrorSummary { error: "e".to_owned(), count, list: list.to_owned() };
            assert_eq!(status.error_summary, [expected]);
        }
    }

    #[test]
    fn halves_are_rounded_to_even() {
        for (part, whole, expected) in [
            (1, 3, 33.33),
            (2, 3, 66.67),
            (1, 32, 3.12),
            (3, 32, 9.38),
            (5, 32, 15.62),
            (7, 7, 100.0),
            (1, 20_000, 0.01),
            (0, 5, 0.0),
            (0, 0, 0.0),
        ] {
            assert_eq!(percent(part, whole), expected, "{part} of {whole}");
        }
    }

    #[test]
    fn durations_follow_the_texts_of_the_record() {
        for (start, end, expected) in [
            ("2024-11-20T16:00:00", Some("2024-11-20T16:02:17"), "0:02:17"),
            ("2024-11-18T14:12:02", Some("2024-11-20T16:10:12"), "2 days, 1:58:10"),
            ("2024-11-20T16:10:09", None, "0:00:03.345000"),
            ("2024-11-20T16:10:12", Some("2024-11-20T16:10:11"), "-1 day, 23:59:59"),
            ("once", Some("never"), "0:00:00"),
        ] {
            let session =
                Session { start_time: start.to_owned(), end_time: end.map(str::to_owned), ..session("s") };
            assert_eq!(duration(&session, NOW), expected, "{start} {end:?}");
        }
    }
}
