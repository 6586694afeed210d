//! Outage of a peer across all its operations.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use chassis::process::{clock, peers::PeerState};
use domain::core::time::Timestamp;
use parking_lot::Mutex;

/// Most kinds of errors that are logged in one outage, over all operations. Error texts may name the subject of a
/// call.
const MOST_KINDS: usize = 32;

/// Time after its last failed call for which an operation keeps the outage of its peer from ending. An operation that was
/// not called for so long says nothing about the peer any more; every operation that somebody waits for is called more often.
const SILENT: Duration = Duration::from_secs(5 * 60);

/// Number of one circuit among those of its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CircuitNumber(u64);

/// The outage of a peer: its beginning, the circuits whose calls fail, and the kinds of errors that were logged. An outage
/// begins with the first failed call, and ends once no circuit fails any more.
#[derive(Default)]
pub(crate) struct PeerOutage {
    state: Mutex<OutageState>,
}

#[derive(Default)]
struct OutageState {
    circuits: u64,
    since: Option<Timestamp>,
    /// Error of the last failed or denied call of the outage.
    error: String,
    /// Beginning of the time without an outage; `None`: there is one, or no call was made yet.
    works_since: Option<Timestamp>,
    /// Circuits whose calls fail or are denied, each with the time of its last such call.
    failing: HashMap<CircuitNumber, Instant>,
    logged: Vec<String>,
}

impl PeerOutage {
    /// Returns the number of a new circuit.
    pub(crate) fn join(&self) -> CircuitNumber {
        let mut state = self.state.lock();
        state.circuits += 1;
        CircuitNumber(state.circuits)
    }

    /// Notes a failed or denied call of the circuit at `now`, with which the outage begins if there is none.
    pub(crate) fn fails(&self, circuit: CircuitNumber, now: Instant, error: &str) {
        let mut state = self.state.lock();
        state.failing.insert(circuit, now);
        state.since.get_or_insert_with(clock::now);
        state.works_since = None;
        if state.error != error {
            error.clone_into(&mut state.error);
        }
    }

    /// Returns the state of the peer.
    pub(crate) fn peer_state(&self) -> PeerState {
        let state = self.state.lock();
        match (state.since, state.works_since) {
            (Some(since), _) => PeerState::Fails { since, error: state.error.clone() },
            (None, Some(since)) => PeerState::Works(since),
            (None, None) => PeerState::NotCalled,
        }
    }

    /// Returns the beginning of the outage, which begins now if there is none.
    pub(crate) fn since(&self) -> Timestamp {
        *self.state.lock().since.get_or_insert_with(clock::now)
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

    /// Notes at `now` that the calls of the circuit do not fail any more. Returns the beginning of the outage that ends with
    /// that, if an error of it was logged; `None` while other circuits fail, or if there is nothing to log.
    pub(crate) fn recovers(&self, circuit: CircuitNumber, now: Instant) -> Option<Timestamp> {
        let mut state = self.state.lock();
        state.failing.remove(&circuit);
        state.failing.retain(|_, last| now.saturating_duration_since(*last) < SILENT);
        if !state.failing.is_empty() {
            return None;
        }
        state.works_since.get_or_insert_with(clock::now);
        state.error.clear();
        let logged = !std::mem::take(&mut state.logged).is_empty();
        state.since.take().filter(|_| logged)
    }

    /// Forgets a circuit that is dropped.
    pub(crate) fn leave(&self, circuit: CircuitNumber) {
        let mut state = self.state.lock();
        if state.failing.remove(&circuit).is_some() && state.failing.is_empty() {
            state.since = None;
            state.works_since.get_or_insert_with(clock::now);
            state.error.clear();
            state.logged.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circuit_that_is_not_called_any_more_keeps_no_outage_going() {
        let outage = PeerOutage::default();
        let (rare, other) = (outage.join(), outage.join());
        let began = Instant::now();
        outage.fails(rare, began, "refused");
        let since = outage.since();
        outage.is_new("refused");
        outage.fails(other, began, "refused");
        let later = began + SILENT;
        assert_eq!(outage.recovers(other, later.checked_sub(Duration::from_secs(1)).unwrap()), None);
        outage.fails(other, later, "reset");
        assert_eq!(outage.recovers(other, later), Some(since));
    }

    #[test]
    fn peer_works_since_its_last_outage() {
        let outage = PeerOutage::default();
        let (one, other) = (outage.join(), outage.join());
        assert_eq!(outage.peer_state(), PeerState::NotCalled);
        let began = clock::now();
        outage.recovers(one, Instant::now());
        let PeerState::Works(since) = outage.peer_state() else { panic!("{:?}", outage.peer_state()) };
        assert!(since >= began);
        outage.fails(one, Instant::now(), "refused");
        outage.fails(other, Instant::now(), "reset");
        outage.recovers(one, Instant::now());
        let PeerState::Fails { since, error } = outage.peer_state() else { panic!("the other still fails") };
        assert_eq!((since, error.as_str()), (outage.since(), "reset"));
        outage.recovers(other, Instant::now());
        let PeerState::Works(again) = outage.peer_state() else { panic!("{:?}", outage.peer_state()) };
        assert!(again >= since);
        outage.recovers(other, Instant::now());
        assert_eq!(outage.peer_state(), PeerState::Works(again), "it has worked since then");
    }

    #[test]
    fn dropped_circuit_ends_its_outage() {
        let outage = PeerOutage::default();
        let [one, other] = [outage.join(), outage.join()];
        outage.fails(one, Instant::now(), "refused");
        assert!(outage.is_new("refused"));
        outage.leave(other);
        assert!(!outage.is_new("refused"), "the outage goes on");
        outage.leave(one);
        assert!(outage.is_new("refused"), "another outage");
    }
}
