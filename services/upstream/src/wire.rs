//! Sending of a call with its credentials.

use std::sync::Arc;

use http::{HeaderValue, StatusCode, header::ACCEPT};
use tokio::time::{Instant, timeout_at};

use chassis::request_id;

use crate::{
    Answer, Credentials, FailureKind, PeerError, PeerGroup, Request, Secret,
    base::BaseUrl,
    budget::MemoryBudget,
    exchange::{exchange, innermost},
    failure::FailureCause,
    grant::TokenSource,
    keyring::{self, PeerKeyring},
    late_check::{CallWithdrawn, guard},
};

/// Connection to one peer.
pub(crate) struct PeerWire {
    pub base: BaseUrl,
    pub keyring: PeerKeyring,
    pub group: PeerGroup,
    budget: MemoryBudget,
}

/// Credentials of one call.
enum CallIdentity<'a> {
    /// No credentials, or credentials in the request's own headers.
    Nothing,
    Bearer(&'a Secret),
    Basic(&'a str, &'a Secret),
}

impl PeerWire {
    /// Creates the connection to the peer at `url`.
    pub(crate) fn new(group: PeerGroup, url: &str, credentials: &str) -> Result<Self, PeerError> {
        let base = BaseUrl::parse(url, group.plain_http)?;
        let keyring = PeerKeyring::new(group.clone(), credentials)?;
        let budget = MemoryBudget::new(group.largest);
        Ok(Self { base, keyring, group, budget })
    }

    /// Makes the call, until `until` at the latest. A call is sent twice only if the peer refused a token that had
    /// been valid until then, and so did nothing.
    pub(crate) async fn call(&self, request: &Request, until: Instant) -> Result<Answer, FailureCause> {
        if !keyring::wanted(request) {
            let known = self.keyring.current().map(|keys| keys.credentials.secrets()).unwrap_or_default();
            return self.send(request, CallIdentity::Nothing, known, until).await;
        }
        let keys = self.keyring.current().map_err(not_reached)?;
        let secrets = keys.credentials.secrets();
        match (&keys.credentials, &keys.tokens) {
            (Credentials::Client(_), Some(tokens)) => {
                self.call_with_token(request, tokens, secrets, until).await
            }
            (Credentials::Token { token }, _) => {
                self.send(request, CallIdentity::Bearer(token), secrets, until).await
            }
            (Credentials::Password { username, password }, _) => {
                self.send(request, CallIdentity::Basic(username, password), secrets, until).await
            }
            (Credentials::None | Credentials::Keys { .. } | Credentials::Client(_), _) => {
                self.send(request, CallIdentity::Nothing, secrets, until).await
            }
        }
    }

    async fn call_with_token(
        &self,
        request: &Request,
        tokens: &TokenSource,
        secrets: Vec<Secret>,
        until: Instant,
    ) -> Result<Answer, FailureCause> {
        let token = self.token(tokens, until).await?;
        let answer = self.send(request, CallIdentity::Bearer(&token), secrets.clone(), until).await;
        match &answer {
            Err(FailureCause::No { status: StatusCode::UNAUTHORIZED, .. }) if tokens.refused(&token) => {
                let token = self.token(tokens, until).await?;
                let answer = self.send(request, CallIdentity::Bearer(&token), secrets, until).await;
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

    async fn token(&self, tokens: &TokenSource, until: Instant) -> Result<Secret, FailureCause> {
        match timeout_at(until, tokens.token()).await {
            Ok(token) => token.map_err(|failure| not_reached(failure.text)),
            Err(_) => Err(not_reached(format!("no token came within {:?}", self.group.limits.total))),
        }
    }

    async fn send(
        &self,
        request: &Request,
        identity: CallIdentity<'_>,
        mut secrets: Vec<Secret>,
        until: Instant,
    ) -> Result<Answer, FailureCause> {
        let client = self.group.clients.current(self.base.is_encrypted()).map_err(not_reached)?;
        let message = self.message(&client, request, identity)?;
        secrets.extend(keyring::shown_to_peer(&message));
        secrets.extend_from_slice(&request.hidden);
        let limits = self.group.limits.of(request.answer_within);
        if request.still_wanted.as_ref().is_some_and(|still_wanted| !still_wanted()) {
            return Err(not_reached(CallWithdrawn.to_string()));
        }
        exchange(&client, message, &limits, &self.budget, until, &secrets).await
    }

    fn message(
        &self,
        client: &reqwest::Client,
        request: &Request,
        identity: CallIdentity<'_>,
    ) -> Result<reqwest::Request, FailureCause> {
        let url = self.base.join(request).map_err(never_sent)?;
        let mut builder = client.request(request.method.clone(), url).headers(request.headers.clone());
        if !request.headers.contains_key(ACCEPT) {
            builder = builder.header(ACCEPT, HeaderValue::from_static("application/json"));
        }
        if let Some(id) = request_id::current() {
            builder = builder.header(request_id::HEADER, id);
        }
        builder = match identity {
            CallIdentity::Nothing => builder,
            CallIdentity::Bearer(token) => builder.bearer_auth(token.reveal()),
            CallIdentity::Basic(username, password) => builder.basic_auth(username, Some(password.reveal())),
        };
        builder = match (&request.body, &request.still_wanted) {
            (None, _) => builder,
            (Some(body), None) => builder.body(body.clone()),
            (Some(body), Some(still_wanted)) => guard(builder, body.clone(), Arc::clone(still_wanted)),
        };
        builder.build().map_err(|error| never_sent(innermost(&error)))
    }
}

/// A call that was not sent, and may succeed later.
fn not_reached(reason: String) -> FailureCause {
    FailureCause::NotMade { kind: FailureKind::Unreachable, reason }
}

/// A call that cannot be sent at all.
fn never_sent(reason: String) -> FailureCause {
    FailureCause::NotMade { kind: FailureKind::Denied, reason }
}
