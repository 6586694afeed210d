//! Statistics of measured values.

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// Returns the value below which `percent` of `values` lie; 0 if there are none.
pub fn percentile(values: &mut [f64], percent: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * percent / 100.0).ceil() as usize;
    values.get(place.clamp(1, values.len().max(1)) - 1).copied().unwrap_or_default()
}

/// The middle of `values`.
pub fn median(values: &[f64]) -> f64 {
    percentile(&mut values.to_vec(), 50.0)
}

/// Measures the duration of a future.
pub async fn timed<T>(what: impl Future<Output = T>) -> (T, Duration) {
    let began = Instant::now();
    let made = what.await;
    (made, began.elapsed())
}

/// Converts a duration to milliseconds.
pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
