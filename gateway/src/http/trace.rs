//! Request id and log span of a request and its effects.

use std::{sync::Once, time::Instant};

use axum::{extract::Request, middleware::Next, response::Response};
use chassis::mesh::request_id;
use http::{
    HeaderValue,
    header::{ALLOW, HeaderName},
};
use metrics::{Unit, counter, histogram};
use tracing::{Instrument, field::Empty};

const REQUEST_ID: HeaderName = HeaderName::from_static(request_id::HEADER);

/// Requests that were answered.
const REQUESTS: &str = "reveille_http_requests_total";

/// Time until the head of an answer.
const SECONDS: &str = "reveille_http_request_seconds";

/// Methods that clients use. Any other one has one label, so that clients cannot make up labels.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Whether the metrics are described.
static DESCRIBED: Once = Once::new();

/// Handles a request under the id from the client, or a new one, and returns that id in the answer.
pub(crate) async fn traced(request: Request, next: Next) -> Response {
    let given = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let id = request_id::accept(given);
    let span = tracing::info_span!(
        "request", method = %request.method(), path = request.uri().path(), request_id = id, trace_id = Empty
    );
    let header = HeaderValue::from_str(&id).expect("an accepted id has only visible ASCII letters");
    let work = request_id::scope(id, timed(request, next));
    let mut response = work.instrument(span).await;
    response.headers_mut().insert(REQUEST_ID, header);
    allow_options(&mut response);
    response
}

async fn timed(request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = METHODS.into_iter().find(|method| *method == request.method().as_str());
    let response = next.run(request).await;
    count(method.unwrap_or("other"), &response, began);
    let status = response.status().as_u16();
    let milliseconds = began.elapsed().as_secs_f64() * 1e3;
    tracing::debug!(status, milliseconds, "answered");
    response
}

fn count(method: &'static str, response: &Response, began: Instant) {
    DESCRIBED.call_once(|| {
        metrics::describe_counter!(REQUESTS, "HTTP requests by method and code");
        metrics::describe_histogram!(SECONDS, Unit::Seconds, "Time until the head of an answer over HTTP");
    });
    let code = response.status().as_str().to_owned();
    counter!(REQUESTS, "method" => method, "code" => code).increment(1);
    histogram!(SECONDS, "method" => method).record(began.elapsed());
}

/// Adds OPTIONS to the listed methods: every path answers it, which the framework does not know.
fn allow_options(response: &mut Response) {
    let listed = response.headers().get(ALLOW).and_then(|value| value.to_str().ok());
    let complete = listed.map(|methods| format!("{methods},OPTIONS"));
    if let Some(value) = complete.and_then(|methods| HeaderValue::try_from(methods).ok()) {
        response.headers_mut().insert(ALLOW, value);
    }
}
