//! Selection of sessions for a list or a deletion (BOS reference 2.9.2).

use super::{Progress, Session};
use crate::core::{
    bos_time,
    id::Tenant,
    invalid::Invalid,
    time::{Age, Timestamp},
};

/// Conditions that all must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Tenant of the sessions; `None`: every tenant and none.
    pub tenant: Option<Tenant>,
    /// Latest start, this time included.
    pub latest_start: Option<Timestamp>,
    /// Earliest start, this time included.
    pub earliest_start: Option<Timestamp>,
    /// Progress of the session.
    pub progress: Option<Progress>,
}

impl SessionFilter {
    /// Reads a filter of a request at `now`: sessions at least `min_age` and at most `max_age` old, empty for any.
    ///
    /// # Errors
    /// Names the age that is invalid, or that reaches back to before the first date there is.
    pub fn parse(
        tenant: Option<Tenant>,
        min_age: &str,
        max_age: &str,
        progress: Option<Progress>,
        now: Timestamp,
    ) -> Result<Self, Invalid> {
        let latest_start = cut_off("min_age", min_age, now)?;
        let earliest_start = cut_off("max_age", max_age, now)?;
        Ok(Self { tenant, latest_start, earliest_start, progress })
    }

    /// Returns whether `session` meets every condition.
    pub fn matches(&self, session: &Session) -> bool {
        let start = session.started_at();
        self.tenant.as_ref().is_none_or(|tenant| *tenant == session.tenant)
            && self.progress.is_none_or(|progress| progress == session.progress)
            && self.latest_start.is_none_or(|latest| start <= latest)
            && self.earliest_start.is_none_or(|earliest| start >= earliest)
    }
}

fn cut_off(field: &str, age: &str, now: Timestamp) -> Result<Option<Timestamp>, Invalid> {
    if age.is_empty() {
        return Ok(None);
    }
    let span = i64::try_from(Age::parse(field, age)?.duration().as_millis()).unwrap_or(i64::MAX);
    let start = Timestamp(now.0.saturating_sub(span));
    if start < bos_time::EARLIEST {
        return Err(Invalid::new(field, format!("'{age}' reaches back to before the year 1")));
    }
    Ok(Some(start))
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{NOW, session},
        *,
    };
    use crate::core::bos_time;

    fn started(minutes_ago: i64) -> Session {
        Session { start_time: bos_time::text(Timestamp(NOW.0 - minutes_ago * 60_000)), ..session("s") }
    }

    #[test]
    fn ages_choose_by_start() {
        for (min_age, max_age, minutes_ago, expected) in [
            ("", "", 5, true),
            ("5m", "", 4, false),
            ("5m", "", 5, true),
            ("5m", "", 6, true),
            // Start times lose their fraction of a second, so a session is always a bit older.
            ("", "5m", 4, true),
            ("", "5m", 5, false),
            ("", "5m", 6, false),
            ("1m", "1h", 30, true),
            ("1m", "1h", 90, false),
            ("0", "", 0, true),
            ("0h", "", 0, true),
            ("", "0", 0, false),
        ] {
            let filter = SessionFilter::parse(None, min_age, max_age, None, NOW).expect("valid");
            assert_eq!(filter.matches(&started(minutes_ago)), expected, "{min_age} {max_age} {minutes_ago}");
        }
    }

    #[test]
    fn conditions_combine() {
        let tenant = |name: &str| Tenant::parse(name).expect("valid");
        let owned = Session { tenant: tenant("a"), progress: Progress::Running, ..session("s") };
        for (of_tenant, progress, expected) in [
            (None, None, true),
            (Some("a"), None, true),
            (Some("b"), None, false),
            (Some(""), None, false),
            (Some("a"), Some(Progress::Running), true),
            (None, Some(Progress::Complete), false),
        ] {
            let filter =
                SessionFilter { tenant: of_tenant.map(tenant), progress, ..SessionFilter::default() };
            assert_eq!(filter.matches(&owned), expected, "{filter:?}");
        }
    }

    #[test]
    fn ages_that_are_no_date_are_refused() {
        for (min_age, max_age, field) in
            [("1x", "", "min_age"), ("", "9999999w", "max_age"), ("9999999d", "", "min_age")]
        {
            let refusal = SessionFilter::parse(None, min_age, max_age, None, NOW).expect_err("no date");
            assert_eq!(refusal.field, field);
        }
    }
}
