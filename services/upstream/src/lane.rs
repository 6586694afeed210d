//! The calls of one operation: their gate, the trouble they are in, and their counters.

use std::{sync::Arc, time::Instant};

use domain::time::Timestamp;
use http::StatusCode;
use parking_lot::Mutex;

use crate::{
    failure::Trouble,
    gate::{Gate, Pass, Verdict},
    meter::Meter,
    outage::Outage,
};

/// Kinds of trouble that are logged between two calls that work. A peer that words its trouble anew each time would
/// otherwise be logged at every call.
const MOST_KINDS: usize = 8;

/// The calls of one operation.
pub(crate) struct Lane {
    peer: Arc<str>,
    /// Trouble of the peer, which all of its lanes share.
    outage: Arc<Outage>,
    state: Mutex<State>,
    pub(crate) meter: Meter,
}

struct State {
    gate: Gate,
    /// Set from the first failure to the next success. A gate is never shut without it.
    trouble: Option<Lasting>,
    /// Set from the first call that was denied to the next that was taken.
    denial: Option<Denial>,
    /// Kinds of trouble since the last call that worked.
    kinds: Vec<String>,
    /// Whether one of them was logged by this lane, so that their end has to be.
    is_logged: bool,
}

/// Trouble that lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lasting {
    /// When the first call of the peer failed after the last one that did not.
    pub since: Timestamp,
    /// What is wrong.
    pub trouble: Trouble,
}

/// A peer that works and takes no calls of this kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denial {
    /// When the first call of the peer was denied after the last one that was not.
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
    pub(crate) fn new(peer: Arc<str>, outage: Arc<Outage>, meter: Meter) -> Self {
        meter.gate_opened();
        let state = State {
            gate: Gate::new(Instant::now()),
            trouble: None,
            denial: None,
            kinds: Vec::new(),
            is_logged: false,
        };
        Self { peer, outage, state: Mutex::new(state), meter }
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

    /// A call was not made for a reason on this side.
    pub(crate) fn not_made(&self, reason: &str) {
        self.complain(&mut self.state.lock(), reason.to_owned(), reason);
    }

    fn leave(&self, pass: Pass, verdict: Verdict, trouble: Option<Trouble>) -> Option<Lasting> {
        let mut state = self.state.lock();
        let was_open = state.gate.is_open();
        state.gate.leave(pass, verdict, Instant::now(), rand::random());
        let is_open = state.gate.is_open();
        match (was_open, is_open) {
            (true, false) => self.meter.gate_shut(),
            (false, true) => self.meter.gate_opened(),
            (true, true) | (false, false) => {}
        }
        match trouble {
            Some(trouble) => {
                let kind = trouble.status.map_or_else(|| trouble.error.clone(), |status| status.to_string());
                self.complain(&mut state, kind, &trouble.error);
                Some(state.add(trouble, &self.outage))
            }
            None if verdict == Verdict::Works && is_open => {
                state.trouble = None;
                None
            }
            None => None,
        }
    }

    /// Logs trouble of a kind that neither this lane nor, in this outage, another one has logged.
    fn complain(&self, state: &mut State, kind: String, error: &str) {
        if state.kinds.len() >= MOST_KINDS || state.kinds.contains(&kind) {
            return;
        }
        if self.outage.is_new(&kind) {
            tracing::warn!(
                peer = &*self.peer,
                operation = self.meter.operation(),
                error,
                "upstream in trouble"
            );
            state.is_logged = true;
        }
        state.kinds.push(kind);
    }

    /// Logs the end of trouble that was logged.
    fn recover(&self) {
        let mut state = self.state.lock();
        state.denial = None;
        state.kinds.clear();
        if std::mem::take(&mut state.is_logged) {
            tracing::info!(peer = &*self.peer, operation = self.meter.operation(), "upstream works again");
        }
        self.outage.ends();
    }
}

impl State {
    /// The words stay those of the first failure as long as the defect is the same, because they are written to
    /// records that should not change with every call.
    fn add(&mut self, trouble: Trouble, outage: &Outage) -> Lasting {
        let lasting = match self.trouble.take() {
            Some(known) if known.trouble.is_like(&trouble) => {
                Lasting { trouble: Trouble { error: known.trouble.error, ..trouble }, since: known.since }
            }
            Some(known) => Lasting { trouble, since: known.since },
            None => Lasting { trouble, since: outage.failing_since() },
        };
        self.trouble.insert(lasting).clone()
    }

    /// As with trouble, the words stay as long as the answer is the same.
    fn deny(&mut self, status: StatusCode, words: String, outage: &Outage) -> Denial {
        let denial = match self.denial.take() {
            Some(known) if known.status == status => known,
            Some(known) => Denial { since: known.since, status, words },
            None => Denial { since: outage.denied_since(), status, words },
        };
        self.denial.insert(denial).clone()
    }
}

impl Leave<'_> {
    /// The peer works, whatever it thinks of what the call was about.
    pub(crate) fn works(mut self) {
        if let Some(pass) = self.pass.take() {
            self.lane.leave(pass, Verdict::Works, None);
            self.lane.recover();
        }
    }

    /// The peer works, and takes no calls of this kind. Gives back what it says since when.
    pub(crate) fn denied(mut self, status: StatusCode, words: String) -> Denial {
        if let Some(pass) = self.pass.take() {
            self.lane.leave(pass, Verdict::Works, None);
        }
        let mut state = self.lane.state.lock();
        self.lane.complain(&mut state, status.to_string(), &format!("{status}: {words}"));
        state.deny(status, words, &self.lane.outage)
    }

    /// The peer does not work. Gives back what is wrong since when.
    pub(crate) fn fails(mut self, trouble: Trouble) -> Lasting {
        let verdict = Verdict::Fails { retry_after: trouble.retry_after };
        let told = self.pass.take().and_then(|pass| self.lane.leave(pass, verdict, Some(trouble.clone())));
        told.unwrap_or_else(|| Lasting { since: self.lane.outage.failing_since(), trouble })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(outage: &Arc<Outage>, operation: &'static str) -> Lane {
        Lane::new("CFS".into(), Arc::clone(outage), Meter::new("CFS".into(), operation))
    }

    fn failed(lane: &Lane) -> Timestamp {
        lane.enter().unwrap().fails(Trouble::unreachable("connection refused")).since
    }

    #[test]
    fn an_outage_has_one_beginning_for_all_operations() {
        let outage = Arc::<Outage>::default();
        let [list, patch, get] = ["list", "patch", "get"].map(|operation| lane(&outage, operation));
        let began = failed(&list);
        // Time stamps are in milliseconds.
        while chassis::convert::time::now() <= began {}
        assert_eq!([failed(&patch), failed(&list)], [began, began]);
        get.enter().unwrap().works();
        assert_eq!(failed(&patch), began, "this operation has not worked since");
        assert!(failed(&get) > began, "another outage");
    }

    #[test]
    fn trouble_is_logged_once_for_all_operations_until_it_changes() {
        let outage = Arc::<Outage>::default();
        let [list, patch] = ["list", "patch"].map(|operation| lane(&outage, operation));
        failed(&list);
        failed(&patch);
        let logged = |lane: &Lane| std::mem::take(&mut lane.state.lock().is_logged);
        assert_eq!([logged(&list), logged(&patch)], [true, false]);
        failed(&list);
        assert!(!logged(&list), "the same trouble");
        patch.enter().unwrap().denied(StatusCode::UNAUTHORIZED, String::new());
        assert!(logged(&patch), "other trouble");
        patch.enter().unwrap().works();
        failed(&patch);
        assert!(logged(&patch), "another outage");
    }
}
