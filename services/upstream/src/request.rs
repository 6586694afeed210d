//! A call, as drivers describe it.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header::AUTHORIZATION};
use serde::{Serialize, de::DeserializeOwned};

use crate::{SecretText, error_text, late_check::StillWanted};

/// Header in which some APIs, such as Redfish, expect tokens.
pub(crate) const X_AUTH_TOKEN: &str = "x-auth-token";

/// Call to be made. The path is relative to the base URL of the peer.
#[derive(Clone)]
pub struct Request {
    pub(crate) operation: &'static str,
    pub(crate) subject: Option<Arc<str>>,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
    pub(crate) answer_within: Option<Duration>,
    pub(crate) items: u64,
    pub(crate) anonymous: bool,
    pub(crate) hidden: Vec<SecretText>,
    pub(crate) still_wanted: Option<StillWanted>,
    pub(crate) also_answer: Option<StatusCode>,
}

impl Request {
    /// A call of `method` on `path`. `operation` is one word such as `transitions_create`: calls of an operation
    /// share a circuit breaker and their metrics.
    pub fn new(operation: &'static str, method: Method, path: impl Into<String>) -> Self {
        Self {
            operation,
            subject: None,
            method,
            path: path.into(),
            query: Vec::new(),
            headers: HeaderMap::new(),
            body: None,
            answer_within: None,
            items: 0,
            anonymous: false,
            hidden: Vec::new(),
            still_wanted: None,
            also_answer: None,
        }
    }

    /// [`Self::new`] with GET.
    pub fn get(operation: &'static str, path: impl Into<String>) -> Self {
        Self::new(operation, Method::GET, path)
    }

    /// [`Self::new`] with POST.
    pub fn post(operation: &'static str, path: impl Into<String>) -> Self {
        Self::new(operation, Method::POST, path)
    }

    /// [`Self::new`] with PUT.
    pub fn put(operation: &'static str, path: impl Into<String>) -> Self {
        Self::new(operation, Method::PUT, path)
    }

    /// [`Self::new`] with PATCH.
    pub fn patch(operation: &'static str, path: impl Into<String>) -> Self {
        Self::new(operation, Method::PATCH, path)
    }

    /// [`Self::new`] with DELETE.
    pub fn delete(operation: &'static str, path: impl Into<String>) -> Self {
        Self::new(operation, Method::DELETE, path)
    }

    /// Restricts the call to `subject`, such as one tenant. The subject has a circuit of its own within the
    /// operation: bad answers about one subject do not hold back calls about others.
    #[must_use]
    pub fn about(mut self, subject: &str) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Adds a query parameter. Queries never appear in texts or logs.
    #[must_use]
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push((name.into(), value.into()));
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sends `body` as JSON.
    #[must_use]
    pub fn json(mut self, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).expect("bodies have text keys and no failing serializers");
        self.body = Some(body.into());
        self.header(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }

    /// Sends `fields` as an HTML form.
    #[must_use]
    pub fn form(mut self, fields: &[(&str, &str)]) -> Self {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.body = Some(body.into());
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        self.header(http::header::CONTENT_TYPE, kind)
    }

    /// Sends `body` unchanged; its content type is set by [`Self::header`].
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Number of items, such as nodes, in the call; for metrics.
    #[must_use]
    pub fn items(mut self, count: usize) -> Self {
        self.items = u64::try_from(count).unwrap_or(u64::MAX);
        self
    }

    /// Sends no credentials. A call with an `Authorization` or `X-Auth-Token` header of its own gets none anyway.
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// Removes `secret`, a part of the body, from error texts, which may repeat the request.
    #[must_use]
    pub fn hiding(mut self, secret: SecretText) -> Self {
        self.hidden.push(secret);
        self
    }

    /// Calls `still_wanted` before the call is sent, after every wait for a slot or for credentials, and once more
    /// before the body is written. If the result is false, the peer receives no whole request and the call fails as
    /// [`FailureKind::Unreachable`](crate::FailureKind::Unreachable).
    #[must_use]
    pub fn while_wanted(mut self, still_wanted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.still_wanted = Some(Arc::new(still_wanted));
        self
    }

    /// Treats `status` as an answer with a body, like 2xx: the reader of the body decides whether the peer or something
    /// before it has answered.
    #[must_use]
    pub fn also_answer(mut self, status: StatusCode) -> Self {
        self.also_answer = Some(status);
        self
    }

    /// Deadline for the beginning of the answer, instead of the setting of the peer; for the `*_read_timeout`
    /// options. The deadline of the whole call grows accordingly.
    #[must_use]
    pub fn answer_within(mut self, deadline: Duration) -> Self {
        self.answer_within = Some(deadline);
        self
    }
}

impl Request {
    /// Returns whether the peer is to be shown credentials.
    pub(crate) fn needs_credentials(&self) -> bool {
        let brings = |name| self.headers.contains_key(name);
        !self.anonymous && !brings(AUTHORIZATION.as_str()) && !brings(X_AUTH_TOKEN)
    }

    /// Path for texts and logs, without the query, which may hold a signature.
    pub(crate) fn shown_path(&self) -> &str {
        match self.path.split(['?', '#']).next() {
            Some("") | None => "/",
            Some(path) => path,
        }
    }
}

/// Omits headers, query and body, which may hold secrets.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.method, self.shown_path(), self.operation)
    }
}

/// A successful answer, read to its end.
#[derive(Clone)]
pub struct Answer {
    /// 2xx, or the status that [`Request::also_answer`] named.
    pub status: StatusCode,
    /// Headers of the answer.
    pub headers: HeaderMap,
    /// Body, no larger than the setting of the peer allows.
    pub body: Bytes,
}

impl Answer {
    /// Reads the body as JSON.
    ///
    /// # Errors
    /// The text says where the body differs from what was expected, without the wrong value.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice(&self.body).map_err(|error| error_text::of_json_error(&error))
    }
}

/// Omits headers and body, which may hold secrets such as session tokens.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.status, self.body.len())
    }
}
