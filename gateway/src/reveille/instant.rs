//! Times as answers show them.

use chrono::{DateTime, SecondsFormat, Utc};
use prost_types::Timestamp;

/// Returns a time to the millisecond, such as `2026-01-31T12:00:00.000Z`.
pub(super) fn text(time: Timestamp) -> String {
    let time = DateTime::<Utc>::from_timestamp(time.seconds, time.nanos.try_into().unwrap_or_default());
    time.unwrap_or_default().to_rfc3339_opts(SecondsFormat::Millis, true)
}
