//! How a call gets to its peer with the right credentials.

use std::sync::Arc;

use http::{HeaderValue, StatusCode, header::ACCEPT};
use tokio::time::{Instant, timeout_at};

use chassis::request_id;

use crate::{
    Answer, Credentials, FailureKind, Family, PeerError, Request, Secret,
    base::Base,
    exchange::{exchange, innermost},
    failure::Cause,
    grant::TokenSource,
    keyring::{self, Keyring},
    last_look::{HandedOver, guard},
    room::Room,
};

/// The way to one peer.
pub(crate) struct Wire {
    pub base: Base,
    pub keyring: Keyring,
    pub family: Family,
    room: Room,
}

/// What a call shows of who we are.
enum Shown<'a> {
    /// Nothing, or what it brings itself.
    Nothing,
    Bearer(&'a Secret),
    Basic(&'a str, &'a Secret),
}

impl Wire {
    /// The way to the peer at `url`.
    pub(crate) fn new(family: Family, url: &str, credentials: &str) -> Result<Self, PeerError> {
        let base = Base::parse(url, family.plain_http)?;
        let keyring = Keyring::new(family.clone(), credentials)?;
        let room = Room::new(family.largest);
        Ok(Self { base, keyring, family, room })
    }

    /// Makes the call, until `until` at the latest. It is made twice only if the peer did not take a token that
    /// was good until then, and so did nothing.
    pub(crate) async fn call(&self, request: &Request, until: Instant) -> Result<Answer, Cause> {
        if !keyring::wanted(request) {
            let known = self.keyring.current().map(|keys| keys.credentials.secrets()).unwrap_or_default();
            return self.send(request, Shown::Nothing, known, until).await;
        }
        let keys = self.keyring.current().map_err(not_reached)?;
        let secrets = keys.credentials.secrets();
        match (&keys.credentials, &keys.tokens) {
            (Credentials::Client(_), Some(tokens)) => {
                self.call_with_token(request, tokens, secrets, until).await
            }
            (Credentials::Token { token }, _) => {
                self.send(request, Shown::Bearer(token), secrets, until).await
            }
            (Credentials::Password { username, password }, _) => {
                self.send(request, Shown::Basic(username, password), secrets, until).await
            }
            (Credentials::None | Credentials::Keys { .. } | Credentials::Client(_), _) => {
                self.send(request, Shown::Nothing, secrets, until).await
            }
        }
    }

    async fn call_with_token(
        &self,
        request: &Request,
        tokens: &TokenSource,
        secrets: Vec<Secret>,
        until: Instant,
    ) -> Result<Answer, Cause> {
        let token = self.token(tokens, until).await?;
        let answer = self.send(request, Shown::Bearer(&token), secrets.clone(), until).await;
        match &answer {
            Err(Cause::No { status: StatusCode::UNAUTHORIZED, .. }) if tokens.refused(&token) => {
                let token = self.token(tokens, until).await?;
                let answer = self.send(request, Shown::Bearer(&token), secrets, until).await;
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

    async fn token(&self, tokens: &TokenSource, until: Instant) -> Result<Secret, Cause> {
        match timeout_at(until, tokens.token()).await {
            Ok(token) => token.map_err(|failure| not_reached(failure.text)),
            Err(_) => Err(not_reached(format!("no token came within {:?}", self.family.limits.total))),
        }
    }

    async fn send(
        &self,
        request: &Request,
        shown: Shown<'_>,
        mut secrets: Vec<Secret>,
        until: Instant,
    ) -> Result<Answer, Cause> {
        let client = self.family.clients.current(self.base.is_encrypted()).map_err(not_reached)?;
        let message = self.message(&client, request, shown)?;
        secrets.extend(keyring::shown_to_peer(&message));
        secrets.extend_from_slice(&request.hidden);
        let limits = self.family.limits.of(request.answer_within);
        if request.still_wanted.as_ref().is_some_and(|still_wanted| !still_wanted()) {
            return Err(not_reached(HandedOver.to_string()));
        }
        exchange(&client, message, &limits, &self.room, until, &secrets).await
    }

    fn message(
        &self,
        client: &reqwest::Client,
        request: &Request,
        shown: Shown<'_>,
    ) -> Result<reqwest::Request, Cause> {
        let never = |reason| Cause::NotMade { kind: FailureKind::Denied, reason };
        let url = self.base.join(request).map_err(never)?;
        let mut builder = client.request(request.method.clone(), url).headers(request.headers.clone());
        if !request.headers.contains_key(ACCEPT) {
            builder = builder.header(ACCEPT, HeaderValue::from_static("application/json"));
        }
        if let Some(id) = request_id::current() {
            builder = builder.header(request_id::HEADER, id);
        }
        builder = match shown {
            Shown::Nothing => builder,
            Shown::Bearer(token) => builder.bearer_auth(token.reveal()),
            Shown::Basic(username, password) => builder.basic_auth(username, Some(password.reveal())),
        };
        builder = match (&request.body, &request.still_wanted) {
            (None, _) => builder,
            (Some(body), None) => builder.body(body.clone()),
            (Some(body), Some(still_wanted)) => guard(builder, body.clone(), Arc::clone(still_wanted)),
        };
        builder.build().map_err(|error| never(innermost(&error)))
    }
}

/// Nothing was sent, and may be another time.
fn not_reached(reason: String) -> Cause {
    Cause::NotMade { kind: FailureKind::Unreachable, reason }
}
