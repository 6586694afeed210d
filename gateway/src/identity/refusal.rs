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
    /// Caller and rule, for the audit log.
    pub(super) decided: Box<DecidedRequest>,
}

/// Decision about a request, as the audit log shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DecidedRequest {
    /// Caller by its credentials; empty: it has none that count.
    pub caller: String,
    /// Rule that decided, or came nearest.
    pub rule: String,
    /// Word for the reason of a refusal.
    pub reason: &'static str,
}

impl AccessProblem {
    fn of(problem: RequestProblem, challenge: Option<&'static str>) -> Self {
        Self { problem, challenge, decided: Box::default() }
    }

    /// Creates the refusal of a request without credentials.
    pub(super) fn no_credentials(detail: impl Into<String>) -> Self {
        let problem = RequestProblem::of_status(StatusCode::UNAUTHORIZED, detail);
        Self::of(problem, Some("Bearer realm=\"reveille\""))
    }

    /// Creates the refusal of a request whose credentials do not count.
    pub(super) fn bad_credentials(fault: &CredentialFault) -> Self {
        let problem = RequestProblem::of_status(StatusCode::UNAUTHORIZED, fault.to_string());
        Self::of(problem, Some("Bearer realm=\"reveille\", error=\"invalid_token\""))
    }

    /// Creates the refusal of a request that its caller may not make.
    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::of(RequestProblem::of_status(StatusCode::FORBIDDEN, detail), None)
    }

    /// Creates the refusal of a request whose credentials cannot be judged now.
    pub(super) fn unavailable(issuer: &str) -> Self {
        let detail = format!("the keys of the issuer '{issuer}' are not available");
        let problem = RequestProblem::of_status(StatusCode::SERVICE_UNAVAILABLE, detail);
        let problem = RequestProblem { retry_after: Some(pause::retry_after()), ..problem };
        Self::of(problem, None)
    }

    /// Returns the refusal with its decision, for the audit log.
    pub(super) fn for_audit(self, decided: DecidedRequest) -> Self {
        Self { decided: Box::new(decided), ..self }
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
