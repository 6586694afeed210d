//! The description of all paths of a port: as a document for programs, and as a page for browsers.

use axum::{
    Extension,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{
    HeaderValue, Uri,
    header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE},
};

use super::document::{ApiAbout, ApiOperation, DescribedPath, HandlerInput, document};

/// Shows the document. The page brings everything that it needs, for networks where nothing else can be reached.
const PAGE: &str = include_str!("page.html");

/// The page runs its own script and calls only the gateway.
const PAGE_MAY: &str =
    "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";

/// Document for both places where it is served.
#[derive(Clone)]
pub(crate) struct ApiDescription {
    at_root: Bytes,
    under_prefix: Bytes,
    prefix: &'static str,
}

impl ApiDescription {
    /// Describes `paths`, some of which are served under `prefix` too.
    pub(crate) fn new(about: &ApiAbout, paths: &[DescribedPath<'_>], prefix: &'static str) -> Self {
        let written = |prefix| Bytes::from(format!("{:#}\n", document(about, paths, prefix)));
        Self { at_root: written(""), under_prefix: written(prefix), prefix }
    }
}

impl HandlerInput for Extension<ApiDescription> {
    fn describe(_: &mut ApiOperation) {}
}

pub(crate) async fn show(Extension(description): Extension<ApiDescription>, uri: Uri) -> Response {
    let body = match uri.path().starts_with(description.prefix) {
        true => description.under_prefix,
        false => description.at_root,
    };
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

pub(crate) async fn page() -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, PAGE_MAY)];
    (headers, PAGE)
}
