//! Sending of a call with its credentials.

use std::sync::Arc;

use http::{
    HeaderValue,
    header::{ACCEPT, AUTHORIZATION},
};
use tokio::time::Instant;

use chassis::{mesh::request_id, process::traces};

use crate::{
    Answer, FailureKind, PeerError, Request, SecretText,
    base::BaseUrl,
    budget::MemoryBudget,
    exchange::{exchange, innermost},
    failure::FailureCause,
    late_check::{CallWithdrawn, guard},
    request::X_AUTH_TOKEN,
    settings::CallSettings,
};

/// Connection to one peer.
pub(crate) struct PeerWire {
    pub base: BaseUrl,
    pub settings: CallSettings,
    budget: MemoryBudget,
}

/// Credentials of one call.
pub(crate) enum CallIdentity<'a> {
    /// No credentials, or credentials in the request's own headers.
    Nothing,
    Bearer(&'a SecretText),
    Basic(&'a str, &'a SecretText),
}

impl PeerWire {
    /// Creates the connection to the peer at `url`.
    pub(crate) fn new(settings: CallSettings, url: &str) -> Result<Self, PeerError> {
        let base = BaseUrl::parse(url, settings.plain_http)?;
        let budget = MemoryBudget::new(settings.largest);
        Ok(Self { base, settings, budget })
    }

    /// Sends the request, until `until` at the latest. No text shows `secrets`, or the credentials that are sent.
    pub(crate) async fn send(
        &self,
        request: &Request,
        identity: CallIdentity<'_>,
        mut secrets: Vec<SecretText>,
        until: Instant,
    ) -> Result<Answer, FailureCause> {
        let client =
            self.settings.clients.current(self.base.is_encrypted()).map_err(FailureCause::not_reached)?;
        let message = self.message(&client, request, identity)?;
        secrets.extend(shown_to_peer(&message));
        secrets.extend_from_slice(&request.hidden);
        let limits = self.settings.limits.of(request.answer_within);
        if request.still_wanted.as_ref().is_some_and(|still_wanted| !still_wanted()) {
            return Err(FailureCause::not_reached(CallWithdrawn.to_string()));
        }
        exchange(&client, message, &limits, request.also_answer, &self.budget, until, &secrets).await
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
        for (name, value) in traces::outgoing() {
            builder = builder.header(name, value);
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

/// A call that cannot be sent at all.
fn never_sent(reason: String) -> FailureCause {
    FailureCause::NotMade { kind: FailureKind::Denied, reason }
}

/// Returns the credentials in the headers of a request, without their scheme; error texts must not show them.
fn shown_to_peer(request: &reqwest::Request) -> Vec<SecretText> {
    let headers = [AUTHORIZATION.as_str(), X_AUTH_TOKEN].into_iter();
    let values = headers.filter_map(|name| request.headers().get(name)?.to_str().ok());
    values.map(|value| SecretText::new(value.split_once(' ').map_or(value, |(_, secret)| secret))).collect()
}
