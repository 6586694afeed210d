//! Streams that hold little, so that a client which reads nothing for a while misses changes.

use std::cell::Cell;

thread_local! {
    static NARROW: Cell<bool> = const { Cell::new(false) };
}

/// Makes the streams of this thread narrow, or as wide as usual. To be set before the first service starts.
pub fn narrow_streams(narrow: bool) {
    NARROW.set(narrow);
}

/// Returns the size of a buffer that usually holds `usual` bytes or messages. In narrow streams it holds a 256th of that, so
/// that a watch which nobody reads falls behind within seconds.
pub(crate) fn buffer_size(usual: usize) -> usize {
    if NARROW.get() { usual / 256 } else { usual }
}
