//! Answers to callers without rights.

use axum::response::Response;
use chassis::process::pause;
use http::{
    HeaderValue, StatusCode,
    header::{HeaderName, WWW_AUTHENTICATE},
};

use super::credentials::CredentialFault;
use crate::http::problem::RequestProblem;

/// Refusal of a request, which each face gives its own form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccessProblem {
    problem: RequestProblem,
    /// Challenge of a response with 401.
    challenge: Option<&'static str>,
}

impl AccessProblem {
    /// Creates the refusal of a request without credentials.
    pub(super) fn no_credentials(detail: impl Into<String>) -> Self {
        let problem = RequestProblem::of_status(StatusCode::UNAUTHORIZED, detail);
        Self { problem, challenge: Some("Bearer realm=\"reveille\"") }
    }

    /// Creates the refusal of a request whose credentials do not count.
    pub(super) fn bad_credentials(fault: &CredentialFault) -> Self {
        let problem = RequestProblem::of_status(StatusCode::UNAUTHORIZED, fault.to_string());
        Self { problem, challenge: Some("Bearer realm=\"reveille\", error=\"invalid_token\"") }
    }

    /// Creates the refusal of a request that its caller may not make.
    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self { problem: RequestProblem::of_status(StatusCode::FORBIDDEN, detail), challenge: None }
    }

    /// Creates the refusal of a request whose credentials cannot be judged now.
    pub(super) fn unavailable(issuer: &str) -> Self {
        let detail = format!("the keys of the issuer '{issuer}' are not available");
        let problem = RequestProblem::of_status(StatusCode::SERVICE_UNAVAILABLE, detail);
        let problem = RequestProblem { retry_after: Some(pause::retry_after()), ..problem };
        Self { problem, challenge: None }
    }

    /// Returns the refusal for the form of a face.
    pub(crate) fn problem(&self) -> RequestProblem {
        self.problem.clone()
    }

    /// Returns the response of a face with the headers of the refusal.
    pub(crate) fn challenging(&self, mut response: Response) -> Response {
        if let Some(challenge) = self.challenge {
            let header: HeaderName = WWW_AUTHENTICATE;
            response.headers_mut().insert(header, HeaderValue::from_static(challenge));
        }
        response
    }
}
