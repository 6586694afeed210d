//! Refusals (device reference 1.1, 4.4): a `Status` whose code programs read, with a text that names the field or the
//! resource at fault.

use axum::response::{IntoResponse, Response};
use chassis::{Fault, process::pause};
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};

use super::wire::outcome::OutcomeStatus;
use crate::http::{answer::json, problem::RequestProblem};

/// Kinds of resources: the words of services, and those of the contract.
const KINDS: [(&str, &str); 5] = [
    ("device", "Device"),
    ("fleet", "Fleet"),
    ("template_version", "TemplateVersion"),
    ("enrolment_request", "EnrollmentRequest"),
    ("certificate_renewal", "CertificateSigningRequest"),
];

/// Problem as clients of Flight Control know it. It gets its form on the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlightctlProblem(RequestProblem);

impl FlightctlProblem {
    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        Self(RequestProblem::bad_request(text))
    }

    pub(crate) fn conflict(text: impl Into<String>) -> Self {
        Self::of_status(StatusCode::CONFLICT, text)
    }

    pub(crate) fn no_such_path() -> Self {
        Self::of_status(StatusCode::NOT_FOUND, "no such path")
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::of_status(StatusCode::METHOD_NOT_ALLOWED, "the method is not possible for this path")
    }

    pub(crate) fn of_status(status: StatusCode, text: impl Into<String>) -> Self {
        Self(RequestProblem::of_status(status, text))
    }
}

impl From<RequestProblem> for FlightctlProblem {
    fn from(problem: RequestProblem) -> Self {
        Self(problem)
    }
}

impl From<Fault> for FlightctlProblem {
    fn from(fault: Fault) -> Self {
        let conflict = |text: String| Self::conflict(text);
        match fault {
            Fault::NotFound { kind, name } => {
                let text = format!("{} of name \"{name}\" not found", shown(&kind));
                Self::of_status(StatusCode::NOT_FOUND, text)
            }
            Fault::AlreadyExists { kind, name } => {
                conflict(format!("{} of name \"{name}\" already exists", shown(&kind)))
            }
            Fault::Conflict { kind, name } => {
                let kind = shown(&kind);
                conflict(format!(
                    "metadata.resourceVersion: {kind} of name \"{name}\" has changed since it was read"
                ))
            }
            Fault::Locked { kind, name, reason } => {
                conflict(format!("{} of name \"{name}\": {reason}", shown(&kind)))
            }
            Fault::Invalid(_) | Fault::Violations(_) => Self::bad_request(fault.to_string()),
            Fault::Unavailable { what, reason } => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                let problem = RequestProblem::of_status(status, format!("{what}: {reason}"));
                Self(RequestProblem { retry_after: Some(pause::retry_after()), ..problem })
            }
            Fault::Busy { reason, retry_after } => Self(RequestProblem::busy(reason, retry_after)),
            Fault::Stale { .. } => {
                Self(RequestProblem::internal("a call without leases was told that they are over"))
            }
            Fault::ResumeExpired(_) => {
                Self(RequestProblem::internal("a call that resumes nothing was told to start over"))
            }
            Fault::Internal(cause) => Self(RequestProblem::internal(&cause)),
        }
    }
}

impl IntoResponse for FlightctlProblem {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

/// Returns the kind in the words of the contract.
fn shown(kind: &str) -> &str {
    KINDS.iter().find(|(word, _)| *word == kind).map_or(kind, |(_, shown)| shown)
}

/// Returns a problem in the form of the contract. `headers` are those of the answer in another form.
pub(super) fn in_form(problem: RequestProblem, headers: &HeaderMap) -> Response {
    let outcome = OutcomeStatus::of(problem.status, problem.detail);
    let mut response = json(problem.status, &outcome).unwrap_or_else(IntoResponse::into_response);
    let kept = headers.iter().filter(|(name, _)| ![CONTENT_TYPE, CONTENT_LENGTH].contains(name));
    kept.for_each(|(name, value)| {
        response.headers_mut().append(name, value.clone());
    });
    response
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;

    use super::*;

    #[test]
    fn refusals_have_the_codes_of_the_contract_and_name_what_is_at_fault() {
        let taken = Fault::AlreadyExists { kind: "device".into(), name: "d1".into() };
        let locked =
            Fault::Locked { kind: "device".into(), name: "d1".into(), reason: "a fleet owns it".into() };
        let faults = [
            Fault::not_found("device", "d1"),
            Fault::not_found("enrolment_request", "d1"),
            taken,
            locked,
            Fault::Conflict { kind: "fleet".into(), name: "f1".into() },
            Fault::unavailable("database", "gone"),
            Fault::Busy { reason: "too many lists".into(), retry_after: Duration::from_secs(3) },
        ];
        let lines = faults.into_iter().map(|fault| {
            let FlightctlProblem(problem) = fault.into();
            format!("{} {}\n", problem.status, problem.detail)
        });
        expect![[r#"
            404 Not Found Device of name "d1" not found
            404 Not Found EnrollmentRequest of name "d1" not found
            409 Conflict Device of name "d1" already exists
            409 Conflict Device of name "d1": a fleet owns it
            409 Conflict metadata.resourceVersion: Fleet of name "f1" has changed since it was read
            503 Service Unavailable database: gone
            503 Service Unavailable too many lists
        "#]]
        .assert_eq(&lines.collect::<String>());
    }
}
