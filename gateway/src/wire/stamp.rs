//! Times as BOS writes them.

use std::{borrow::Cow, fmt};

use chrono::{DateTime, Datelike, Timelike, Utc};
use prost_types::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// A point in time, written `YYYY-MM-DDTHH:MM:SS` in UTC without a fraction or zone (BOS reference 3.9).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stamp(DateTime<Utc>);

impl From<Timestamp> for Stamp {
    fn from(time: Timestamp) -> Self {
        // Times beyond the calendar cannot be written; the epoch is as good as any other answer.
        Self(DateTime::from_timestamp(time.seconds, 0).unwrap_or_default())
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        // By hand, because a general formatter takes a noticeable part of rendering a long list.
        let Self(time) = self;
        write!(text, "{:04}-{:02}-{:02}T", time.year(), time.month(), time.day())?;
        write!(text, "{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())
    }
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Stamp {
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
