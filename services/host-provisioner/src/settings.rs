//! Settings, checked.

use std::time::Duration;

use anyhow::Context as _;

/// Parses a length of time in seconds.
pub(crate) fn seconds(key: &str, seconds: f64) -> anyhow::Result<Duration> {
    let duration = Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero());
    duration.with_context(|| format!("{key}: '{seconds}' is no number of seconds above 0"))
}
