//! What is counted about calls.

use std::{sync::Arc, time::Duration};

use metrics::{SharedString, Unit, counter, gauge, histogram};

const CALLS: &str = "reveille_upstream_calls_total";
const SECONDS: &str = "reveille_upstream_call_seconds";
const ITEMS: &str = "reveille_upstream_items_total";
const GATES: &str = "reveille_upstream_gate_open";

/// Outcome of a call that was not made: its gate was shut, no slot came free, or credentials were missing.
const HELD: &str = "held";

/// Counts the calls of one operation of one kind of peer.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    peer: Arc<str>,
    operation: &'static str,
    /// Whether its gate is counted.
    has_gate: bool,
}

impl Meter {
    /// A meter for `operation` of the peers that are counted as `peer`.
    pub(crate) fn new(peer: Arc<str>, operation: &'static str) -> Self {
        describe();
        Self { peer, operation, has_gate: true }
    }

    /// The same for the gate of one thing that such calls are about, of which there may be any number.
    pub(crate) fn of_subject(peer: Arc<str>, operation: &'static str) -> Self {
        Self { has_gate: false, ..Self::new(peer, operation) }
    }

    /// The operation.
    pub(crate) fn operation(&self) -> &'static str {
        self.operation
    }

    /// A call was made.
    pub(crate) fn made(&self, outcome: &'static str, took: Duration, items: u64) {
        let (peer, operation) = (self.peer(), self.operation);
        counter!(CALLS, "peer" => peer.clone(), "operation" => operation, "outcome" => outcome).increment(1);
        histogram!(SECONDS, "peer" => peer.clone(), "operation" => operation).record(took);
        if items > 0 {
            counter!(ITEMS, "peer" => peer, "operation" => operation).increment(items);
        }
    }

    /// A call was not made.
    pub(crate) fn held(&self) {
        counter!(CALLS, "peer" => self.peer(), "operation" => self.operation, "outcome" => HELD).increment(1);
    }

    /// A gate lets calls through.
    pub(crate) fn gate_opened(&self) {
        if !self.has_gate {
            return;
        }
        gauge!(GATES, "peer" => self.peer(), "operation" => self.operation).increment(1.0);
    }

    /// A gate lets calls through no more.
    pub(crate) fn gate_shut(&self) {
        if !self.has_gate {
            return;
        }
        gauge!(GATES, "peer" => self.peer(), "operation" => self.operation).decrement(1.0);
    }

    fn peer(&self) -> SharedString {
        SharedString::from_shared(Arc::clone(&self.peer))
    }
}

/// Says what the figures mean. Done again and again, because a process may get its recorder at any time.
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
    metrics::describe_gauge!(
        GATES,
        Unit::Count,
        "Gates that let calls through: 0 while a system is not called because it does not work"
    );
}
