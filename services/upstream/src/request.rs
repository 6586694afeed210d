//! One call, as drivers describe it.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde::Serialize;

use crate::{Secret, last_look::StillWanted};

/// A call to be made. Paths are relative to the peer's base URL.
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
    pub(crate) hidden: Vec<Secret>,
    pub(crate) still_wanted: Option<StillWanted>,
}

impl Request {
    /// A call of `method` on `path`. `operation` is one word such as `transitions_create`: calls of an operation
    /// share a gate and are counted together.
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

    /// Says that the call is about `subject` alone, such as one tenant. It has a gate of its own within the operation:
    /// bad answers about it keep nobody from calling about others.
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

    /// Sends `body` as it is; its content type is a header like others.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// How many items, such as nodes, the call is about. They are counted.
    #[must_use]
    pub fn items(mut self, count: usize) -> Self {
        self.items = u64::try_from(count).unwrap_or(u64::MAX);
        self
    }

    /// Sends no credentials. A call that brings an `Authorization` or `X-Auth-Token` header of its own gets none
    /// anyway.
    #[must_use]
    pub fn anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// Keeps `secret`, which the body holds, out of texts even if the peer repeats it.
    #[must_use]
    pub fn hiding(mut self, secret: Secret) -> Self {
        self.hidden.push(secret);
        self
    }

    /// Asks `still_wanted` before the call goes out, after every wait for a place or for credentials, and once more when
    /// the connection stands and the body is to be written, if there is one. When it says no, the peer gets no whole
    /// request and the call fails as [`FailureKind::Unreachable`](crate::FailureKind::Unreachable).
    #[must_use]
    pub fn while_wanted(mut self, still_wanted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.still_wanted = Some(Arc::new(still_wanted));
        self
    }

    /// How long the answer may take to begin, instead of the peer's setting; for the `*_read_timeout` options. The
    /// time for the whole call grows with it.
    #[must_use]
    pub fn answer_within(mut self, deadline: Duration) -> Self {
        self.answer_within = Some(deadline);
        self
    }
}

impl Request {
    /// The path for texts and logs: a query that a driver wrote into it may hold a signature.
    pub(crate) fn shown_path(&self) -> &str {
        match self.path.split(['?', '#']).next() {
            Some("") | None => "/",
            Some(path) => path,
        }
    }
}

/// Headers, queries and bodies may hold secrets, and do not show.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.method, self.shown_path(), self.operation)
    }
}

/// A successful answer, read to its end.
#[derive(Clone)]
pub struct Answer {
    /// 2xx.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, no larger than the peer's setting allows.
    pub body: Bytes,
}

/// Headers and bodies may hold secrets, such as tokens of sessions, and do not show.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.status, self.body.len())
    }
}
