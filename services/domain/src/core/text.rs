//! Texts that many records have in common.

use std::sync::Arc;

/// Makes a text to be shared. An empty one takes no memory.
pub fn text(text: &str) -> Arc<str> {
    if text.is_empty() { Arc::default() } else { text.into() }
}
