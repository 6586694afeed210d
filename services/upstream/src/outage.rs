//! Outage of a peer across all its operations.

use chassis::process::clock::now;
use domain::core::time::Timestamp;
use parking_lot::Mutex;

/// Most kinds of errors that are logged in one outage, over all operations. Error texts may name the subject of a
/// call.
const MOST_KINDS: usize = 32;

/// The outage of a peer: its beginning and the kinds of errors that were logged. An outage begins with the first
/// failed call and ends with the first successful one.
#[derive(Default)]
pub(crate) struct PeerOutage {
    state: Mutex<OutageState>,
}

#[derive(Default)]
struct OutageState {
    failing_since: Option<Timestamp>,
    denied_since: Option<Timestamp>,
    logged: Vec<String>,
}

impl PeerOutage {
    /// Returns the time of the first failure since the last success.
    pub(crate) fn failing_since(&self) -> Timestamp {
        *self.state.lock().failing_since.get_or_insert_with(now)
    }

    /// Returns the time of the first denial since the last accepted call.
    pub(crate) fn denied_since(&self) -> Timestamp {
        *self.state.lock().denied_since.get_or_insert_with(now)
    }

    /// Returns whether an error of that kind has to be logged: no operation has logged it in this outage.
    pub(crate) fn is_new(&self, kind: &str) -> bool {
        let mut state = self.state.lock();
        let is_new = state.logged.len() < MOST_KINDS && !state.logged.iter().any(|logged| logged == kind);
        if is_new {
            state.logged.push(kind.to_owned());
        }
        is_new
    }

    /// Ends the outage: a call succeeded.
    pub(crate) fn ends(&self) {
        *self.state.lock() = OutageState::default();
    }
}
