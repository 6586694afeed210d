//! Filling of the places of a text with values.

use crate::core::{bos_time, time::Timestamp};

/// Longest words of a peer in an explanation, in characters.
const LONGEST_WORDS: usize = 400;

/// Returns `text` with its places, such as `{since}`, filled from `values`. Unknown places stay as they are.
pub(crate) fn fill(text: &str, values: &[(&str, String)]) -> String {
    // Values are filled in from the left, so a place within a value stays as it is.
    let mut filled = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        filled.push_str(&rest[..start]);
        rest = &rest[start..];
        match values.iter().find(|(place, _)| rest.starts_with(place)) {
            Some((place, value)) => {
                filled.push_str(value);
                rest = &rest[place.len()..];
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled + rest
}

/// Returns whether a shell and an address take `id` as it is.
pub(crate) fn is_plain(id: &str) -> bool {
    id.chars().all(|one| one.is_ascii_alphanumeric() || "-._:".contains(one))
}

/// Returns the words of a peer for the end of a sentence; nothing where there are none.
pub(crate) fn words_text(words: &str) -> String {
    let words: String = words.chars().take(LONGEST_WORDS).collect();
    if words.is_empty() { words } else { format!(": {words}") }
}

/// Returns a time as sentences show it.
pub(crate) fn shown(time: Timestamp) -> String {
    bos_time::text(time) + "Z"
}

/// Returns ` since TIME`, or nothing where the time is unknown.
pub(crate) fn since_text(since: Option<Timestamp>) -> String {
    since.map(|since| format!(" since {}", shown(since))).unwrap_or_default()
}

/// Returns `, seen at TIME`, or nothing where the time is unknown.
pub(crate) fn seen_text(at: Option<Timestamp>) -> String {
    at.map(|at| format!(", seen at {}", shown(at))).unwrap_or_default()
}
