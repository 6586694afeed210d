//! One system that is called over HTTP.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use chassis::{convert, failpoint, settings};
use domain::{bos_time, clock_offset::ClockOffset, time::Timestamp};
use http::{HeaderMap, StatusCode, header::DATE};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout_at},
};

use crate::{
    Answer, Credentials, Failure, FailureKind, Family, PeerError, Request,
    failure::{Cause, Trouble},
    lane::{Denial, Lasting},
    way::{Passage, Way, Ways},
    wire::Wire,
    words,
};

/// A system at one address. Clones share connections, gates and counters.
#[derive(Clone)]
pub struct Peer {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    wire: Wire,
    slots: Semaphore,
    ways: Ways,
    /// How far the clock of the system is ahead of ours; none: no answer has told.
    clock: Mutex<Option<ClockOffset>>,
}

/// Resolution of a `Date` header (RFC 9110, 5.6.7).
const DATE_RESOLUTION: Duration = Duration::from_secs(1);

impl Peer {
    /// The system called `name` in texts and metrics, such as `HSM`.
    ///
    /// # Errors
    /// Names the setting that cannot be used. The peer is not called.
    pub fn new(name: impl Into<String>, settings: &settings::Peer) -> Result<Self, PeerError> {
        let name = name.into();
        Family::new(&name, settings)?.peer(name, &settings.url, &settings.credentials)
    }

    pub(crate) fn of(family: Family, name: String, url: &str, credentials: &str) -> Result<Self, PeerError> {
        let slots = Semaphore::new(family.calls_in_flight);
        let ways = Ways::new(&name, Arc::clone(&family.label));
        let wire = Wire::new(family, url, credentials)?;
        Ok(Self { inner: Arc::new(Inner { name, wire, slots, ways, clock: Mutex::default() }) })
    }

    /// Reads the credentials and warns if they cannot be used. They may come later, so the peer is not refused.
    /// `section` is that of the settings, such as `power.pcs`.
    pub fn check_credentials(&self, section: &str) {
        if let Err(reason) = self.inner.wire.keyring.current() {
            let setting = format!("{section}.credentials");
            tracing::warn!(peer = self.inner.name, setting, reason, "credentials cannot be used");
        }
    }

    /// What the system is called.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its base URL, without a slash at the end.
    pub fn url(&self) -> &str {
        self.inner.wire.base.as_str()
    }

    /// Most items in one call.
    pub fn batch_size(&self) -> usize {
        self.inner.wire.family.batch_size
    }

    /// How far the clock of the system is ahead of ours, as far as the dates of its answers tell.
    pub fn clock(&self) -> Option<ClockOffset> {
        *self.inner.clock.lock()
    }

    fn measure_clock(&self, headers: &HeaderMap, asked_at: Timestamp) {
        let date = headers.get(DATE).and_then(|value| httpdate::parse_http_date(value.to_str().ok()?).ok());
        let since_1970 = date.and_then(|date| date.duration_since(SystemTime::UNIX_EPOCH).ok());
        let Some(theirs) = since_1970.map(|since| Timestamp::default().plus(since)) else { return };
        let measured = ClockOffset::measure(asked_at, convert::time::now(), theirs, DATE_RESOLUTION);
        if let Some(newer) = measured {
            let mut clock = self.inner.clock.lock();
            *clock = Some(clock.map_or(newer, |known| known.refine(newer)));
        }
    }

    /// The credentials that hold now, for drivers that show them in another way than by a header, such as those
    /// that sign requests or open sessions.
    ///
    /// # Errors
    /// [`FailureKind::Unreachable`] when they cannot be read; the text names the place.
    pub async fn secrets(&self) -> Result<Credentials, Failure> {
        let keys = self.inner.wire.keyring.current();
        keys.map(|keys| keys.credentials.clone())
            .map_err(|reason| self.not_made(FailureKind::Unreachable, &reason))
    }

    /// Makes the call, once.
    ///
    /// # Errors
    /// Says what is known about its effect.
    ///
    /// # Cancellation
    /// A call whose future is dropped may have had its effect, and says nothing about the peer.
    pub async fn call(&self, request: Request) -> Result<Answer, Failure> {
        self.ask(request, Ok).await
    }

    /// Makes the call and reads the answer as JSON. An answer that cannot be read is
    /// [`FailureKind::Ambiguous`](crate::FailureKind::Ambiguous).
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn json<T: DeserializeOwned>(&self, request: Request) -> Result<T, Failure> {
        self.ask(request, |answer| {
            serde_json::from_slice(&answer.body).map_err(|error| words::of_json_error(&error))
        })
        .await
    }

    /// Makes the call and reads the answer by `read`. A peer whose answers cannot be read does not work.
    pub(crate) async fn ask<T>(
        &self,
        request: Request,
        read: impl FnOnce(Answer) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let way = self.inner.ways.of(request.operation, request.subject.as_ref());
        let total = self.inner.wire.family.limits.total_of(request.answer_within);
        let until = Instant::now() + total;
        let slot = self.slot(&way, until, total).await?;
        let passage = way.enter().map_err(|lasting| self.held_back(&way, &lasting))?;
        let began = Instant::now();
        let (label, operation) = (&self.inner.wire.family.label, request.operation);
        failpoint::pass(format_args!("{label}.{operation}.before"));
        let asked_at = convert::time::now();
        let answer = self.inner.wire.call(&request, until).await;
        if let Ok(answer) = &answer {
            self.measure_clock(&answer.headers, asked_at);
        }
        failpoint::pass(format_args!("{label}.{operation}.after"));
        drop(slot);
        let (status, outcome) = match answer {
            Ok(answer) => {
                let unreadable =
                    |status, error| Trouble { status: Some(status), ..Trouble::ambiguous(error) };
                let status = answer.status;
                (Some(status), read(answer).map_err(|error| unreadable(status, error).into()))
            }
            Err(cause) => (cause.status(), Err(cause)),
        };
        let word = outcome.as_ref().map_or_else(Cause::word, |_| "ok");
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
            Err(Cause::NotMade { .. }) => way.operation.meter.held(),
            Ok(_) | Err(_) => way.operation.meter.made(word, took, request.items),
        }
        match outcome {
            Ok(answer) => {
                passage.works();
                Ok(answer)
            }
            Err(cause) => {
                if let Cause::NotMade { reason, .. } = &cause {
                    way.operation.not_made(reason);
                }
                Err(self.tell(&request, cause, passage))
            }
        }
    }

    /// Puts into words why the call did not do as asked, and lets the gates know.
    fn tell(&self, request: &Request, cause: Cause, passage: Passage<'_>) -> Failure {
        match cause {
            Cause::No { kind: kind @ FailureKind::Denied, status, words } => {
                let Denial { since, words, .. } = passage.denied(status, words);
                let since = format!(" since {}Z", bos_time::text(since));
                self.refusal(kind, request, &since, status, &words)
            }
            Cause::No { kind, status, words } => {
                passage.works();
                self.refusal(kind, request, "", status, &words)
            }
            Cause::Trouble(trouble) => {
                let (kind, status) = (trouble.kind, trouble.status);
                let lasting = passage.fails(trouble);
                Failure { kind, status, text: self.trouble(&lasting) }
            }
            Cause::NotMade { kind, reason } => self.not_made(kind, &reason),
        }
    }

    /// One of the calls that may be under way at the same time. Nobody waits for one while a gate is shut.
    async fn slot(&self, way: &Way, until: Instant, total: Duration) -> Result<SemaphorePermit<'_>, Failure> {
        if let Some(lasting) = way.closed() {
            return Err(self.held_back(way, &lasting));
        }
        match timeout_at(until, self.inner.slots.acquire()).await {
            // A slot that comes free at the last moment is of no use.
            Ok(slot) if Instant::now() < until => Ok(slot.expect("slots are never closed")),
            Ok(_) | Err(_) => {
                if let Some(lasting) = way.trouble() {
                    return Err(self.held_back(way, &lasting));
                }
                way.operation.meter.held();
                let Family { calls_in_flight, .. } = &self.inner.wire.family;
                let reason = format!("all of {calls_in_flight} calls under way took over {total:?}");
                way.operation.not_made(&reason);
                Err(self.not_made(FailureKind::Unreachable, &reason))
            }
        }
    }

    fn held_back(&self, way: &Way, lasting: &Lasting) -> Failure {
        way.operation.meter.held();
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
        let (method, path) = (&request.method, words::tidy(request.shown_path(), &[]));
        let colon = if words.is_empty() { "" } else { ": " };
        let text = self.told(format_args!("refused {method} {path}{since}: {status}{colon}{words}"));
        Failure { kind, status: Some(status), text }
    }

    fn trouble(&self, lasting: &Lasting) -> String {
        let (since, error) = (bos_time::text(lasting.since), &lasting.trouble.error);
        self.told(format_args!("failing since {since}Z: {error}"))
    }

    fn not_made(&self, kind: FailureKind, reason: &str) -> Failure {
        Failure { kind, status: None, text: self.told(format_args!("not called: {reason}")) }
    }

    /// The peer, and what is the matter with it: reads alone, and after words such as "waiting for".
    fn told(&self, what: fmt::Arguments<'_>) -> String {
        format!("{} at {} ({what})", self.inner.name, self.inner.wire.base.host_port())
    }
}
