//! Words of records, and entries that are a word with a text.

use domain::{core::invalid::Invalid, device::record::status::StatusEntry};
use proto::device as wire;

use crate::kinds::Interner;

/// Reads a word.
///
/// # Errors
/// The word is not known.
pub(super) fn read<T>(field: &str, word: &str, from_word: fn(&str) -> Option<T>) -> Result<T, Invalid> {
    from_word(word).ok_or_else(|| Invalid::new(field, format!("'{word}' is not a word of the contract")))
}

/// Reads a word. An empty one is the default.
///
/// # Errors
/// The word is not known.
pub(super) fn read_or_default<T: Default>(
    field: &str,
    word: &str,
    from_word: fn(&str) -> Option<T>,
) -> Result<T, Invalid> {
    if word.is_empty() { Ok(T::default()) } else { read(field, word, from_word) }
}

/// Reads a status with its text. `field` is that of the entry.
///
/// # Errors
/// The status is not known.
pub(super) fn read_entry<S: Default>(
    field: &str,
    entry: Option<wire::StatusEntry>,
    from_word: fn(&str) -> Option<S>,
    texts: &mut Interner,
) -> Result<StatusEntry<S>, Invalid> {
    let entry = entry.unwrap_or_default();
    let status =
        read_or_default("status", &entry.status, from_word).map_err(|invalid| invalid.within(field))?;
    Ok(StatusEntry::new(status, texts.share(&entry.info)))
}

/// Returns the message of a status with its text.
pub(super) fn entry<S: Copy>(entry: &StatusEntry<S>, word: fn(S) -> &'static str) -> wire::StatusEntry {
    wire::StatusEntry { status: word(entry.status).to_owned(), info: entry.info.to_string() }
}
