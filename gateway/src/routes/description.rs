//! `/openapi.json` and `/ui/`: the description of everything that is served, for programs and for people.

use axum::{
    Extension,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{
    HeaderValue, Uri,
    header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE},
};
use serde_json::Value;

use super::{PREFIX, endpoint::Endpoint};
use crate::document::{Input, Operation, document};

/// Shows the document. Everything that it needs is in it, so that it works where nothing else can be reached.
const PAGE: &str = include_str!("page.html");

/// The page runs its own script and asks nobody but us.
const PAGE_MAY: &str =
    "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";

/// The document, for either place where it is found.
#[derive(Clone)]
pub(super) struct Documents {
    at_root: Bytes,
    under_prefix: Bytes,
}

impl Documents {
    /// Describes the `contract` and the paths `around` it.
    pub(super) fn of(contract: &[Endpoint], around: &[Endpoint]) -> Self {
        let write = |prefix| Bytes::from(format!("{:#}\n", described(contract, around, prefix)));
        Self { at_root: write(""), under_prefix: write(PREFIX) }
    }
}

/// The document as it is found under `prefix`.
pub(super) fn described(contract: &[Endpoint], around: &[Endpoint], prefix: &str) -> Value {
    let contract = contract.iter().map(|endpoint| endpoint.described(true));
    let around = around.iter().map(|endpoint| endpoint.described(false));
    document(contract.chain(around), prefix)
}

impl Input for Extension<Documents> {
    fn describe(_: &mut Operation) {}
}

pub(super) async fn show(Extension(documents): Extension<Documents>, uri: Uri) -> Response {
    let body = if uri.path().starts_with(PREFIX) { documents.under_prefix } else { documents.at_root };
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

pub(super) async fn page() -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, PAGE_MAY)];
    (headers, PAGE)
}
