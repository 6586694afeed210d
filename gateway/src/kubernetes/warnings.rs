//! Remarks that are no refusals.

use axum::response::Response;
use http::{HeaderValue, header::WARNING};

/// Adds remarks to an answer, one header each.
pub(crate) fn with_warnings(mut response: Response, remarks: &[String]) -> Response {
    for remark in remarks {
        let escaped = remark.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::try_from(format!("299 - \"{escaped}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}
