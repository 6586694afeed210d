//! The circuit of one operation: its breaker, its current error and its counters.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use domain::core::{bos_time, time::Timestamp};
use http::StatusCode;
use parking_lot::Mutex;

use crate::{
    breaker::{BreakerPermit, CallVerdict, CircuitBreaker},
    failure::PeerTrouble,
    meter::CallMeter,
    outage::{CircuitNumber, PeerOutage},
};

/// Most different errors that are logged between two successful calls. A peer that words its error differently each
/// time would otherwise be logged at every call.
const MOST_KINDS: usize = 8;

/// Time without a failed call after which a successful one ends an outage. Calls about some nodes may fail while calls of
/// the same operation about others succeed, and then the outage goes on.
const QUIET: Duration = Duration::from_secs(10);

/// The calls of one operation, or of one subject of the operation.
pub(crate) struct OperationCircuit {
    peer: Arc<str>,
    /// Outage of the peer, shared by all its circuits.
    outage: Arc<PeerOutage>,
    number: CircuitNumber,
    state: Mutex<CircuitHistory>,
    pub(crate) meter: CallMeter,
}

struct CircuitHistory {
    breaker: CircuitBreaker,
    /// Time of the last failed or denied call; `None`: there is no outage.
    failed_at: Option<Instant>,
    /// Whether a call has succeeded since then.
    has_worked: bool,
    /// Whether somebody ends the outage once it was quiet.
    end_is_awaited: bool,
    /// Set from the first failure to the end of the outage. An open circuit always has one.
    trouble: Option<LastingTrouble>,
    /// Set from the first denied call to the end of the outage.
    denial: Option<LastingDenial>,
    /// Kinds of errors in this outage.
    kinds: Vec<String>,
}

/// An error, with the beginning of its outage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LastingTrouble {
    /// Beginning of the outage of the peer, whichever operation failed first.
    pub since: Timestamp,
    pub trouble: PeerTrouble,
}

/// A refusal of all calls of one kind by a peer that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LastingDenial {
    /// Beginning of the outage of the peer, whichever operation failed or was denied first.
    pub since: Timestamp,
    /// Status of the answer.
    pub status: StatusCode,
    /// Error text of the peer.
    pub words: String,
}

/// Permission to make one call. Dropping the permit means that the end of the call was not awaited.
pub(crate) struct OperationPermit<'a> {
    circuit: &'a OperationCircuit,
    permit: Option<BreakerPermit>,
}

impl OperationCircuit {
    /// Creates a closed circuit.
    pub(crate) fn new(peer: Arc<str>, outage: Arc<PeerOutage>, meter: CallMeter) -> Self {
        meter.circuit_closed();
        let state = CircuitHistory {
            breaker: CircuitBreaker::new(Instant::now()),
            failed_at: None,
            has_worked: false,
            end_is_awaited: false,
            trouble: None,
            denial: None,
            kinds: Vec::new(),
        };
        let number = outage.join();
        Self { peer, outage, number, state: Mutex::new(state), meter }
    }

    /// Returns the error of an open circuit.
    pub(crate) fn open_error(&self) -> Option<LastingTrouble> {
        let state = self.state.lock();
        if state.breaker.admits(Instant::now()) { None } else { state.trouble.clone() }
    }

    /// Returns the error of the outage, if there is one.
    pub(crate) fn trouble(&self) -> Option<LastingTrouble> {
        self.state.lock().trouble.clone()
    }

    /// Admits a call, or returns the error of the open circuit.
    pub(crate) fn acquire(&self) -> Result<OperationPermit<'_>, LastingTrouble> {
        let mut state = self.state.lock();
        match state.breaker.acquire(Instant::now()) {
            Some(permit) => Ok(OperationPermit { circuit: self, permit: Some(permit) }),
            None => Err(state
                .trouble
                .clone()
                .expect("a failure opens the circuit and is kept until the circuit closes")),
        }
    }

    /// Logs a call that was not made because of this process.
    pub(crate) fn not_made(&self, reason: &str) {
        let mut state = self.state.lock();
        self.failed(&mut state, Instant::now(), reason);
        self.log_error(&mut state, reason.to_owned(), reason);
    }

    fn release(
        &self,
        permit: BreakerPermit,
        verdict: CallVerdict,
        trouble: Option<PeerTrouble>,
    ) -> Option<LastingTrouble> {
        let mut state = self.state.lock();
        let was_closed = state.breaker.is_closed();
        state.breaker.release(permit, verdict, Instant::now(), rand::random());
        let is_closed = state.breaker.is_closed();
        match (was_closed, is_closed) {
            (true, false) => self.meter.circuit_opened(),
            (false, true) => self.meter.circuit_closed(),
            (true, true) | (false, false) => {}
        }
        let trouble = trouble?;
        self.failed(&mut state, Instant::now(), &trouble.error);
        let kind = trouble.status.map_or_else(|| trouble.error.clone(), |status| status.to_string());
        self.log_error(&mut state, kind, &trouble.error);
        Some(state.add(trouble, &self.outage))
    }

    /// Logs an error of a kind that neither this circuit nor another circuit of the same outage has logged.
    fn log_error(&self, state: &mut CircuitHistory, kind: String, error: &str) {
        if state.kinds.len() >= MOST_KINDS || state.kinds.contains(&kind) {
            return;
        }
        if self.outage.is_new(&kind) {
            tracing::warn!(
                peer = &*self.peer,
                operation = self.meter.operation(),
                error,
                "upstream call failed"
            );
        }
        state.kinds.push(kind);
    }

    /// Notes a call that failed at `now`. An outage that was over by then, but of which no later call showed that, ends
    /// first.
    fn failed(&self, state: &mut CircuitHistory, now: Instant, error: &str) {
        if state.has_worked && state.is_quiet(now) {
            self.end_outage(state, now);
        }
        state.failed_at = Some(now);
        (state.has_worked, state.end_is_awaited) = (false, false);
        self.outage.fails(self.number, now, error);
    }

    /// Ends the outage at `now`, unless calls failed just before.
    fn recover(&self, now: Instant) {
        let mut state = self.state.lock();
        if !state.breaker.is_closed() {
            return;
        }
        state.has_worked = true;
        if state.is_quiet(now) {
            self.end_outage(&mut state, now);
        }
    }

    /// Returns the time until an outage in which a call has succeeded is over, if no other call fails. Whoever gets it calls
    /// [`Self::end_if_quiet`] then: without another call nobody else would notice the end. `None`: there is no such outage,
    /// or somebody waits already.
    pub(crate) fn quiet_after(&self, now: Instant) -> Option<Duration> {
        let mut state = self.state.lock();
        let failed_at = state.failed_at.filter(|_| state.has_worked && !state.end_is_awaited)?;
        state.end_is_awaited = true;
        Some(QUIET.saturating_sub(now.saturating_duration_since(failed_at)))
    }

    /// Ends an outage in which a call has succeeded, and none has failed for long enough at `now`.
    pub(crate) fn end_if_quiet(&self, now: Instant) {
        let mut state = self.state.lock();
        if state.has_worked && state.is_quiet(now) {
            self.end_outage(&mut state, now);
        }
    }

    /// Ends the outage of this circuit at `now`. The recovery of the peer is logged once no other circuit fails, if an error
    /// was logged.
    fn end_outage(&self, state: &mut CircuitHistory, now: Instant) {
        state.failed_at = None;
        (state.has_worked, state.end_is_awaited) = (false, false);
        state.trouble = None;
        state.denial = None;
        state.kinds.clear();
        if let Some(since) = self.outage.recovers(self.number, now) {
            let failed_since = format!("{}Z", bos_time::text(since));
            let operation = self.meter.operation();
            tracing::info!(peer = &*self.peer, operation, failed_since, "upstream recovered");
        }
    }
}

impl CircuitHistory {
    /// Returns whether no call has failed for [`QUIET`].
    fn is_quiet(&self, now: Instant) -> bool {
        self.failed_at.is_none_or(|at| now.saturating_duration_since(at) >= QUIET)
    }

    /// Keeps the text of the first failure as long as its cause is the same, because the text is written to records
    /// that should not change with every call.
    fn add(&mut self, trouble: PeerTrouble, outage: &PeerOutage) -> LastingTrouble {
        let lasting = match self.trouble.take() {
            Some(known) if known.trouble.is_like(&trouble) => LastingTrouble {
                trouble: PeerTrouble { error: known.trouble.error, ..trouble },
                since: known.since,
            },
            Some(known) => LastingTrouble { trouble, since: known.since },
            None => LastingTrouble { trouble, since: outage.since() },
        };
        self.trouble.insert(lasting).clone()
    }

    /// Keeps the text of the first denial as long as the status is the same.
    fn deny(&mut self, status: StatusCode, words: String, outage: &PeerOutage) -> LastingDenial {
        let denial = match self.denial.take() {
            Some(known) if known.status == status => known,
            Some(known) => LastingDenial { since: known.since, status, words },
            None => LastingDenial { since: outage.since(), status, words },
        };
        self.denial.insert(denial).clone()
    }
}

impl OperationPermit<'_> {
    /// Records that the peer works, whichever its answer.
    pub(crate) fn works(mut self) {
        if let Some(permit) = self.permit.take() {
            self.circuit.release(permit, CallVerdict::Works, None);
            self.circuit.recover(Instant::now());
        }
    }

    /// Records that the peer works and denies calls of this kind. Returns the denial with its beginning.
    pub(crate) fn denied(mut self, status: StatusCode, words: String) -> LastingDenial {
        if let Some(permit) = self.permit.take() {
            self.circuit.release(permit, CallVerdict::Works, None);
        }
        let mut state = self.circuit.state.lock();
        let error = format!("{status}: {words}");
        self.circuit.failed(&mut state, Instant::now(), &error);
        self.circuit.log_error(&mut state, status.to_string(), &error);
        state.deny(status, words, &self.circuit.outage)
    }

    /// Records that the peer does not work. Returns the error with its beginning.
    pub(crate) fn fails(mut self, trouble: PeerTrouble) -> LastingTrouble {
        let verdict = CallVerdict::Fails { retry_after: trouble.retry_after };
        let lasting = self
            .permit
            .take()
            .and_then(|permit| self.circuit.release(permit, verdict, Some(trouble.clone())));
        lasting.unwrap_or_else(|| LastingTrouble { since: self.circuit.outage.since(), trouble })
    }
}

impl Drop for OperationPermit<'_> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.circuit.release(permit, CallVerdict::Unknown, None);
        }
    }
}

impl Drop for OperationCircuit {
    fn drop(&mut self) {
        self.outage.leave(self.number);
        if self.state.get_mut().breaker.is_closed() {
            self.meter.circuit_opened();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circuit(outage: &Arc<PeerOutage>, operation: &'static str) -> OperationCircuit {
        OperationCircuit::new("CFS".into(), Arc::clone(outage), CallMeter::new("CFS".into(), operation))
    }

    fn failed(circuit: &OperationCircuit) -> Timestamp {
        circuit.acquire().unwrap().fails(PeerTrouble::unreachable("connection refused")).since
    }

    /// Returns whether an error of that kind was logged in the present outage. It counts as logged from then on.
    fn logged(outage: &PeerOutage, kind: &str) -> bool {
        !outage.is_new(kind)
    }

    #[test]
    fn outage_has_one_beginning_until_all_operations_work() {
        let outage = Arc::<PeerOutage>::default();
        let [list, patch, get] = ["list", "patch", "get"].map(|operation| circuit(&outage, operation));
        let began = failed(&list);
        // Timestamps have a resolution of milliseconds.
        while chassis::process::clock::now() <= began {}
        assert_eq!([failed(&patch), failed(&list)], [began, began]);
        get.acquire().unwrap().works();
        assert_eq!([failed(&patch), failed(&get)], [began, began], "two others still fail");
        let denied = get.acquire().unwrap().denied(StatusCode::UNAUTHORIZED, String::new());
        assert_eq!(denied.since, began, "a denial belongs to the same outage");
        for (recovered, expected) in [(&list, true), (&get, true), (&patch, false)] {
            recovered.recover(Instant::now() + QUIET);
            assert_eq!(logged(&outage, "connection refused"), expected, "the outage goes on");
        }
        assert!(failed(&get) > began, "another outage");
    }

    #[test]
    fn trouble_is_logged_once_for_all_operations_until_it_changes() {
        let outage = Arc::<PeerOutage>::default();
        let [list, patch] = ["list", "patch"].map(|operation| circuit(&outage, operation));
        failed(&list);
        failed(&patch);
        patch.acquire().unwrap().denied(StatusCode::UNAUTHORIZED, String::new());
        for kind in ["connection refused", "401 Unauthorized"] {
            assert!(logged(&outage, kind), "{kind}");
        }
        patch.recover(Instant::now() + QUIET);
        assert!(logged(&outage, "401 Unauthorized"), "the list still fails");
        list.recover(Instant::now() + QUIET);
        assert!(!logged(&outage, "connection refused"), "another outage");
    }

    #[test]
    fn an_outage_of_some_calls_begins_and_ends_once() {
        let outage = Arc::<PeerOutage>::default();
        let circuit = circuit(&outage, "boot_data");
        let began = failed(&circuit);
        for _ in 0..3 {
            circuit.acquire().unwrap().works();
            assert!(logged(&outage, "connection refused"), "recovered although calls still fail");
            while chassis::process::clock::now() <= began {}
            assert_eq!(failed(&circuit), began);
        }
        assert_eq!(circuit.state.lock().kinds.len(), 1);
        circuit.recover(Instant::now() + QUIET);
        assert!(!logged(&outage, "connection refused"));
        assert!(circuit.trouble().is_none());
        assert!(failed(&circuit) > began, "another outage");
    }

    #[test]
    fn an_outage_ends_without_another_call() {
        let circuit = circuit(&Arc::default(), "boot_data");
        failed(&circuit);
        assert_eq!(circuit.quiet_after(Instant::now()), None, "no call has worked");
        circuit.acquire().unwrap().works();
        let now = Instant::now();
        assert!(circuit.quiet_after(now).is_some_and(|pause| pause <= QUIET));
        assert_eq!(circuit.quiet_after(now), None, "somebody waits");
        circuit.end_if_quiet(now);
        assert!(circuit.trouble().is_some(), "too early");
        circuit.end_if_quiet(now + QUIET);
        assert!(circuit.trouble().is_none());
        failed(&circuit);
        circuit.acquire().unwrap().works();
        assert!(circuit.quiet_after(now).is_some());
        failed(&circuit);
        circuit.end_if_quiet(Instant::now() + QUIET);
        assert!(circuit.trouble().is_some(), "a call has failed since");
    }

    #[test]
    fn outage_that_no_later_call_ended_is_over_at_the_next_failure() {
        let circuit = circuit(&Arc::default(), "boot_data");
        let began = failed(&circuit);
        circuit.acquire().unwrap().works();
        assert_eq!(circuit.trouble().unwrap().since, began, "it worked just after the failure");
        circuit.state.lock().failed_at = Instant::now().checked_sub(QUIET);
        while chassis::process::clock::now() <= began {}
        assert!(failed(&circuit) > began, "another outage");
        circuit.state.lock().failed_at = Instant::now().checked_sub(QUIET);
        let second = circuit.trouble().unwrap().since;
        assert_eq!(failed(&circuit), second, "no call has worked meanwhile");
    }
}
