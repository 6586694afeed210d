//! A request as a system receives it, and its answer. No sockets: an answer is a value.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

/// A request to one of the systems.
pub(crate) struct SystemCall<'a> {
    /// Method and path pattern.
    pub(crate) operation: &'static str,
    /// The parts of the path that the pattern leaves open.
    pub(crate) names: Vec<&'a str>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: &'a [u8],
    pub(crate) omit: OmittedShare,
    /// Whether the power service's worker of a transition that this asks for dies before it begins.
    pub(crate) worker_dies: bool,
}

/// A system's answer.
#[derive(Clone, Debug)]
pub(crate) struct SystemAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
    /// Number of items, such as nodes, in the request.
    pub(crate) items: usize,
}

/// Share of members that a system leaves out of its lists.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OmittedShare {
    pub(crate) fraction: f64,
    pub(crate) seed: u64,
}

impl OmittedShare {
    /// Returns whether `id` is left out. The same ids are always left out, or a client that repeats its request would
    /// get them all.
    pub(crate) fn leaves_out(self, id: &str) -> bool {
        self.fraction > 0.0 && unit(self.seed, id) < self.fraction
    }
}

/// Returns a number from 0 to 1 derived from the text: FNV-1a, whose low bits are then spread over all.
fn unit(seed: u64, text: &str) -> f64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let spread = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (spread >> 11) as f64 / (1_u64 << 53) as f64
}

impl SystemCall<'_> {
    /// The first value of a query parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters(name).next()
    }

    /// Every value of a query parameter that can be repeated.
    pub(crate) fn parameters<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s str> {
        self.query.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    /// An answer that names the first mistake.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, SystemAnswer> {
        serde_json::from_slice(self.body).map_err(|error| {
            SystemAnswer::problem(StatusCode::BAD_REQUEST, "Bad Request", &error.to_string())
        })
    }

    /// First segment of the path that fills a placeholder.
    pub(crate) fn name(&self) -> &str {
        self.names.first().copied().unwrap_or_default()
    }
}

impl SystemAnswer {
    /// A document.
    pub(crate) fn json(value: &impl Serialize) -> Self {
        let body = serde_json::to_vec(value).expect("answers have text keys and finite numbers");
        Self::of(StatusCode::OK, "application/json", body)
    }

    /// A refusal in the form of RFC 7807.
    pub(crate) fn problem(status: StatusCode, title: &str, detail: &str) -> Self {
        let body =
            json!({"type": "about:blank", "title": title, "detail": detail, "status": status.as_u16()});
        Self { status, ..Self::of(status, "application/problem+json", body.to_string()) }
    }

    pub(crate) fn not_found(detail: &str) -> Self {
        Self::problem(StatusCode::NOT_FOUND, "Not Found", detail)
    }

    pub(crate) fn bad_request(detail: &str) -> Self {
        Self::problem(StatusCode::BAD_REQUEST, "Bad Request", detail)
    }

    /// An answer without a body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new(), items: 0 }
    }

    pub(crate) fn of(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Self {
        let headers = vec![(header::CONTENT_TYPE, HeaderValue::from_static(media_type))];
        Self { status, headers, body: body.into(), items: 0 }
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("headers are made of tokens, digests and paths");
        self.headers.push((name, value));
        self
    }

    /// Notes how many things the request was about.
    pub(crate) fn about(mut self, items: usize) -> Self {
        self.items = items;
        self
    }
}

/// Either way it is an answer.
pub(crate) fn either(result: Result<SystemAnswer, SystemAnswer>) -> SystemAnswer {
    result.unwrap_or_else(|refusal| refusal)
}
