//! The header with the version of the contract (device reference 1.1).

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header::VARY};

use super::problem::FlightctlProblem;

/// Wanted version in requests, and the version of answers.
const WANTED: HeaderName = HeaderName::from_static("flightctl-api-version");
/// Possible versions, in the refusal of another.
const SUPPORTED: HeaderName = HeaderName::from_static("flightctl-api-versions-supported");

/// Version of the contract.
pub(crate) const CONTRACT: &str = "v1beta1";

/// Version of the contract in headers.
const VERSION: HeaderValue = HeaderValue::from_static(CONTRACT);

/// Refuses a version that is not served, and names the version of every answer.
pub(super) async fn negotiated(request: Request, next: Next) -> Response {
    let others = request.headers().get_all(WANTED).iter().find(|wanted| **wanted != VERSION);
    let refusal = others.map(|wanted| {
        let wanted = String::from_utf8_lossy(wanted.as_bytes());
        format!("{WANTED}: version '{wanted}' is not supported, but {}", VERSION.to_str().unwrap_or_default())
    });
    let mut response = match refusal {
        Some(text) => {
            let mut refused = FlightctlProblem::of_status(StatusCode::NOT_ACCEPTABLE, text).into_response();
            refused.headers_mut().insert(SUPPORTED, VERSION);
            refused
        }
        None => next.run(request).await,
    };
    response.headers_mut().insert(WANTED, VERSION);
    response.headers_mut().append(VARY, HeaderValue::from_static("Flightctl-API-Version"));
    response
}
