//! Times as BOS writes them.

use std::{borrow::Cow, fmt};

use chrono::{DateTime, Datelike, Timelike, Utc};
use prost_types::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer, ser::Error};

/// A point in time, written `YYYY-MM-DDTHH:MM:SS` in UTC without a fraction or zone (BOS reference 3.9).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BosTime(DateTime<Utc>);

impl From<Timestamp> for BosTime {
    fn from(time: Timestamp) -> Self {
        let time = DateTime::from_timestamp(time.seconds, 0);
        // Times beyond years of four digits cannot be written; the epoch is as good as any other answer.
        Self(time.filter(|time| (0..=9999).contains(&time.year())).unwrap_or_default())
    }
}

impl BosTime {
    /// The text, written digit by digit: formatters take a noticeable part of rendering a long list.
    fn ascii(self) -> [u8; 19] {
        let Self(time) = self;
        let mut text = *b"0000-00-00T00:00:00";
        let mut write = |end: usize, number: u32| {
            let mut rest = number;
            for digit in text[..end].iter_mut().rev().take_while(|place| place.is_ascii_digit()) {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        };
        write(4, time.year().cast_unsigned());
        write(7, time.month());
        write(10, time.day());
        write(13, time.hour());
        write(16, time.minute());
        write(19, time.second());
        text
    }
}

impl fmt::Display for BosTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&String::from_utf8_lossy(&self.ascii()))
    }
}

impl Serialize for BosTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.ascii();
        serializer.serialize_str(std::str::from_utf8(&text).map_err(S::Error::custom)?)
    }
}

impl JsonSchema for BosTime {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Stamp".into()
    }

    /// Not a `date-time`, which would have a zone.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_four_digits_for_the_year_and_no_fraction() {
        for (seconds, nanos, expected) in [
            (0, 0, "1970-01-01T00:00:00"),
            (1_772_600_767, 890_000_000, "2026-03-04T05:06:07"),
            (-62_167_219_200, 0, "0000-01-01T00:00:00"),
            (253_402_300_799, 0, "9999-12-31T23:59:59"),
            (253_402_300_800, 0, "1970-01-01T00:00:00"),
            (i64::MIN, 0, "1970-01-01T00:00:00"),
        ] {
            let stamp = BosTime::from(Timestamp { seconds, nanos });
            assert_eq!(serde_json::to_value(stamp).unwrap(), expected, "{seconds}");
        }
    }
}
