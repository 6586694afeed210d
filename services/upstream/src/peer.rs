//! A system that is called over HTTP.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use chassis::{clock, failpoint, settings};
use domain::{bos_time, clock_offset::ClockOffset, time::Timestamp};
use http::{HeaderMap, StatusCode, header::DATE};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout_at},
};

use crate::{
    Answer, CredentialUse, Credentials, Failure, FailureKind, PeerError, PeerGroup, Request,
    circuit::{LastingDenial, LastingTrouble},
    circuits::{CallCircuits, CallPermit, PeerCircuits},
    error_text,
    failure::{FailureCause, PeerTrouble},
    wire::PeerWire,
};

/// A system at one address. Clones share connections, circuits and counters.
#[derive(Clone)]
pub struct Peer {
    inner: Arc<PeerInner>,
}

struct PeerInner {
    name: String,
    wire: PeerWire,
    slots: Semaphore,
    circuits: PeerCircuits,
    /// Offset of the system's clock; none: no answer had a date.
    clock: Mutex<Option<ClockOffset>>,
}

/// Resolution of a `Date` header (RFC 9110, 5.6.7).
const DATE_RESOLUTION: Duration = Duration::from_secs(1);

impl Peer {
    /// Creates the peer called `name` in texts and metrics, such as `HSM`.
    ///
    /// # Errors
    /// Names the setting that cannot be used. The peer is not called.
    pub fn new(name: impl Into<String>, settings: &settings::Peer) -> Result<Self, PeerError> {
        let name = name.into();
        PeerGroup::new(&name, settings)?.peer(name, &settings.url, &settings.credentials)
    }

    pub(crate) fn of(
        group: PeerGroup,
        name: String,
        url: &str,
        credentials: &str,
    ) -> Result<Self, PeerError> {
        let slots = Semaphore::new(group.calls_in_flight);
        let circuits = PeerCircuits::new(&name, Arc::clone(&group.label));
        let wire = PeerWire::new(group, url, credentials)?;
        Ok(Self { inner: Arc::new(PeerInner { name, wire, slots, circuits, clock: Mutex::default() }) })
    }

    /// Reads the credentials and logs a warning if they cannot be used, or cannot be `shown` to the peer as it asks. The peer
    /// is created all the same, since credentials may be mounted later. `section` is the section of the settings, such as
    /// `power.pcs`.
    pub fn check_credentials(&self, section: &str, shown: CredentialUse) {
        let keys = self.inner.wire.keyring.current();
        let flaw = keys.map_or_else(Some, |keys| keys.credentials.flaw(shown));
        if let Some(reason) = flaw {
            let setting = format!("{section}.credentials");
            tracing::warn!(peer = self.inner.name, setting, reason, "credentials cannot be used");
        }
    }

    /// Name of the system.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Base URL of the system, without a slash at the end.
    pub fn url(&self) -> &str {
        self.inner.wire.base.as_str()
    }

    /// Largest number of items in one call.
    pub fn batch_size(&self) -> usize {
        self.inner.wire.group.batch_size
    }

    /// Offset of the system's clock from ours, as far as the dates of its answers show.
    pub fn clock(&self) -> Option<ClockOffset> {
        *self.inner.clock.lock()
    }

    fn measure_clock(&self, headers: &HeaderMap, asked_at: Timestamp) {
        let date = headers.get(DATE).and_then(|value| httpdate::parse_http_date(value.to_str().ok()?).ok());
        let since_1970 = date.and_then(|date| date.duration_since(SystemTime::UNIX_EPOCH).ok());
        let Some(theirs) = since_1970.map(|since| Timestamp::default().plus(since)) else { return };
        let measured = ClockOffset::measure(asked_at, clock::now(), theirs, DATE_RESOLUTION);
        if let Some(newer) = measured {
            let mut clock = self.inner.clock.lock();
            *clock = Some(clock.map_or(newer, |known| known.refine(newer)));
        }
    }

    /// Returns the current credentials, for drivers that do not send them in a header but sign requests or open
    /// sessions.
    ///
    /// # Errors
    /// [`FailureKind::Unreachable`] when the credentials cannot be read; the text names the place.
    pub async fn secrets(&self) -> Result<Credentials, Failure> {
        let keys = self.inner.wire.keyring.current();
        keys.map(|keys| keys.credentials.clone())
            .map_err(|reason| self.not_made(FailureKind::Unreachable, &reason))
    }

    /// Makes the call once.
    ///
    /// # Errors
    /// The failure states the known effect of the call.
    ///
    /// # Cancellation
    /// A call whose future is dropped may have had its effect, and does not count for the health of the peer.
    pub async fn call(&self, request: Request) -> Result<Answer, Failure> {
        self.ask(request, Ok).await
    }

    /// Makes the call and reads the answer as JSON. An unreadable answer is
    /// [`FailureKind::Ambiguous`](crate::FailureKind::Ambiguous).
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn json<T: DeserializeOwned>(&self, request: Request) -> Result<T, Failure> {
        self.ask(request, |answer| {
            serde_json::from_slice(&answer.body).map_err(|error| error_text::of_json_error(&error))
        })
        .await
    }

    /// Makes the call and parses the answer with `read`. An unreadable answer counts as a failure of the peer.
    pub(crate) async fn ask<T>(
        &self,
        request: Request,
        read: impl FnOnce(Answer) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let circuits = self.inner.circuits.of(request.operation, request.subject.as_ref());
        let total = self.inner.wire.group.limits.total_of(request.answer_within);
        let until = Instant::now() + total;
        let slot = self.slot(&circuits, until, total).await?;
        let permit = circuits.acquire().map_err(|lasting| self.held_back(&circuits, &lasting))?;
        let began = Instant::now();
        let label = &self.inner.wire.group.label;
        let operation = request.operation;
        failpoint::pass(format_args!("{label}.{operation}.before"));
        let asked_at = clock::now();
        let answer = self.inner.wire.call(&request, until).await;
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
            peer = self.inner.name,
            operation = request.operation,
            method = %request.method,
            path = request.shown_path(),
            status = status.map(|status| status.as_u16()),
            outcome = word,
            milliseconds = took.as_secs_f64() * 1e3,
            "called"
        );
        match &outcome {
            Err(FailureCause::NotMade { .. }) => circuits.operation.meter.held(),
            Ok(_) | Err(_) => circuits.operation.meter.made(word, took, request.items),
        }
        match outcome {
            Ok(answer) => {
                permit.works();
                Ok(answer)
            }
            Err(cause) => {
                if let FailureCause::NotMade { reason, .. } = &cause {
                    circuits.operation.not_made(reason);
                }
                Err(self.failure_of(&request, cause, permit))
            }
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
        until: Instant,
        total: Duration,
    ) -> Result<SemaphorePermit<'_>, Failure> {
        if let Some(lasting) = circuits.open_error() {
            return Err(self.held_back(circuits, &lasting));
        }
        match timeout_at(until, self.inner.slots.acquire()).await {
            // A slot that becomes free at the last moment is of no use.
            Ok(slot) if Instant::now() < until => Ok(slot.expect("slots are never closed")),
            Ok(_) | Err(_) => {
                if let Some(lasting) = circuits.trouble() {
                    return Err(self.held_back(circuits, &lasting));
                }
                circuits.operation.meter.held();
                let PeerGroup { calls_in_flight, .. } = &self.inner.wire.group;
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

    fn not_made(&self, kind: FailureKind, reason: &str) -> Failure {
        Failure { kind, status: None, text: self.describe(format_args!("not called: {reason}")) }
    }

    /// Formats an error with the name of the peer. The text reads well alone and after "waiting for".
    fn describe(&self, error: fmt::Arguments<'_>) -> String {
        format!("{} at {} ({error})", self.inner.name, self.inner.wire.base.host_port())
    }
}
