//! Lengths of time in settings.

use std::time::Duration;

/// Longest time. A larger number has most likely the wrong unit.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Reads the setting `key`, a length of time in seconds.
///
/// # Errors
/// The length is no number above 0, or more than a day; the error names the setting.
pub fn seconds(key: &str, seconds: f64) -> anyhow::Result<Duration> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() && duration <= LONGEST => Ok(duration),
        Ok(_) | Err(_) => {
            anyhow::bail!("{key}: has to be more than 0 and at most {} seconds", LONGEST.as_secs())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_above_nothing_and_up_to_a_day() {
        for (length, expected) in [
            (0.25, Some(250)),
            (86_400.0, Some(86_400_000)),
            (0.0, None),
            (1e-12, None),
            (86_401.0, None),
            (-1.0, None),
            (f64::NAN, None),
        ] {
            let read = seconds("key", length).ok().map(|duration| duration.as_millis());
            assert_eq!(read, expected, "{length}");
        }
        let error = seconds("power.poll_seconds", 0.0).unwrap_err().to_string();
        assert_eq!(error, "power.poll_seconds: has to be more than 0 and at most 86400 seconds");
    }
}
