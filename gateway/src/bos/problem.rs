//! Refusals with the titles and texts of BOS (BOS reference 2.2, A.1).

use axum::response::{IntoResponse, Response};
use chassis::{Fault, process::pause};
use http::StatusCode;

use super::tenant::RequestTenant;
use crate::http::problem::RequestProblem;

/// The kind of resource that a tenant is.
pub(crate) const TENANT: &str = "tenant";

/// Title of the contract, which names Redis although there is none; the detail names the part that does not answer.
const UNAVAILABLE_TITLE: &str = "Unable to connect to the Redis database";
const LOCKED_TITLE: &str = "Actual state can not be updated.";
const LOCKED_DETAIL: &str = "BOS is currently changing the state of the node, and the actual state can not \
                             be accurately recorded";

/// A problem as clients of BOS know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BosProblem(RequestProblem);

impl BosProblem {
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self(RequestProblem::bad_request(detail))
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self(RequestProblem::of_status(StatusCode::NOT_FOUND, detail))
    }

    /// Returns the problem of a request for a tenant that does not exist.
    pub(crate) fn invalid_tenant(detail: impl Into<String>) -> Self {
        Self(RequestProblem::titled(StatusCode::BAD_REQUEST, "Invalid tenant", detail))
    }

    pub(crate) fn no_such_path() -> Self {
        Self::not_found(
            "The requested URL was not found on the server. If you entered the URL manually please check your \
             spelling and try again.",
        )
    }

    pub(crate) fn method_not_allowed() -> Self {
        let detail = "The method is not allowed for the requested URL.";
        Self(RequestProblem::of_status(StatusCode::METHOD_NOT_ALLOWED, detail))
    }

    /// Returns the problem of a request by `tenant` that a service refused. The texts about sessions and templates name
    /// the tenant.
    pub(crate) fn of(fault: Fault, tenant: &RequestTenant) -> Self {
        Self(match fault {
            Fault::NotFound { kind, .. } if kind == TENANT => {
                return Self::invalid_tenant("The provided tenant does not exist");
            }
            Fault::NotFound { kind, name } => {
                let detail = format!("{} does not exist", absent(&kind, &name, tenant));
                RequestProblem::titled(StatusCode::NOT_FOUND, "The resource was not found", detail)
            }
            Fault::AlreadyExists { kind, name } => {
                let detail = format!("{} already exists{}", quoted(&kind, &name), tenant.suffix());
                RequestProblem::titled(
                    StatusCode::CONFLICT,
                    "The resource to be created already exists",
                    detail,
                )
            }
            Fault::Invalid(invalid) if invalid.field.is_empty() => {
                RequestProblem::bad_request(invalid.reason)
            }
            Fault::Invalid(invalid) => {
                RequestProblem::bad_request(format!("{} - '{}'", invalid.reason, invalid.field))
            }
            Fault::Violations(_) => RequestProblem::bad_request(fault.to_string()),
            // Only reports of the actual state are ever locked out (BOS reference 2.6.6).
            Fault::Locked { .. } => RequestProblem::titled(StatusCode::CONFLICT, LOCKED_TITLE, LOCKED_DETAIL),
            Fault::Unavailable { what, reason } => unavailable(&format!("{what}: {reason}")),
            Fault::Busy { reason, retry_after } => RequestProblem::busy(reason, retry_after),
            Fault::Stale { .. } => {
                RequestProblem::internal("a call without leases was told that they are over")
            }
            Fault::Conflict { .. } => {
                RequestProblem::internal("a call that expects no revision was told that it is another one")
            }
            Fault::ResumeExpired(_) => {
                RequestProblem::internal("a call that resumes nothing was told to start over")
            }
            Fault::Internal(cause) => RequestProblem::internal(&cause),
        })
    }

    #[cfg(test)]
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Puts `text` before the detail of a bad request, where BOS names the step that refused it.
    #[must_use]
    pub(crate) fn prefixed(mut self, text: &str) -> Self {
        if StatusCode::BAD_REQUEST.canonical_reason() == Some(self.0.title) {
            self.0.detail.insert_str(0, text);
        }
        self
    }
}

impl From<RequestProblem> for BosProblem {
    fn from(problem: RequestProblem) -> Self {
        Self(problem)
    }
}

impl From<Fault> for BosProblem {
    fn from(fault: Fault) -> Self {
        Self::of(fault, &RequestTenant::default())
    }
}

impl IntoResponse for BosProblem {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

fn unavailable(detail: &str) -> RequestProblem {
    let problem = RequestProblem::titled(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE_TITLE, detail);
    RequestProblem { retry_after: Some(pause::retry_after()), ..problem }
}

/// Returns a text such as `Component 'x1'`.
fn quoted(kind: &str, name: &str) -> String {
    format!("{} '{name}'", capitalised(kind))
}

/// Returns a text such as `Session 's1'`, or `Session for tenant 't' 's1'`. Components are the same for every tenant.
fn absent(kind: &str, name: &str, tenant: &RequestTenant) -> String {
    if kind == "component" {
        return quoted(kind, name);
    }
    format!("{}{} '{name}'", capitalised(kind), tenant.suffix())
}

/// Returns `Session template` for `session_template`.
fn capitalised(kind: &str) -> String {
    let words = kind.replace('_', " ");
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;
    use http::header::RETRY_AFTER;
    use tonic_types::StatusExt;

    use super::*;

    fn taken(kind: &str, name: &str) -> Fault {
        Fault::AlreadyExists { kind: kind.into(), name: name.into() }
    }

    fn invalid(field: &str, reason: &str) -> Fault {
        let mut details = tonic_types::ErrorDetails::with_error_info("INVALID", "", []);
        details.add_bad_request_violation(field, reason);
        tonic::Status::with_error_details(tonic::Code::InvalidArgument, "", details).into()
    }

    fn retry_after(fault: Fault) -> Option<String> {
        let response = BosProblem::from(fault).into_response();
        response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn refusals_have_the_titles_and_texts_of_the_contract() {
        let locked =
            Fault::Locked { kind: "component".into(), name: "x1".into(), reason: "powering off".into() };
        let faults = [
            (Fault::not_found("component", "x1"), ""),
            (Fault::not_found("component", "x1"), "blue"),
            (Fault::not_found("session", "s1"), ""),
            (Fault::not_found("session", "s1"), "blue"),
            (Fault::not_found("session_template", "t1"), ""),
            (Fault::not_found("session_template", "t1"), "blue"),
            (Fault::not_found("tenant", "blue"), "blue"),
            (taken("session", "s1"), ""),
            (taken("session", "s1"), "blue"),
            (invalid("desired_state.configuration", "is too long"), ""),
            (invalid("", "is too long"), ""),
            (locked, ""),
            (Fault::unavailable("database", "connection refused"), ""),
            (Fault::Busy { reason: "too many lists".into(), retry_after: Duration::from_secs(3) }, ""),
            (Fault::ResumeExpired(3), ""),
            (Fault::Internal("secret".into()), ""),
        ];
        let lines = faults.into_iter().map(|(fault, tenant)| {
            let problem = BosProblem::of(fault, &RequestTenant(tenant.to_owned()));
            format!("{} {}: {}\n", problem.0.status.as_u16(), problem.0.title, problem.0.detail)
        });
        expect![[r#"
            404 The resource was not found: Component 'x1' does not exist
            404 The resource was not found: Component 'x1' does not exist
            404 The resource was not found: Session 's1' does not exist
            404 The resource was not found: Session for tenant 'blue' 's1' does not exist
            404 The resource was not found: Session template 't1' does not exist
            404 The resource was not found: Session template for tenant 'blue' 't1' does not exist
            400 Invalid tenant: The provided tenant does not exist
            409 The resource to be created already exists: Session 's1' already exists
            409 The resource to be created already exists: Session 's1' already exists for tenant 'blue'
            400 Bad Request: is too long - 'desired_state.configuration'
            400 Bad Request: is too long
            409 Actual state can not be updated.: BOS is currently changing the state of the node, and the actual state can not be accurately recorded
            503 Unable to connect to the Redis database: database: connection refused
            503 Too many requests at a time: too many lists
            500 Internal Server Error: the request could not be done; its id is 
            500 Internal Server Error: the request could not be done; its id is 
        "#]].assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn refusals_that_pass_say_when_to_retry() {
        let busy = |millis| Fault::Busy { reason: String::new(), retry_after: Duration::from_millis(millis) };
        assert_eq!(retry_after(busy(3000)).as_deref(), Some("3"));
        assert_eq!(retry_after(busy(0)).as_deref(), Some("1"));
        assert!(retry_after(Fault::unavailable("database", "gone")).is_some());
        assert_eq!(retry_after(Fault::not_found("component", "x1")), None);
    }

    #[test]
    fn only_bad_requests_say_what_was_being_done() {
        for (problem, expected) in [
            (BosProblem::bad_request("why"), "not done: why"),
            (Fault::unavailable("database", "gone").into(), "database: gone"),
            (BosProblem::invalid_tenant("why"), "why"),
        ] {
            assert_eq!(problem.prefixed("not done: ").detail(), expected);
        }
    }
}
