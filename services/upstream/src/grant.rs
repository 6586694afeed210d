//! Bearer tokens that are fetched (OAuth2 client credentials) and used as long as they are good.

use std::{future::Future, pin::Pin, time::Duration};

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;

use crate::{Answer, Failure, Family, Peer, PeerError, Request, Secret, credentials::Grant};

/// How long a token is good of which its source does not say so.
const UNTOLD: Duration = Duration::from_secs(60);

/// Longest time for which a token is kept, whatever its source says.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Part of its life for which a token is not used any more, so that it is still good when it arrives.
const MARGIN: f64 = 0.1;

/// A token that never worked is thrown away again only after this long. One that its source just gave is hardly
/// replaced by a better one, and each call that is refused would fetch one more.
const NEW: Duration = Duration::from_secs(10);

/// Fetches tokens, one at a time.
pub(crate) struct TokenSource {
    peer: Peer,
    grant: Grant,
    token: Mutex<Option<Token>>,
    fetching: tokio::sync::Mutex<()>,
}

struct Token {
    secret: Secret,
    fetched: Instant,
    good_until: Instant,
    worked: bool,
}

/// The answer of a token endpoint (RFC 6749, 5.1).
#[derive(Deserialize)]
struct Granted {
    access_token: Secret,
    expires_in: Option<u64>,
}

impl TokenSource {
    /// A source that is called as its `family` is.
    pub(crate) fn new(family: &Family, grant: Grant) -> Result<Self, PeerError> {
        let peer = family.peer("token source", &grant.token_url, "")?;
        Ok(Self { peer, grant, token: Mutex::new(None), fetching: tokio::sync::Mutex::new(()) })
    }

    /// A token that is good. Boxed, since fetching it is a call of a peer, as is what it is fetched for.
    pub(crate) fn token(&self) -> Pin<Box<dyn Future<Output = Result<Secret, Failure>> + Send + '_>> {
        Box::pin(async {
            if let Some(secret) = self.good() {
                return Ok(secret);
            }
            let _alone = self.fetching.lock().await;
            match self.good() {
                Some(secret) => Ok(secret),
                None => self.fetch().await,
            }
        })
    }

    /// The peer took the token.
    pub(crate) fn worked(&self, secret: &Secret) {
        if let Some(token) = self.token.lock().as_mut().filter(|token| token.secret == *secret) {
            token.worked = true;
        }
    }

    /// The peer did not take the token. Tells whether it is worth trying another.
    pub(crate) fn refused(&self, secret: &Secret) -> bool {
        let mut token = self.token.lock();
        match &*token {
            Some(known) if known.secret != *secret => true,
            Some(known) if !known.worked && known.fetched.elapsed() < NEW => false,
            Some(_) => {
                *token = None;
                true
            }
            None => true,
        }
    }

    fn good(&self) -> Option<Secret> {
        let token = self.token.lock();
        token.as_ref().filter(|token| Instant::now() < token.good_until).map(|token| token.secret.clone())
    }

    async fn fetch(&self) -> Result<Secret, Failure> {
        let Grant { client_id, client_secret, scope, .. } = &self.grant;
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
        // The parser's own words could repeat the token.
        let unusable = |_| "the answer holds no token".to_owned();
        let read = |answer: Answer| serde_json::from_slice::<Granted>(&answer.body).map_err(unusable);
        let granted = self.peer.ask(request, read).await?;
        let life = granted.expires_in.map_or(UNTOLD, Duration::from_secs).min(LONGEST);
        *self.token.lock() = Some(Token {
            secret: granted.access_token.clone(),
            fetched: Instant::now(),
            good_until: asked + life.mul_f64(1.0 - MARGIN),
            worked: false,
        });
        Ok(granted.access_token)
    }
}
