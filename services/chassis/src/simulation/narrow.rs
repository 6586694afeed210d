//! Streams that hold little, so that a client which reads nothing for a while misses changes.

use std::cell::Cell;

thread_local! {
    static NARROW: Cell<bool> = const { Cell::new(false) };
}

/// Makes the streams of this thread narrow, or as wide as usual. To be set before the first service starts.
pub fn narrow_streams(narrow: bool) {
    NARROW.set(narrow);
}

/// Returns whether the streams of this thread are narrow.
pub(crate) fn has_narrow_streams() -> bool {
    NARROW.get()
}
