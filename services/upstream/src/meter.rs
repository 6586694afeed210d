//! Metrics of calls.

use std::{sync::Arc, time::Duration};

use metrics::{SharedString, Unit, counter, gauge, histogram};

const CALLS: &str = "reveille_upstream_calls_total";
const SECONDS: &str = "reveille_upstream_call_seconds";
const ITEMS: &str = "reveille_upstream_items_total";
const CLOSED_CIRCUITS: &str = "reveille_upstream_gate_open";

/// Whether a system worked at the last call.
const UP: &str = "reveille_upstream_up";

/// Outcome of a call that was not made: its circuit was open, no slot became free, or credentials were missing.
const HELD: &str = "held";

/// Counts the calls of one operation of one kind of peer.
#[derive(Debug, Clone)]
pub(crate) struct CallMeter {
    peer: Arc<str>,
    operation: &'static str,
    /// Whether the circuit is counted in the gauge.
    is_counted: bool,
}

impl CallMeter {
    /// Creates a meter for `operation` of the peers with the label `peer`.
    pub(crate) fn new(peer: Arc<str>, operation: &'static str) -> Self {
        describe();
        Self { peer, operation, is_counted: true }
    }

    /// Creates a meter for one subject of an operation. Its circuit is not counted, since the number of subjects is
    /// unbounded.
    pub(crate) fn of_subject(peer: Arc<str>, operation: &'static str) -> Self {
        Self { is_counted: false, ..Self::new(peer, operation) }
    }

    /// Name of the operation.
    pub(crate) fn operation(&self) -> &'static str {
        self.operation
    }

    /// Counts a call that was made.
    pub(crate) fn made(&self, outcome: &'static str, took: Duration, items: u64) {
        let peer = self.peer();
        let operation = self.operation;
        counter!(CALLS, "peer" => peer.clone(), "operation" => operation, "outcome" => outcome).increment(1);
        histogram!(SECONDS, "peer" => peer.clone(), "operation" => operation).record(took);
        if items > 0 {
            counter!(ITEMS, "peer" => peer, "operation" => operation).increment(items);
        }
    }

    /// Shows whether the system worked at the last call.
    pub(crate) fn worked(&self, is_up: bool) {
        gauge!(UP, "peer" => self.peer()).set(if is_up { 1.0 } else { 0.0 });
    }

    /// Counts a call that was not made.
    pub(crate) fn held(&self) {
        counter!(CALLS, "peer" => self.peer(), "operation" => self.operation, "outcome" => HELD).increment(1);
    }

    /// Counts a circuit that closed.
    pub(crate) fn circuit_closed(&self) {
        if !self.is_counted {
            return;
        }
        gauge!(CLOSED_CIRCUITS, "peer" => self.peer(), "operation" => self.operation).increment(1.0);
    }

    /// Counts a circuit that opened.
    pub(crate) fn circuit_opened(&self) {
        if !self.is_counted {
            return;
        }
        gauge!(CLOSED_CIRCUITS, "peer" => self.peer(), "operation" => self.operation).decrement(1.0);
    }

    fn peer(&self) -> SharedString {
        SharedString::from_shared(Arc::clone(&self.peer))
    }
}

/// Describes the metrics. Called repeatedly, because a process may install its recorder at any time.
fn describe() {
    metrics::describe_counter!(
        CALLS,
        Unit::Count,
        "Calls of other systems by outcome: ok, refused, denied, unreachable, ambiguous; held were not made"
    );
    metrics::describe_histogram!(SECONDS, Unit::Seconds, "Time that calls of other systems took");
    metrics::describe_counter!(
        ITEMS,
        Unit::Count,
        "Items, such as nodes, that calls of other systems were about"
    );
    metrics::describe_gauge!(UP, Unit::Count, "Whether a system worked at the last call");
    metrics::describe_gauge!(
        CLOSED_CIRCUITS,
        Unit::Count,
        "Closed circuit breakers: 0 while a system is not called because it does not work"
    );
}
