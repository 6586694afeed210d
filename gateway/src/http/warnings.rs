//! Remarks that are no refusals.

use axum::response::Response;
use http::{HeaderValue, header::WARNING};

/// Adds remarks to an answer, one header each. Clients of Kubernetes and the operator's command show them.
pub(crate) fn with_warnings(mut response: Response, remarks: &[String]) -> Response {
    for remark in remarks {
        let line = remark.replace(char::is_control, " ");
        let escaped = line.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::try_from(format!("299 - \"{escaped}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}
