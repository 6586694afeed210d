//! Keeps calls away from a peer that does not work, and finds out when it works again.
//!
//! A gate is open, shut until some time, or on probation: one call may pass, and what becomes of it decides.
//! The clock and chance are passed in.

use std::time::{Duration, Instant};

/// How long calls count.
const WINDOW: Duration = Duration::from_secs(10);

/// A share of failures says nothing about fewer calls than this.
const FEWEST: u32 = 10;

/// The gate is shut when this share of the calls failed: when it is more likely to fail than not.
const SHARE: f64 = 0.5;

/// The gate is shut after this many failures in a row, so that a peer with little traffic is found out too.
/// One or two come with every restart.
const IN_A_ROW: u32 = 3;

/// Pause before the first probe, since most outages are short.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Longest pause: a peer that is back is called again within seconds, and a probe costs it nothing.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Part of the time that a peer asked for which is added by chance at most, so that not all callers that
/// it sent away come back at the same moment.
const SPREAD: f64 = 0.25;

/// One gate.
#[derive(Debug)]
pub(crate) struct Gate {
    state: State,
    /// Counts changes of the state: calls that passed before the last one decide nothing.
    turn: u64,
    recent: Recent,
    in_a_row: u32,
    /// How often it was shut since it was open last.
    shuts: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Shut { until: Instant },
    Probation,
}

/// Leave to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pass {
    turn: u64,
}

/// What a call said about the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It works.
    Works,
    /// It does not, and may have said for how long.
    Fails { retry_after: Option<Duration> },
    /// Nothing: the call was not made, or nobody waited for its end.
    Unknown,
}

impl Gate {
    /// An open gate.
    pub(crate) fn new(now: Instant) -> Self {
        Self { state: State::Open, turn: 0, recent: Recent::new(now), in_a_row: 0, shuts: 0 }
    }

    /// Whether calls are let through without looking at what they say.
    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether a call that comes now is let through.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        match self.state {
            State::Open => true,
            State::Shut { until } => now >= until,
            State::Probation => false,
        }
    }

    /// Lets a call through, or not. A pass has to be given back.
    pub(crate) fn enter(&mut self, now: Instant) -> Option<Pass> {
        if !self.admits(now) {
            return None;
        }
        if !self.is_open() {
            self.turn_to(State::Probation);
        }
        Some(Pass { turn: self.turn })
    }

    /// Takes the pass back. `chance` is between 0 and 1.
    pub(crate) fn leave(&mut self, pass: Pass, verdict: Verdict, now: Instant, chance: f64) {
        if pass.turn != self.turn {
            self.hear_straggler(verdict, now, chance);
            return;
        }
        match (self.state, verdict) {
            (State::Open, Verdict::Works) => {
                self.recent.count(now, false);
                self.in_a_row = 0;
            }
            (State::Open, Verdict::Fails { retry_after }) => {
                self.recent.count(now, true);
                self.in_a_row += 1;
                if retry_after.is_some() || self.in_a_row >= IN_A_ROW || self.recent.mostly_failed() {
                    self.shut(retry_after, now, chance);
                }
            }
            (State::Probation, Verdict::Works) => {
                self.turn_to(State::Open);
                (self.recent, self.in_a_row, self.shuts) = (Recent::new(now), 0, 0);
            }
            (State::Probation, Verdict::Fails { retry_after }) => self.shut(retry_after, now, chance),
            (State::Probation, Verdict::Unknown) => self.turn_to(State::Shut { until: now }),
            (State::Open, Verdict::Unknown) | (State::Shut { .. }, _) => {}
        }
    }

    /// A call from before the last turn knows nothing new, but a wish of the peer holds whoever brings it.
    fn hear_straggler(&mut self, verdict: Verdict, now: Instant, chance: f64) {
        let Verdict::Fails { retry_after: Some(asked) } = verdict else { return };
        match self.state {
            State::Shut { until } => {
                self.state = State::Shut { until: until.max(now + spread(asked, chance)) };
            }
            State::Open | State::Probation => self.shut(Some(asked), now, chance),
        }
    }

    fn shut(&mut self, retry_after: Option<Duration>, now: Instant, chance: f64) {
        let whole = FIRST_PAUSE.saturating_mul(1 << self.shuts.min(16)).min(LONGEST_PAUSE);
        let own = whole.mul_f64(1.0 - chance / 2.0);
        let asked = retry_after.map(|asked| spread(asked, chance)).unwrap_or_default();
        self.shuts += 1;
        self.turn_to(State::Shut { until: now + own.max(asked) });
    }

    fn turn_to(&mut self, state: State) {
        self.state = state;
        self.turn += 1;
    }
}

fn spread(asked: Duration, chance: f64) -> Duration {
    asked.mul_f64(1.0 + SPREAD * chance)
}

/// Counts of the calls of the last while, in two halves: when the newer one is full, the older is forgotten.
#[derive(Debug)]
struct Recent {
    began: Instant,
    newer: Count,
    older: Count,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    calls: u32,
    failures: u32,
}

impl Recent {
    fn new(now: Instant) -> Self {
        Self { began: now, newer: Count::default(), older: Count::default() }
    }

    fn count(&mut self, now: Instant, failed: bool) {
        let age = now.saturating_duration_since(self.began);
        if age >= WINDOW {
            *self = Self::new(now);
        } else if age >= WINDOW / 2 {
            *self = Self { began: now, newer: Count::default(), older: self.newer };
        }
        self.newer.calls += 1;
        self.newer.failures += u32::from(failed);
    }

    fn mostly_failed(&self) -> bool {
        let calls = self.newer.calls + self.older.calls;
        let failures = self.newer.failures + self.older.failures;
        calls >= FEWEST && f64::from(failures) >= SHARE * f64::from(calls)
    }
}

#[cfg(test)]
mod tests;
