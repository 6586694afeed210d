//! Calls of one peer, within its slots and circuits.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use chassis::process::{clock, failpoint, peers::PeerState, traces};
use domain::core::{bos_time, clock_offset::ClockOffset, time::Timestamp};
use http::{HeaderMap, StatusCode, header::DATE};
use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout_at},
};
use tracing::{Instrument as _, Span};

use crate::{
    Answer, Failure, FailureKind, PeerError, Request,
    circuit::{LastingDenial, LastingTrouble},
    circuits::{CallCircuits, CallPermit, PeerCircuits},
    error_text,
    failure::{FailureCause, PeerTrouble},
    settings::CallSettings,
    wire::PeerWire,
};

/// Resolution of a `Date` header (RFC 9110, 5.6.7).
const DATE_RESOLUTION: Duration = Duration::from_secs(1);

/// Calls of the system at one address, whichever credentials they are sent with.
pub(crate) struct PeerCalls {
    pub name: String,
    pub wire: PeerWire,
    slots: Semaphore,
    circuits: PeerCircuits,
    /// Offset of the system's clock; `None`: no answer had a date.
    clock: Mutex<Option<ClockOffset>>,
}

impl PeerCalls {
    /// Creates the calls of the system called `name` in texts.
    pub(crate) fn new(settings: CallSettings, name: String, url: &str) -> Result<Self, PeerError> {
        let slots = Semaphore::new(settings.calls_in_flight);
        let circuits = PeerCircuits::new(&name, Arc::clone(&settings.label));
        let wire = PeerWire::new(settings, url)?;
        Ok(Self { name, wire, slots, circuits, clock: Mutex::default() })
    }

    /// Offset of the system's clock from ours, as far as the dates of its answers show.
    pub(crate) fn clock(&self) -> Option<ClockOffset> {
        *self.clock.lock()
    }

    /// Returns whether the system works, and since when.
    pub(crate) fn peer_state(&self) -> PeerState {
        self.circuits.peer_state()
    }

    /// Returns when a call that begins now has to be over.
    pub(crate) fn deadline(&self, request: &Request) -> Instant {
        Instant::now() + self.wire.settings.limits.total_of(request.answer_within)
    }

    /// Waits for a slot, drives `sending` to its end, and parses the answer with `read`. An unreadable answer counts as a
    /// failure of the peer. The caller makes `sending` end at `until`, its [deadline](Self::deadline).
    pub(crate) async fn make<T>(
        &self,
        request: &Request,
        until: Instant,
        sending: impl Future<Output = Result<Answer, FailureCause>>,
        read: impl FnOnce(Answer) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let circuits = self.circuits.of(request.operation, request.subject.as_ref());
        let slot = self.slot(&circuits, request, until).await?;
        let permit = circuits.acquire().map_err(|lasting| self.held_back(&circuits, &lasting))?;
        let began = Instant::now();
        let label = &self.wire.settings.label;
        let operation = request.operation;
        failpoint::pass(format_args!("{label}.{operation}.before"));
        let asked_at = clock::now();
        let span = traces::peer_span(format_args!("{} {operation}", self.name));
        let answer = sending.instrument(span.clone()).await;
        self.describe_span(&span, request, &answer);
        if let Ok(answer) = &answer {
            self.measure_clock(&answer.headers, asked_at);
        }
        failpoint::pass(format_args!("{label}.{operation}.after"));
        drop(slot);
        let (status, outcome) = match answer {
            Ok(answer) => {
                let status = Some(answer.status);
                let outcome = read(answer)
                    .map_err(|error| PeerTrouble { status, ..PeerTrouble::ambiguous(error) }.into());
                (status, outcome)
            }
            Err(cause) => (cause.status(), Err(cause)),
        };
        let word = outcome.as_ref().map_or_else(FailureCause::word, |_| "ok");
        let took = began.elapsed();
        tracing::debug!(
            peer = self.name,
            operation = request.operation,
            method = %request.method,
            path = request.shown_path(),
            status = status.map(|status| status.as_u16()),
            outcome = word,
            milliseconds = took.as_secs_f64() * 1e3,
            "called"
        );
        let meter = &circuits.operation.meter;
        let is_up = match &outcome {
            Ok(_) | Err(FailureCause::No { .. }) => Some(true),
            Err(FailureCause::Trouble(_)) => Some(false),
            Err(FailureCause::NotMade { .. }) => None,
        };
        match is_up {
            Some(is_up) => {
                meter.made(word, took, request.items);
                meter.worked(is_up);
            }
            None => meter.held(),
        }
        let outcome = match outcome {
            Ok(answer) => {
                permit.works();
                Ok(answer)
            }
            Err(cause) => {
                if let FailureCause::NotMade { reason, .. } = &cause {
                    circuits.operation.not_made(reason);
                }
                Err(self.failure_of(request, cause, permit))
            }
        };
        circuits.end_when_quiet();
        outcome
    }

    /// Notes on the span of a call what was asked and answered.
    fn describe_span(&self, span: &Span, request: &Request, answer: &Result<Answer, FailureCause>) {
        if span.is_none() {
            return;
        }
        traces::note_text(span, "http.request.method", request.method.as_str());
        traces::note_text(span, "server.address", self.wire.base.host_port());
        traces::note_text(span, "url.path", error_text::tidy(request.shown_path(), &[]));
        match answer {
            Ok(answer) => traces::answered(span, answer.status),
            Err(cause) => {
                cause.status().into_iter().for_each(|status| traces::answered(span, status));
                traces::fail(span, cause.word());
            }
        }
    }

    fn measure_clock(&self, headers: &HeaderMap, asked_at: Timestamp) {
        let date = headers.get(DATE).and_then(|value| httpdate::parse_http_date(value.to_str().ok()?).ok());
        let since_1970 = date.and_then(|date| date.duration_since(SystemTime::UNIX_EPOCH).ok());
        let Some(theirs) = since_1970.map(|since| Timestamp::default().plus(since)) else { return };
        let measured = ClockOffset::measure(asked_at, clock::now(), theirs, DATE_RESOLUTION);
        if let Some(newer) = measured {
            let mut clock = self.clock.lock();
            *clock = Some(clock.map_or(newer, |known| known.refine(newer)));
        }
    }

    /// Makes the error text of a failed call, and reports the result to the circuits.
    fn failure_of(&self, request: &Request, cause: FailureCause, permit: CallPermit<'_>) -> Failure {
        match cause {
            FailureCause::No { kind: kind @ FailureKind::Denied, status, words } => {
                let LastingDenial { since, words, .. } = permit.denied(status, words);
                let since = format!(" since {}Z", bos_time::text(since));
                self.refusal(kind, request, &since, status, &words)
            }
            FailureCause::No { kind, status, words } => {
                permit.works();
                self.refusal(kind, request, "", status, &words)
            }
            FailureCause::Trouble(trouble) => {
                let PeerTrouble { kind, status, .. } = trouble;
                let lasting = permit.fails(trouble);
                Failure { kind, status, text: self.trouble(&lasting) }
            }
            FailureCause::NotMade { kind, reason } => self.not_made(kind, &reason),
        }
    }

    /// Acquires one of the slots for concurrent calls. An open circuit fails the call at once.
    async fn slot(
        &self,
        circuits: &CallCircuits,
        request: &Request,
        until: Instant,
    ) -> Result<SemaphorePermit<'_>, Failure> {
        if let Some(lasting) = circuits.open_error() {
            return Err(self.held_back(circuits, &lasting));
        }
        match timeout_at(until, self.slots.acquire()).await {
            // A slot that becomes free at the last moment is of no use.
            Ok(slot) if Instant::now() < until => Ok(slot.expect("slots are never closed")),
            Ok(_) | Err(_) => {
                if let Some(lasting) = circuits.trouble() {
                    return Err(self.held_back(circuits, &lasting));
                }
                circuits.operation.meter.held();
                let CallSettings { calls_in_flight, limits, .. } = &self.wire.settings;
                let total = limits.total_of(request.answer_within);
                let reason = format!("all of {calls_in_flight} calls under way took over {total:?}");
                circuits.operation.not_made(&reason);
                Err(self.not_made(FailureKind::Unreachable, &reason))
            }
        }
    }

    fn held_back(&self, circuits: &CallCircuits, lasting: &LastingTrouble) -> Failure {
        circuits.operation.meter.held();
        Failure { kind: FailureKind::Unreachable, status: None, text: self.trouble(lasting) }
    }

    fn refusal(
        &self,
        kind: FailureKind,
        request: &Request,
        since: &str,
        status: StatusCode,
        words: &str,
    ) -> Failure {
        // A path may come from an answer of the peer.
        let path = error_text::tidy(request.shown_path(), &[]);
        let method = &request.method;
        let colon = if words.is_empty() { "" } else { ": " };
        let text = self.describe(format_args!("refused {method} {path}{since}: {status}{colon}{words}"));
        Failure { kind, status: Some(status), text }
    }

    fn trouble(&self, lasting: &LastingTrouble) -> String {
        let since = bos_time::text(lasting.since);
        let error = &lasting.trouble.error;
        self.describe(format_args!("failing since {since}Z: {error}"))
    }

    pub(crate) fn not_made(&self, kind: FailureKind, reason: &str) -> Failure {
        Failure { kind, status: None, text: self.describe(format_args!("not called: {reason}")) }
    }

    /// Formats an error with the name of the peer. The text reads well alone and after "waiting for".
    fn describe(&self, error: fmt::Arguments<'_>) -> String {
        format!("{} at {} ({error})", self.name, self.wire.base.host_port())
    }
}
