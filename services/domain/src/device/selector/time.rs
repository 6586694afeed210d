//! Times of RFC 3339.

use std::time::Duration;

use crate::core::{bos_time, time::Timestamp};

/// Reads a time with its zone. `None`: the text is no such time.
pub(crate) fn read(text: &str) -> Option<Timestamp> {
    let local = bos_time::read(text).filter(|_| !text.contains(char::is_whitespace))?;
    if text.ends_with(['Z', 'z']) {
        return Some(local);
    }
    let (at, sign) = text.char_indices().rfind(|(_, character)| "+-".contains(*character))?;
    let offset = read_offset(&text[at + 1..])?;
    let is_after_clock = text[..at].contains(':');
    is_after_clock.then(|| if sign == '+' { local.minus(offset) } else { local.plus(offset) })
}

fn read_offset(text: &str) -> Option<Duration> {
    let (hours, minutes) = text.split_once(':')?;
    let is_number = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(hours) || !is_number(minutes) {
        return None;
    }
    let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then(|| Duration::from_secs((hours * 60 + minutes) * 60))
}
