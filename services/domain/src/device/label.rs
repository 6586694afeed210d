//! Labels: which keys and values they may have.

use crate::{
    core::invalid::Invalid,
    device::record::{DeviceLabels, name::check_subdomain},
};

/// Longest value of a label, and longest name in its key, in bytes.
const LONGEST_PART: usize = 63;

/// Checks labels.
///
/// # Errors
/// Names the label that may not be.
pub fn check_labels(labels: &DeviceLabels) -> Result<(), Invalid> {
    labels.iter().try_for_each(|(key, value)| {
        check_key("metadata.labels", key)?;
        check_value(&format!("metadata.labels[{key}]"), value)
    })
}

/// Checks a key: a name, after a DNS subdomain and a slash or alone.
pub(crate) fn check_key(field: &str, key: &str) -> Result<(), Invalid> {
    let name = match key.split_once('/') {
        Some((domain, name)) => {
            check_subdomain(field, domain)?;
            name
        }
        None => key,
    };
    if name.is_empty() || !is_part(name) {
        return Err(refusal(field, key, "a key of a label"));
    }
    Ok(())
}

/// Checks a value, which may be empty.
pub(crate) fn check_value(field: &str, value: &str) -> Result<(), Invalid> {
    if value.is_empty() || is_part(value) { Ok(()) } else { Err(refusal(field, value, "a value of a label")) }
}

fn is_part(text: &str) -> bool {
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= LONGEST_PART
        && is_edge(bytes.first())
        && is_edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn refusal(field: &str, text: &str, noun: &str) -> Invalid {
    let rule = "letters, digits and -_., with a letter or a digit at both ends, at most 63";
    Invalid::new(field, format!("'{text}' is not {noun}: {rule}"))
}
