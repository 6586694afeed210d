//! A system that is called over HTTP.

use std::sync::Arc;

use chassis::{
    process::peers::{self, KnownPeer, PeerStanding},
    settings,
};
use domain::core::clock_offset::ClockOffset;
use http::StatusCode;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use crate::{
    Answer, CredentialUse, Credentials, Failure, FailureKind, PeerError, Request, SecretText,
    calls::PeerCalls,
    failure::FailureCause,
    grant::TokenSource,
    keyring::PeerKeyring,
    settings::{CallSettings, warn_if_unverified},
    wire::CallIdentity,
};

/// A system at one address. Clones share connections, circuits and counters.
#[derive(Clone)]
pub struct Peer {
    inner: Arc<PeerInner>,
}

struct PeerInner {
    calls: PeerCalls,
    keyring: PeerKeyring,
}

impl KnownPeer for PeerInner {
    fn standing(&self) -> PeerStanding {
        let Self { calls, .. } = self;
        let address = calls.wire.base.host_port().to_owned();
        PeerStanding { name: calls.name.clone(), address, state: calls.peer_state() }
    }
}

impl Peer {
    /// Creates the peer called `name` in texts and metrics, such as `HSM`. It is among the peers that the part lists.
    ///
    /// # Errors
    /// Names the setting that cannot be used. The peer is not called.
    pub fn new(name: impl Into<String>, settings: &settings::Peer) -> Result<Self, PeerError> {
        let name = name.into();
        warn_if_unverified(&name, settings);
        let peer = Self::of(CallSettings::new(&name, settings)?, name, &settings.url, &settings.credentials)?;
        peers::register(&peer.inner);
        Ok(peer)
    }

    /// Creates the peer at `url`, with credentials from the place `credentials`.
    pub(crate) fn of(
        settings: CallSettings,
        name: String,
        url: &str,
        credentials: &str,
    ) -> Result<Self, PeerError> {
        let calls = PeerCalls::new(settings.clone(), name, url)?;
        let keyring = PeerKeyring::new(settings, credentials)?;
        Ok(Self { inner: Arc::new(PeerInner { calls, keyring }) })
    }

    /// Creates the peer at `url`, with `credentials` that do not change.
    pub(crate) fn with(
        settings: CallSettings,
        name: String,
        url: &str,
        credentials: Credentials,
    ) -> Result<Self, PeerError> {
        let calls = PeerCalls::new(settings.clone(), name, url)?;
        let keyring = PeerKeyring::holding(settings, credentials);
        Ok(Self { inner: Arc::new(PeerInner { calls, keyring }) })
    }

    /// Reads the credentials and logs a warning if they cannot be used, or cannot be `shown` to the peer as it asks. The peer
    /// is created all the same, since credentials may be mounted later. `section` is the section of the settings, such as
    /// `power.pcs`.
    pub fn check_credentials(&self, section: &str, shown: CredentialUse) {
        if let Some(reason) = self.credential_flaw(shown) {
            let setting = format!("{section}.credentials");
            tracing::warn!(peer = self.name(), setting, reason, "credentials cannot be used");
        }
    }

    /// Reads the credentials, and returns why they cannot be used or `shown` to the peer; `None`: they can, or none are needed.
    pub fn credential_flaw(&self, shown: CredentialUse) -> Option<String> {
        let keys = self.inner.keyring.current();
        keys.map_or_else(Some, |keys| keys.credentials.flaw(shown))
    }

    /// Name of the system.
    pub fn name(&self) -> &str {
        &self.inner.calls.name
    }

    /// Base URL of the system, without a slash at the end.
    pub fn url(&self) -> &str {
        self.inner.calls.wire.base.as_str()
    }

    /// Largest number of items in one call.
    pub fn batch_size(&self) -> usize {
        self.inner.calls.wire.settings.batch_size
    }

    /// Offset of the system's clock from ours, as far as the dates of its answers show.
    pub fn clock(&self) -> Option<ClockOffset> {
        self.inner.calls.clock()
    }

    /// Returns the current credentials, for drivers that do not send them in a header but sign requests or open
    /// sessions.
    ///
    /// # Errors
    /// [`FailureKind::Unreachable`] when the credentials cannot be read; the text names the place.
    pub async fn secrets(&self) -> Result<Credentials, Failure> {
        let keys = self.inner.keyring.current();
        keys.map(|keys| keys.credentials.clone())
            .map_err(|reason| self.inner.calls.not_made(FailureKind::Unreachable, &reason))
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
        self.ask(request, |answer| answer.json()).await
    }

    /// Makes the call and parses the answer with `read`. An unreadable answer counts as a failure of the peer, with the
    /// error of `read` as its text.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn ask<T>(
        &self,
        request: Request,
        read: impl FnOnce(Answer) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let calls = &self.inner.calls;
        let until = calls.deadline(&request);
        calls.make(&request, until, self.send(&request, until), read).await
    }

    /// Sends the request with its credentials, until `until` at the latest. A request is sent twice only if the peer
    /// refused a token that had been valid until then, and so did nothing.
    async fn send(&self, request: &Request, until: Instant) -> Result<Answer, FailureCause> {
        let PeerInner { calls, keyring } = &*self.inner;
        if !request.needs_credentials() {
            let known = keyring.current().map(|keys| keys.credentials.secrets()).unwrap_or_default();
            return calls.wire.send(request, CallIdentity::Nothing, known, until).await;
        }
        let keys = keyring.current().map_err(FailureCause::not_reached)?;
        let secrets = keys.credentials.secrets();
        let identity = match (&keys.credentials, &keys.tokens) {
            (Credentials::Client(_), Some(tokens)) => {
                return self.send_with_token(request, tokens, secrets, until).await;
            }
            (Credentials::Token { token }, _) => CallIdentity::Bearer(token),
            (Credentials::Password { username, password }, _) => CallIdentity::Basic(username, password),
            (Credentials::None | Credentials::Keys { .. } | Credentials::Client(_), _) => {
                CallIdentity::Nothing
            }
        };
        calls.wire.send(request, identity, secrets, until).await
    }

    async fn send_with_token(
        &self,
        request: &Request,
        tokens: &TokenSource,
        secrets: Vec<SecretText>,
        until: Instant,
    ) -> Result<Answer, FailureCause> {
        let wire = &self.inner.calls.wire;
        let token = self.token(tokens, until).await?;
        let answer = wire.send(request, CallIdentity::Bearer(&token), secrets.clone(), until).await;
        match &answer {
            Err(FailureCause::No { status: StatusCode::UNAUTHORIZED, .. }) if tokens.refused(&token) => {
                let token = self.token(tokens, until).await?;
                let answer = wire.send(request, CallIdentity::Bearer(&token), secrets, until).await;
                if answer.is_ok() {
                    tokens.worked(&token);
                }
                answer
            }
            Ok(_) => {
                tokens.worked(&token);
                answer
            }
            Err(_) => answer,
        }
    }

    async fn token(&self, tokens: &TokenSource, until: Instant) -> Result<SecretText, FailureCause> {
        match timeout_at(until, tokens.token()).await {
            Ok(token) => token.map_err(|failure| FailureCause::not_reached(failure.text)),
            Err(_) => {
                let total = self.inner.calls.wire.settings.limits.total;
                Err(FailureCause::not_reached(format!("no token came within {total:?}")))
            }
        }
    }
}
