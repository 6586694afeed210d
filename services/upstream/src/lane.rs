//! The calls of one operation: their gate, the trouble they are in, and their counters.

use std::{sync::Arc, time::Instant};

use chassis::convert::time::now;
use domain::time::Timestamp;
use http::StatusCode;
use parking_lot::Mutex;

use crate::{
    failure::Trouble,
    gate::{Gate, Pass, Verdict},
    meter::Meter,
};

/// The calls of one operation.
pub(crate) struct Lane {
    peer: Arc<str>,
    state: Mutex<State>,
    pub(crate) meter: Meter,
}

struct State {
    gate: Gate,
    /// Set from the first failure to the next success. A gate is never shut without it.
    trouble: Option<Lasting>,
    /// Set from the first call that was denied to the next that was taken.
    denial: Option<Denial>,
}

/// Trouble that lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lasting {
    /// When the first call failed after the last one that did not.
    pub since: Timestamp,
    /// What is wrong.
    pub trouble: Trouble,
}

/// A peer that works and takes no calls of this kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denial {
    /// When the first call was denied after the last one that was not.
    pub since: Timestamp,
    /// Status of the answer.
    pub status: StatusCode,
    /// What the peer said.
    pub words: String,
}

/// Leave to make one call. One that is dropped says that nobody waited for the end of the call.
pub(crate) struct Leave<'a> {
    lane: &'a Lane,
    pass: Option<Pass>,
}

impl Lane {
    /// A lane with an open gate.
    pub(crate) fn new(peer: Arc<str>, meter: Meter) -> Self {
        meter.gate_opened();
        let state = State { gate: Gate::new(Instant::now()), trouble: None, denial: None };
        Self { peer, state: Mutex::new(state), meter }
    }

    /// Why a call that came now would not be let through, if so.
    pub(crate) fn closed(&self) -> Option<Lasting> {
        let state = self.state.lock();
        if state.gate.admits(Instant::now()) { None } else { state.trouble.clone() }
    }

    /// What is wrong, if anything is.
    pub(crate) fn trouble(&self) -> Option<Lasting> {
        self.state.lock().trouble.clone()
    }

    /// Lets a call through, or says why not.
    pub(crate) fn enter(&self) -> Result<Leave<'_>, Lasting> {
        let mut state = self.state.lock();
        match state.gate.enter(Instant::now()) {
            Some(pass) => Ok(Leave { lane: self, pass: Some(pass) }),
            None => {
                Err(state.trouble.clone().expect("a gate is shut by trouble that is kept until it opens"))
            }
        }
    }

    fn leave(&self, pass: Pass, verdict: Verdict, trouble: Option<Trouble>) -> Option<Lasting> {
        let mut state = self.state.lock();
        let was_open = state.gate.is_open();
        state.gate.leave(pass, verdict, Instant::now(), rand::random());
        let is_open = state.gate.is_open();
        self.show(was_open, is_open, trouble.as_ref());
        match trouble {
            Some(trouble) => Some(state.add(trouble)),
            None if verdict == Verdict::Works && is_open => {
                state.trouble = None;
                None
            }
            None => None,
        }
    }
}

impl Lane {
    fn show(&self, was_open: bool, is_open: bool, trouble: Option<&Trouble>) {
        let (peer, operation) = (&*self.peer, self.meter.operation());
        match (was_open, is_open, trouble) {
            (true, false, trouble) => {
                let error = trouble.map(|trouble| trouble.error.as_str());
                tracing::warn!(peer, operation, error, "does not work, calls are held back");
                self.meter.gate_shut();
            }
            (false, true, _) => {
                tracing::info!(peer, operation, "works again");
                self.meter.gate_opened();
            }
            (true, true, _) | (false, false, _) => {}
        }
    }
}

impl State {
    /// The words stay those of the first failure as long as the defect is the same, because they are written to
    /// records that should not change with every call.
    fn add(&mut self, trouble: Trouble) -> Lasting {
        let lasting = match self.trouble.take() {
            Some(known) if known.trouble.is_like(&trouble) => {
                Lasting { trouble: Trouble { error: known.trouble.error, ..trouble }, since: known.since }
            }
            Some(known) => Lasting { trouble, since: known.since },
            None => Lasting { trouble, since: now() },
        };
        self.trouble.insert(lasting).clone()
    }

    /// As with trouble, the words stay as long as the answer is the same.
    fn deny(&mut self, status: StatusCode, words: String) -> Denial {
        let denial = match self.denial.take() {
            Some(known) if known.status == status => known,
            Some(known) => Denial { since: known.since, status, words },
            None => Denial { since: now(), status, words },
        };
        self.denial.insert(denial).clone()
    }
}

impl Leave<'_> {
    /// The peer works, whatever it thinks of what the call was about.
    pub(crate) fn works(mut self) {
        if let Some(pass) = self.pass.take() {
            self.lane.state.lock().denial = None;
            self.lane.leave(pass, Verdict::Works, None);
        }
    }

    /// The peer works, and takes no calls of this kind. Gives back what it says since when.
    pub(crate) fn denied(mut self, status: StatusCode, words: String) -> Denial {
        if let Some(pass) = self.pass.take() {
            self.lane.leave(pass, Verdict::Works, None);
        }
        self.lane.state.lock().deny(status, words)
    }

    /// The peer does not work. Gives back what is wrong since when.
    pub(crate) fn fails(mut self, trouble: Trouble) -> Lasting {
        let verdict = Verdict::Fails { retry_after: trouble.retry_after };
        let told = self.pass.take().and_then(|pass| self.lane.leave(pass, verdict, Some(trouble.clone())));
        told.unwrap_or_else(|| Lasting { since: now(), trouble })
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if let Some(pass) = self.pass.take() {
            self.lane.leave(pass, Verdict::Unknown, None);
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if self.state.get_mut().gate.is_open() {
            self.meter.gate_shut();
        }
    }
}
