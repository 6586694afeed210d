//! Points in time.

use domain::core::time::Timestamp;

/// Converts a time from the wire; parts of a millisecond are dropped.
pub fn from_wire(time: prost_types::Timestamp) -> Timestamp {
    Timestamp(time.seconds.saturating_mul(1000).saturating_add(i64::from(time.nanos) / 1_000_000))
}

/// Converts a time for the wire.
pub fn to_wire(time: Timestamp) -> prost_types::Timestamp {
    let nanos = i32::try_from(time.0.rem_euclid(1000) * 1_000_000).unwrap_or_default();
    prost_types::Timestamp { seconds: time.0.div_euclid(1000), nanos }
}
