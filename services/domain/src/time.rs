//! Points in time and ages. Rules never read a clock: the time comes in.

use std::time::Duration;

use crate::{invalid::Invalid, limits::LONGEST_AGE};

/// A point in time: milliseconds since 1970-01-01 00:00 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The time `duration` later, or the end of time.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long ago `earlier` was; zero when it is yet to come.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
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

    /// How long the age is.
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
    fn time_saturates() {
        assert_eq!(Timestamp(i64::MAX).plus(Duration::from_secs(1)), Timestamp(i64::MAX));
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
    }
}
