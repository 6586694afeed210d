//! Refusals of the registry, with all violations and not only the first.

use chassis::Fault;
use tonic::Status;
use tonic_types::StatusExt as _;

use super::super::{
    failure::{ApiFailure, FailureCause},
    kinds::ResourceKind,
};
use crate::{http::call::fault, mesh::REGISTRY};

/// Word of the registry for namespaces.
const NAMESPACE: &str = "namespace";

/// Failure of a write.
#[derive(Debug)]
pub(crate) enum WriteFailure {
    /// The record has changed since it was read.
    Outdated,
    /// Anything else.
    Refused(ApiFailure),
}

impl WriteFailure {
    /// Returns the refusal for a client that insisted on a version.
    pub(crate) fn refused(self, kind: &ResourceKind, name: &str) -> ApiFailure {
        match self {
            Self::Outdated => ApiFailure::outdated(kind, name),
            Self::Refused(failure) => failure,
        }
    }
}

impl From<ApiFailure> for WriteFailure {
    fn from(failure: ApiFailure) -> Self {
        Self::Refused(failure)
    }
}

/// Returns the failure of a call about an object.
pub(super) fn failed(kind: &ResourceKind, name: &str, status: Status) -> WriteFailure {
    let violations = violations(&status);
    let failure = match fault(REGISTRY, status) {
        Fault::Conflict { .. } => return WriteFailure::Outdated,
        Fault::NotFound { .. } => ApiFailure::not_found(kind, name),
        Fault::AlreadyExists { .. } => ApiFailure::already_exists(kind, name),
        Fault::Invalid(_) | Fault::Violations(_) => ApiFailure::invalid(kind, name, violations),
        Fault::Locked { kind: subject, name: namespace, reason } if subject == NAMESPACE => {
            ApiFailure::namespace_terminating(kind, name, &namespace, &reason)
        }
        Fault::Locked { reason, .. } => ApiFailure::conflict(kind, name, &reason),
        Fault::Unavailable { what, reason } => ApiFailure::unavailable(format!("{what}: {reason}")),
        Fault::Busy { reason, retry_after } => ApiFailure::unavailable(reason).retried_after(retry_after),
        fault @ (Fault::Stale { .. } | Fault::ResumeExpired(_) | Fault::Internal(_)) => {
            ApiFailure::internal(&fault.to_string())
        }
    };
    failure.into()
}

fn violations(status: &Status) -> Vec<FailureCause> {
    let details = status.get_error_details();
    let listed = details.bad_request().map(|bad| bad.field_violations.clone()).unwrap_or_default();
    let causes: Vec<_> = listed
        .into_iter()
        .map(|violation| FailureCause::invalid(violation.field, violation.description))
        .collect();
    match causes.is_empty() {
        true => vec![FailureCause::invalid("", status.message())],
        false => causes,
    }
}
