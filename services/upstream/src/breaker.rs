//! The circuit breaker: keeps calls away from a peer that does not work, and probes for its recovery.
//!
//! A circuit is closed (calls pass), open until a point in time (calls are held back), or half-open: one probe is
//! under way, and its result closes or opens the circuit. The clock and the chance are arguments.

use std::time::{Duration, Instant};

/// Period for which a call counts.
const WINDOW: Duration = Duration::from_secs(10);

/// Fewest calls for which a share of failures is meaningful.
const FEWEST: u32 = 10;

/// The circuit opens when this share of the calls failed: when a call is more likely to fail than not.
const SHARE: f64 = 0.5;

/// The circuit opens after this many failures in a row, so that an outage is noticed with little traffic too. Every
/// restart of a peer causes one or two failures.
const IN_A_ROW: u32 = 3;

/// Pause before the first probe, since most outages are short.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Longest pause: a peer that recovers is called again within seconds, and a probe costs the peer nothing.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Largest random part that is added to a requested pause, so that not all callers return at the same moment.
const SPREAD: f64 = 0.25;

#[derive(Debug)]
pub(crate) struct CircuitBreaker {
    state: CircuitState,
    /// Counts state changes: a call that passed before the last change decides nothing.
    changes: u64,
    recent: CallWindow,
    in_a_row: u32,
    /// Number of openings since the circuit was closed last.
    openings: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CircuitState {
    Closed,
    Open { until: Instant },
    HalfOpen,
}

/// Permission to make one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BreakerPermit {
    changes: u64,
}

/// Result of a call as far as it concerns the health of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallVerdict {
    /// The peer works.
    Works,
    /// The peer does not work, and may have asked for a pause.
    Fails { retry_after: Option<Duration> },
    /// The health is unknown: the call was not made, or was dropped before its end.
    Unknown,
}

impl CircuitBreaker {
    /// Creates a closed circuit.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            state: CircuitState::Closed,
            changes: 0,
            recent: CallWindow::new(now),
            in_a_row: 0,
            openings: 0,
        }
    }

    /// Returns whether the circuit is closed, so that every call passes.
    pub(crate) fn is_closed(&self) -> bool {
        self.state == CircuitState::Closed
    }

    /// Returns whether a call at `now` passes.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        match self.state {
            CircuitState::Closed => true,
            CircuitState::Open { until } => now >= until,
            CircuitState::HalfOpen => false,
        }
    }

    /// Admits a call, or not. The permit has to be returned by [`Self::release`].
    pub(crate) fn acquire(&mut self, now: Instant) -> Option<BreakerPermit> {
        if !self.admits(now) {
            return None;
        }
        if !self.is_closed() {
            self.change_to(CircuitState::HalfOpen);
        }
        Some(BreakerPermit { changes: self.changes })
    }

    /// Takes back a permit and counts the result of its call. `chance` is between 0 and 1.
    pub(crate) fn release(&mut self, pass: BreakerPermit, verdict: CallVerdict, now: Instant, chance: f64) {
        if pass.changes != self.changes {
            self.handle_straggler(verdict, now, chance);
            return;
        }
        match (self.state, verdict) {
            (CircuitState::Closed, CallVerdict::Works) => {
                self.recent.count(now, false);
                self.in_a_row = 0;
            }
            (CircuitState::Closed, CallVerdict::Fails { retry_after }) => {
                self.recent.count(now, true);
                self.in_a_row += 1;
                if retry_after.is_some() || self.in_a_row >= IN_A_ROW || self.recent.has_mostly_failed() {
                    self.open(retry_after, now, chance);
                }
            }
            (CircuitState::HalfOpen, CallVerdict::Works) => {
                self.change_to(CircuitState::Closed);
                self.recent = CallWindow::new(now);
                self.in_a_row = 0;
                self.openings = 0;
            }
            (CircuitState::HalfOpen, CallVerdict::Fails { retry_after }) => {
                self.open(retry_after, now, chance)
            }
            (CircuitState::HalfOpen, CallVerdict::Unknown) => {
                self.change_to(CircuitState::Open { until: now })
            }
            (CircuitState::Closed, CallVerdict::Unknown) | (CircuitState::Open { .. }, _) => {}
        }
    }

    /// Handles a call that began before the last state change: its result decides nothing, but a requested pause is
    /// respected.
    fn handle_straggler(&mut self, verdict: CallVerdict, now: Instant, chance: f64) {
        let CallVerdict::Fails { retry_after: Some(asked) } = verdict else { return };
        match self.state {
            CircuitState::Open { until } => {
                self.state = CircuitState::Open { until: until.max(now + spread(asked, chance)) };
            }
            CircuitState::Closed | CircuitState::HalfOpen => self.open(Some(asked), now, chance),
        }
    }

    fn open(&mut self, retry_after: Option<Duration>, now: Instant, chance: f64) {
        let whole = FIRST_PAUSE.saturating_mul(1 << self.openings.min(16)).min(LONGEST_PAUSE);
        let own = whole.mul_f64(1.0 - chance / 2.0);
        let asked = retry_after.map(|asked| spread(asked, chance)).unwrap_or_default();
        self.openings += 1;
        self.change_to(CircuitState::Open { until: now + own.max(asked) });
    }

    fn change_to(&mut self, state: CircuitState) {
        self.state = state;
        self.changes += 1;
    }
}

fn spread(asked: Duration, chance: f64) -> Duration {
    asked.mul_f64(1.0 + SPREAD * chance)
}

/// Counts of recent calls in two halves of the window: a full newer half replaces the older half.
#[derive(Debug)]
struct CallWindow {
    began: Instant,
    newer: CallCount,
    older: CallCount,
}

#[derive(Debug, Clone, Copy, Default)]
struct CallCount {
    calls: u32,
    failures: u32,
}

impl CallWindow {
    fn new(now: Instant) -> Self {
        Self { began: now, newer: CallCount::default(), older: CallCount::default() }
    }

    fn count(&mut self, now: Instant, failed: bool) {
        let age = now.saturating_duration_since(self.began);
        if age >= WINDOW {
            *self = Self::new(now);
        } else if age >= WINDOW / 2 {
            *self = Self { began: now, newer: CallCount::default(), older: self.newer };
        }
        self.newer.calls += 1;
        self.newer.failures += u32::from(failed);
    }

    fn has_mostly_failed(&self) -> bool {
        let calls = self.newer.calls + self.older.calls;
        let failures = self.newer.failures + self.older.failures;
        calls >= FEWEST && f64::from(failures) >= SHARE * f64::from(calls)
    }
}

#[cfg(test)]
mod tests;
