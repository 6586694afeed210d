//! Bearer tokens that are fetched (OAuth2 client credentials) and reused until they expire.

use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;

use crate::{
    Answer, Failure, PeerError, Request, SecretText, calls::PeerCalls, credentials::ClientGrant,
    settings::CallSettings, wire::CallIdentity,
};

/// Lifetime of a token whose source states none.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(60);

/// Longest time for which a token is kept, also if its source allows more.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Last part of its lifetime in which a token is no longer used, so that it is still valid on arrival.
const MARGIN: f64 = 0.1;

/// Age below which a refused token that never worked is kept. A fresh token is hardly replaced by a better one, and
/// each refused call would fetch one more.
const FRESH: Duration = Duration::from_secs(10);

/// Fetches and caches tokens (single flight).
pub(crate) struct TokenSource {
    calls: PeerCalls,
    grant: ClientGrant,
    token: Mutex<Option<CachedToken>>,
    fetching: tokio::sync::Mutex<()>,
}

struct CachedToken {
    secret: SecretText,
    fetched: Instant,
    good_until: Instant,
    worked: bool,
}

/// The answer of a token endpoint (RFC 6749, 5.1).
#[derive(Deserialize)]
struct TokenReply {
    access_token: SecretText,
    expires_in: Option<u64>,
}

impl TokenSource {
    /// Creates a source that is called with these `settings`.
    pub(crate) fn new(settings: CallSettings, grant: ClientGrant) -> Result<Self, PeerError> {
        let calls = PeerCalls::new(settings, "token source".to_owned(), &grant.token_url)?;
        Ok(Self { calls, grant, token: Mutex::new(None), fetching: tokio::sync::Mutex::new(()) })
    }

    /// Returns a valid token.
    pub(crate) async fn token(&self) -> Result<SecretText, Failure> {
        if let Some(secret) = self.good() {
            return Ok(secret);
        }
        let _alone = self.fetching.lock().await;
        match self.good() {
            Some(secret) => Ok(secret),
            None => self.fetch().await,
        }
    }

    /// Records that the peer accepted the token.
    pub(crate) fn worked(&self, secret: &SecretText) {
        if let Some(token) = self.token.lock().as_mut().filter(|token| token.secret == *secret) {
            token.worked = true;
        }
    }

    /// Records that the peer refused the token. Returns whether a retry with another token makes sense.
    pub(crate) fn refused(&self, secret: &SecretText) -> bool {
        let mut token = self.token.lock();
        match &*token {
            Some(known) if known.secret != *secret => true,
            Some(known) if !known.worked && known.fetched.elapsed() < FRESH => false,
            Some(_) => {
                *token = None;
                true
            }
            None => true,
        }
    }

    fn good(&self) -> Option<SecretText> {
        let token = self.token.lock();
        token.as_ref().filter(|token| Instant::now() < token.good_until).map(|token| token.secret.clone())
    }

    async fn fetch(&self) -> Result<SecretText, Failure> {
        let ClientGrant { client_id, client_secret, scope, .. } = &self.grant;
        let mut fields = vec![
            ("grant_type", "client_credentials"),
            ("client_id", client_id),
            ("client_secret", client_secret.reveal()),
        ];
        if !scope.is_empty() {
            fields.push(("scope", scope));
        }
        let request = Request::post("token", "").form(&fields).hiding(client_secret.clone());
        let asked = Instant::now();
        // The parser's own text could repeat the token.
        let read = |answer: Answer| {
            serde_json::from_slice::<TokenReply>(&answer.body)
                .map_err(|_| "the answer holds no token".to_owned())
        };
        let until = self.calls.deadline(&request);
        let sending = self.calls.wire.send(&request, CallIdentity::Nothing, Vec::new(), until);
        let granted = self.calls.make(&request, until, sending, read).await?;
        let life = granted.expires_in.map_or(DEFAULT_LIFETIME, Duration::from_secs).min(LONGEST);
        *self.token.lock() = Some(CachedToken {
            secret: granted.access_token.clone(),
            fetched: Instant::now(),
            good_until: asked + life.mul_f64(1.0 - MARGIN),
            worked: false,
        });
        Ok(granted.access_token)
    }
}
