//! Refusal of callers by the identity in their certificate.

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use domain::core::workload::CallerRefusal;
use http::{StatusCode, header::CONTENT_TYPE};
use tonic::Status;

use crate::mesh::tls::CallerVerdict;

/// Path that reports whether a part is ready.
pub(super) const READY: &str = "/readyz";
/// Path that reports whether a part has started.
pub(super) const STARTED: &str = "/startz";

/// Passes a request on if its caller may call, with the caller as an extension of the request. Probes of the
/// kubelet have no certificate, and may ask for readiness.
pub(super) async fn check(mut request: Request, next: Next) -> Response {
    let Some(CallerVerdict(verdict)) = request.extensions_mut().remove::<CallerVerdict>() else {
        return next.run(request).await;
    };
    match verdict {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(_) if [READY, STARTED].contains(&request.uri().path()) => next.run(request).await,
        Err(refusal) => {
            tracing::debug!(reason = %refusal, path = request.uri().path(), "caller refused");
            refused(&request, &refusal)
        }
    }
}

fn refused(request: &Request, refusal: &CallerRefusal) -> Response {
    let kind = request.headers().get(CONTENT_TYPE);
    let is_grpc = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    let reason = refusal.to_string();
    match refusal {
        CallerRefusal::NoCertificate if is_grpc => Status::unauthenticated(reason).into_http(),
        CallerRefusal::NoIdentity | CallerRefusal::NotAllowed(_) if is_grpc => {
            Status::permission_denied(reason).into_http()
        }
        CallerRefusal::NoCertificate => (StatusCode::UNAUTHORIZED, reason + "\n").into_response(),
        CallerRefusal::NoIdentity | CallerRefusal::NotAllowed(_) => {
            (StatusCode::FORBIDDEN, reason + "\n").into_response()
        }
    }
}
