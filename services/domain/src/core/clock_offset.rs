//! Offset of the clock of another system from ours, as far as its answers show it.

use std::time::Duration;

use crate::core::time::Timestamp;

/// Widest measurement that counts. The offset of a system that takes longer than this to answer stays unknown.
const WIDEST: i64 = 10_000;

/// Inverse of the rate at which two clocks may drift apart: a process corrects a step of its clock that slowly.
const DRIFT: i64 = 16;

/// Margin in milliseconds between a call and its record on either side, beyond the bounds of the measurement.
const SLACK: i64 = 100;

/// An offset that lies between two bounds, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    least: i64,
    most: i64,
    at: Timestamp,
}

impl ClockOffset {
    /// Measures the offset by an answer with the time `theirs`, which is cut to `resolution`. Our clock read `asked_at`
    /// when the request left and `answered_at` when the answer arrived. `None`: the answer took too long for a
    /// measurement.
    #[must_use]
    pub fn measure(
        asked_at: Timestamp,
        answered_at: Timestamp,
        theirs: Timestamp,
        resolution: Duration,
    ) -> Option<Self> {
        let least = theirs.0.saturating_sub(answered_at.0);
        let most = theirs.plus(resolution).0.saturating_sub(asked_at.0);
        let offset = Self { least, most, at: answered_at };
        (least <= most && offset.width() <= WIDEST).then_some(offset)
    }

    /// The offset by this measurement and a newer one. Where they contradict each other, a clock was set in between, and
    /// the newer one holds.
    #[must_use]
    pub fn refine(self, newer: Self) -> Self {
        let drift = newer.at.0.saturating_sub(self.at.0).abs() / DRIFT;
        let least = self.least.saturating_sub(drift).max(newer.least);
        let most = self.most.saturating_add(drift).min(newer.most);
        if least <= most { Self { least, most, at: newer.at } } else { newer }
    }

    /// Returns the least difference between the clocks, whichever is ahead.
    pub fn least_difference(self) -> Duration {
        let apart = self.least.max(self.most.saturating_neg()).max(0);
        Duration::from_millis(u64::try_from(apart).unwrap_or_default())
    }

    /// Returns whether the moment `theirs` of the other clock, cut to `resolution`, may lie between `from` and `until`
    /// of our clock.
    #[must_use]
    pub fn may_be_within(
        self,
        theirs: Timestamp,
        resolution: Duration,
        from: Timestamp,
        until: Timestamp,
    ) -> bool {
        let latest = theirs.plus(resolution).0.saturating_sub(self.least);
        let earliest = theirs.0.saturating_sub(self.most);
        latest >= from.0.saturating_sub(SLACK) && earliest <= until.0.saturating_add(SLACK)
    }

    /// Returns whether the moment `theirs` of the other clock lies after `ours` of our clock for every offset within
    /// the bounds.
    #[must_use]
    pub fn is_after(self, theirs: Timestamp, ours: Timestamp) -> bool {
        theirs.0.saturating_sub(self.most) >= ours.0.saturating_add(SLACK)
    }

    fn width(self) -> i64 {
        self.most.saturating_sub(self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn offset(least: i64, most: i64, at: i64) -> ClockOffset {
        ClockOffset { least, most, at: Timestamp(at) }
    }

    #[test]
    fn an_answer_bounds_the_offset_by_its_own_duration() {
        let rows = [
            ("at once, on the second", (5_000, 5_000, 5_000), Some(offset(0, 1_000, 5_000))),
            ("it took a while", (5_000, 5_300, 5_000), Some(offset(-300, 1_000, 5_300))),
            ("an hour ahead", (5_000, 5_010, 3_605_000), Some(offset(3_599_990, 3_601_000, 5_010))),
            ("it took too long", (5_000, 14_001, 9_000), None),
            ("our clock was set back meanwhile", (9_000, 5_000, 5_000), None),
        ];
        for (name, (asked, answered, theirs), expected) in rows {
            let [asked, answered, theirs] = [asked, answered, theirs].map(Timestamp);
            assert_eq!(ClockOffset::measure(asked, answered, theirs, SECOND), expected, "{name}");
        }
    }

    #[test]
    fn measurements_narrow_the_offset_until_a_clock_is_set() {
        let known = offset(0, 1_000, 10_000);
        let rows = [
            ("an overlap", offset(700, 1_700, 10_000), offset(700, 1_000, 10_000)),
            ("an overlap with drift", offset(700, 1_700, 26_000), offset(700, 1_700, 26_000)),
            ("nothing new", offset(-500, 2_000, 10_160), offset(-10, 1_010, 10_160)),
            ("another time", offset(60_000, 61_000, 10_160), offset(60_000, 61_000, 10_160)),
        ];
        for (name, newer, expected) in rows {
            assert_eq!(known.refine(newer), expected, "{name}");
        }
    }

    #[test]
    fn a_moment_is_after_another_only_when_that_is_sure() {
        let ahead = offset(3_600_000, 3_600_400, 0);
        for (theirs, expected) in
            [(3_610_000, false), (3_610_499, false), (3_610_500, true), (i64::MIN, false)]
        {
            assert_eq!(ahead.is_after(Timestamp(theirs), Timestamp(10_000)), expected, "{theirs}");
        }
    }

    #[test]
    fn a_moment_is_within_a_time_if_it_may_be() {
        let ahead = offset(3_600_000, 3_600_400, 0);
        let (from, until) = (Timestamp(10_000), Timestamp(12_000));
        let exact = Duration::ZERO;
        for (theirs, resolution, expected) in [
            (3_609_899, exact, false),
            (3_609_900, exact, true),
            (3_611_000, exact, true),
            (3_612_500, exact, true),
            (3_612_501, exact, false),
            (3_608_899, SECOND, false),
            (3_609_000, SECOND, true),
            (3_612_501, SECOND, false),
            (11_000, SECOND, false),
            (i64::MAX, SECOND, false),
            (i64::MIN, SECOND, false),
        ] {
            let may_be = ahead.may_be_within(Timestamp(theirs), resolution, from, until);
            assert_eq!(may_be, expected, "{theirs} {resolution:?}");
        }
    }
}
