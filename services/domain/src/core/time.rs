//! Points in time and ages. Rules never read a clock: the time is an argument.

use std::time::Duration;

use crate::core::{invalid::Invalid, limits::LONGEST_AGE};

/// A point in time: milliseconds since 1970-01-01 00:00 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The time `duration` later, or the end of time.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// The time `duration` earlier, or the beginning of time.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Time since `earlier`; zero when `earlier` is still ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Widest step of a clock that is corrected slowly. A clock that is further off was never set before, or its machine
/// slept.
const FURTHEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Inverse of the largest correction of a clock: it runs slower or faster by one part in this many.
const SLOPE: i64 = 16;

/// Widest difference between two clocks that are right, with the time that a message takes between them.
pub const SKEW: Duration = Duration::from_secs(5);

/// A clock that cannot be set: it starts at the time of the wall clock, advances with a monotonic clock, and approaches
/// the wall clock slowly. So a step of the wall clock changes no age by more than a sixteenth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steady {
    at: Timestamp,
    /// Milliseconds by which the wall clock was ahead at that time.
    lag: i64,
}

impl Steady {
    /// Makes a clock that reads `at` while the wall clock reads `wall`.
    pub fn new(at: Timestamp, wall: Timestamp) -> Self {
        let lag = wall.0.saturating_sub(at.0);
        let furthest = i64::try_from(FURTHEST.as_millis()).unwrap_or(i64::MAX);
        if (-furthest..=furthest).contains(&lag) { Self { at, lag } } else { Self { at: wall, lag: 0 } }
    }

    /// Reads the clock `elapsed` later. The clock never goes back.
    pub fn after(self, elapsed: Duration) -> Timestamp {
        let most = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX) / SLOPE;
        Timestamp(self.at.plus(elapsed).0.saturating_add(self.lag.clamp(-most, most)))
    }
}

/// Beginning of an event by our clock, where the owner of its record reports that the event began at `told` by the
/// owner's clock. `news`: we have just seen the event begin. Where the clocks disagree, an event in the future began
/// now at the latest, and an event that we saw begin began now.
pub fn began_by_our_clock(told: Timestamp, news: bool, now: Timestamp) -> Timestamp {
    let ahead = told > now.plus(SKEW);
    let behind = news && now.since(told) > SKEW;
    if ahead || behind { now } else { told }
}

/// An age such as `15m`, `4h`, `7d` or `2w`, or `0` (BOS reference 2.3, "AgeString").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age(Duration);

impl Age {
    /// Reads an age: `0`, or digits without a leading zero and one of `m`, `h`, `d`, `w` in either case.
    ///
    /// # Errors
    /// Names `field` when the text is not an age.
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        let wrong = || Invalid::new(field, format!("'{text}' is not an age such as 15m, 4h, 7d or 2w"));
        if text == "0" {
            return Ok(Self(Duration::ZERO));
        }
        if text.len() > LONGEST_AGE || !text.is_ascii() {
            return Err(wrong());
        }
        let (digits, unit) = text.split_at(text.len().saturating_sub(1));
        let minutes = match unit {
            "m" | "M" => 1,
            "h" | "H" => 60,
            "d" | "D" => 24 * 60,
            "w" | "W" => 7 * 24 * 60,
            _ => return Err(wrong()),
        };
        let leading_zero = digits.starts_with('0') && digits != "0";
        if leading_zero || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong());
        }
        let count: u64 = digits.parse().map_err(|_| wrong())?;
        Ok(Self(Duration::from_secs(count * minutes * 60)))
    }

    /// Length of the age.
    pub fn duration(self) -> Duration {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_digits_and_a_unit() {
        for (text, minutes) in
            [("0", 0), ("0m", 0), ("0W", 0), ("1m", 1), ("5h", 300), ("2w", 20160), ("10D", 14400)]
        {
            assert_eq!(Age::parse("age", text).map(|a| a.duration().as_secs() / 60), Ok(minutes), "{text}");
        }
        for bad in ["", "1", "01d", "1s", "1 d", "d", "1dd", "99999999d", "+1d", "ä"] {
            assert!(Age::parse("age", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_steady_clock_nears_the_wall_clock_slowly() {
        let (hour, day) = (3_600_000, 24 * 3_600_000);
        let rows = [
            ("it agrees", 0, 16_000, 16_000),
            ("the wall clock is a little ahead", 100, 16_000, 16_100),
            ("the wall clock was set an hour forward", hour, 16_000, 17_000),
            ("the wall clock was set an hour back", -hour, 16_000, 15_000),
            ("it has met the wall clock", hour, 16 * hour, 17 * hour),
            ("it was never set before", 2 * day, 16_000, 2 * day + 16_000),
            ("it is from far in the future", -2 * day, 16_000, -2 * day + 16_000),
            ("no time has passed", hour, 0, 0),
        ];
        for (what, wall, elapsed, stands) in rows {
            let clock = Steady::new(Timestamp(0), Timestamp(wall));
            assert_eq!(clock.after(Duration::from_millis(elapsed as u64)), Timestamp(stands), "{what}");
        }
    }

    #[test]
    fn stamps_of_clocks_that_do_not_agree_count_from_now() {
        let (now, hour) = (10_000_000, 3_600_000);
        let rows = [
            ("just begun", now, true, now),
            ("by a clock that is a little behind", now - 5_000, true, now - 5_000),
            ("by a clock that is a little ahead", now + 5_000, true, now + 5_000),
            ("by a clock that is an hour ahead", now + hour, true, now),
            ("by a clock that is an hour behind", now - hour, true, now),
            ("begun before we looked", now - hour, false, now - hour),
            ("in the future when we first looked", now + hour, false, now),
        ];
        for (what, told, news, began) in rows {
            assert_eq!(began_by_our_clock(Timestamp(told), news, Timestamp(now)), Timestamp(began), "{what}");
        }
    }

    #[test]
    fn time_saturates() {
        assert_eq!(Timestamp(i64::MAX).plus(Duration::from_secs(1)), Timestamp(i64::MAX));
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
    }
}
