//! Trouble of a peer as a whole, whichever operation meets it.

use chassis::convert::time::now;
use domain::time::Timestamp;
use parking_lot::Mutex;

/// Kinds of trouble that are logged in one outage, of all operations together. Words may name what each call was about.
const MOST_KINDS: usize = 32;

/// Since when a peer is in trouble, and which kinds of trouble were logged. It begins with the first call that fails and ends
/// with the first that does not.
#[derive(Default)]
pub(crate) struct Outage {
    state: Mutex<OutageState>,
}

#[derive(Default)]
struct OutageState {
    failing_since: Option<Timestamp>,
    denied_since: Option<Timestamp>,
    logged: Vec<String>,
}

impl Outage {
    /// When the first call failed since the last one that did not.
    pub(crate) fn failing_since(&self) -> Timestamp {
        *self.state.lock().failing_since.get_or_insert_with(now)
    }

    /// When the first call was denied since the last one that was not.
    pub(crate) fn denied_since(&self) -> Timestamp {
        *self.state.lock().denied_since.get_or_insert_with(now)
    }

    /// Whether trouble of that kind has to be logged: no operation has logged it yet.
    pub(crate) fn is_new(&self, kind: &str) -> bool {
        let mut state = self.state.lock();
        let is_new = state.logged.len() < MOST_KINDS && !state.logged.iter().any(|logged| logged == kind);
        if is_new {
            state.logged.push(kind.to_owned());
        }
        is_new
    }

    /// A call did what it should.
    pub(crate) fn ends(&self) {
        *self.state.lock() = OutageState::default();
    }
}
