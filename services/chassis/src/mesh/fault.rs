//! Failures of calls, mapped once each way between services and the wire.
//!
//! Kinds of resource are words, not variants: a new kind needs no change here.

use std::{collections::HashMap, error::Error as _, time::Duration};

use domain::core::invalid::Invalid;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, ResourceInfo, StatusExt};

use crate::process::cause;

/// Domain of the reasons in `google.rpc.ErrorInfo`.
const DOMAIN: &str = "reveille";

/// Failure of a call, by the caller's possible reaction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// There is no such resource.
    #[error("{kind} '{name}' does not exist")]
    NotFound {
        /// Kind of resource, such as `component`.
        kind: String,
        /// Name of the one that is missing.
        name: String,
    },
    /// The name is taken.
    #[error("{kind} '{name}' already exists")]
    AlreadyExists {
        /// Kind of resource, such as `session`.
        kind: String,
        /// The name that is taken.
        name: String,
    },
    /// The request breaks a rule; mend it and try again.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The request breaks several rules, each by a field.
    #[error("{}", several(.0))]
    Violations(Vec<Invalid>),
    /// The record is not the one that the request expects; read it and decide again.
    #[error("{kind} '{name}' has changed since it was read")]
    Conflict {
        /// Kind of resource, such as `host`.
        kind: String,
        /// Name of the resource.
        name: String,
    },
    /// The resource is in a state that does not allow this now; try again later.
    #[error("{kind} '{name}': {reason}")]
    Locked {
        /// Kind of resource, such as `component`.
        kind: String,
        /// Name of the resource.
        name: String,
        /// Reason why the call is not possible now.
        reason: String,
    },
    /// A dependency does not answer; try again later.
    #[error("{what}: {reason}")]
    Unavailable {
        /// The dependency, such as `database` or `inventory`.
        what: String,
        /// The known reason.
        reason: String,
    },
    /// There is too much to do already, and nothing was done about this call; try again after a while.
    #[error("{reason}")]
    Busy {
        /// The exhausted resource.
        reason: String,
        /// Time to wait before the next try.
        retry_after: Duration,
    },
    /// The lease under which this was decided is over, and nothing was done; the holder of the role decides.
    #[error("the leases of {part} under which this was decided are over")]
    Stale {
        /// Part whose work the lease covers.
        part: String,
    },
    /// The watch cannot resume from that revision; start over.
    #[error("revision {0} cannot be resumed from")]
    ResumeExpired(u64),
    /// A defect; the caller can only report it.
    #[error("internal error")]
    Internal(String),
}

impl Fault {
    /// There is no `kind` of that name.
    pub fn not_found(kind: &str, name: &str) -> Self {
        Self::NotFound { kind: kind.into(), name: name.into() }
    }

    /// Returns the fault of `what`, which does not answer.
    pub fn unavailable(what: &str, reason: impl std::fmt::Display) -> Self {
        Self::Unavailable { what: what.into(), reason: reason.to_string() }
    }

    /// The leases of `part` under which something was decided are over.
    pub fn stale(part: &str) -> Self {
        Self::Stale { part: part.into() }
    }

    /// Returns the refusal of a request that breaks these rules; `None`: it breaks none.
    pub fn of_violations(mut violations: Vec<Invalid>) -> Option<Self> {
        match violations.len() {
            0 => None,
            1 => violations.pop().map(Self::Invalid),
            _ => Some(Self::Violations(violations)),
        }
    }

    /// Code and reason on the wire. The reasons are part of the API.
    fn code(&self) -> (Code, &'static str) {
        match self {
            Self::NotFound { .. } => (Code::NotFound, "NOT_FOUND"),
            Self::AlreadyExists { .. } => (Code::AlreadyExists, "ALREADY_EXISTS"),
            Self::Invalid(_) | Self::Violations(_) => (Code::InvalidArgument, "INVALID"),
            Self::Conflict { .. } => (Code::Aborted, "CONFLICT"),
            Self::Locked { .. } => (Code::FailedPrecondition, "LOCKED"),
            Self::Unavailable { .. } => (Code::Unavailable, "UNAVAILABLE"),
            Self::Busy { .. } => (Code::ResourceExhausted, "BUSY"),
            Self::Stale { .. } => (Code::Aborted, "STALE"),
            Self::ResumeExpired(_) => (Code::OutOfRange, "RESUME_TOKEN_EXPIRED"),
            Self::Internal(_) => (Code::Internal, "INTERNAL"),
        }
    }

    /// Details for the caller beside the text.
    fn details(&self, reason: &str) -> ErrorDetails {
        let mut details = ErrorDetails::with_error_info(reason, DOMAIN, HashMap::new());
        match self {
            Self::NotFound { kind, name }
            | Self::AlreadyExists { kind, name }
            | Self::Conflict { kind, name } => {
                details.set_resource_info(kind, name, "", "");
            }
            Self::Locked { kind, name, reason } => {
                details.set_resource_info(kind, name, "", reason);
            }
            Self::Invalid(invalid) => {
                details.add_bad_request_violation(&invalid.field, clipped(&invalid.reason));
            }
            Self::Violations(violations) => {
                for one in violations {
                    details.add_bad_request_violation(&one.field, clipped(&one.reason));
                }
            }
            Self::Unavailable { what, reason } => {
                details.set_resource_info("upstream", what, "", reason);
            }
            Self::Busy { reason: _, retry_after } => {
                details.set_retry_info(Some(*retry_after));
            }
            Self::Stale { part } => {
                details.set_resource_info("leases", part, "", "");
            }
            Self::ResumeExpired(revision) => {
                details.set_resource_info("revision", revision.to_string(), "", "");
            }
            Self::Internal(_) => {}
        }
        details
    }
}

/// Most bytes of a text. Texts travel in headers, up to three times each, and a head that is too large ends the connection.
const LONGEST_TEXT: usize = 1500;

/// Returns the beginning of a text, which may quote what a client wrote.
fn clipped(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST_TEXT);
    if end == text.len() { text.to_owned() } else { format!("{}…", &text[..end]) }
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        if let Fault::Internal(cause) = &fault {
            tracing::error!(cause, "internal error");
        }
        let (code, reason) = fault.code();
        Self::with_error_details(code, clipped(&fault.to_string()), fault.details(reason))
    }
}

impl From<Status> for Fault {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let resource = details.resource_info().cloned().unwrap_or_else(|| ResourceInfo::new("", "", "", ""));
        let (kind, name) = (resource.resource_type, resource.resource_name);
        let reason = details.error_info().map(|info| info.reason.as_str()).unwrap_or_default();
        match reason {
            "NOT_FOUND" => Self::NotFound { kind, name },
            "ALREADY_EXISTS" => Self::AlreadyExists { kind, name },
            "LOCKED" => Self::Locked { kind, name, reason: resource.description },
            "UNAVAILABLE" => Self::Unavailable { what: name, reason: resource.description },
            "BUSY" => {
                let retry_after = details.retry_info().and_then(|info| info.retry_delay).unwrap_or_default();
                Self::Busy { reason: status.message().to_owned(), retry_after }
            }
            "STALE" => Self::Stale { part: name },
            "RESUME_TOKEN_EXPIRED" => Self::ResumeExpired(name.parse().unwrap_or_default()),
            "CONFLICT" => Self::Conflict { kind, name },
            "INVALID" => Self::of_violations(violations(&details))
                .unwrap_or_else(|| Invalid::new("", "invalid").into()),
            "INTERNAL" => Self::Internal(status.message().to_owned()),
            _ => Self::without_details(&status),
        }
    }
}

impl Fault {
    /// Maps a status that no service of the mesh wrote, such as one from the transport.
    fn without_details(status: &Status) -> Self {
        match status.code() {
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::ResourceExhausted => {
                Self::unavailable("service", transport_words(status))
            }
            // A service sends details with its own errors, so this status is from the transport: the answer broke off.
            Code::Unknown | Code::Internal => {
                tracing::warn!(code = ?status.code(), message = status.message(), "a call ended without an answer");
                Self::unavailable("service", transport_words(status))
            }
            // Another version, or an address at which something else listens.
            Code::Unimplemented => Self::unavailable(
                "service",
                format_args!("it does not know this call ({})", status.message()),
            ),
            Code::InvalidArgument => Self::Invalid(Invalid::new("", status.message())),
            _ => Self::Internal(format!("{:?}: {}", status.code(), status.message())),
        }
    }
}

/// The reason of a transport error. For a broken connection the libraries above it only report "error".
fn transport_words(status: &Status) -> String {
    status.source().map_or_else(|| status.message().to_owned(), cause::root)
}

fn violations(details: &ErrorDetails) -> Vec<Invalid> {
    let violations = details.bad_request().map_or(&[][..], |bad| &bad.field_violations);
    violations.iter().map(|violation| Invalid::new(&violation.field, &violation.description)).collect()
}

fn several(violations: &[Invalid]) -> String {
    let texts: Vec<_> = violations.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

impl From<sea_orm::DbErr> for Fault {
    fn from(error: sea_orm::DbErr) -> Self {
        Self::unavailable("database", error)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_answer_that_broke_off_may_come_another_time() {
        let broken = || std::io::Error::from_raw_os_error(32).into();
        let reset = Status::internal("h2 protocol error: stream no longer needed");
        let empty = Status::internal("Missing response message.");
        for (status, reason) in [
            (Status::from_error(broken()), "Broken pipe"),
            (reset, "h2 protocol error: stream no longer needed"),
            (empty, "Missing response message."),
        ] {
            assert_eq!(Fault::from(status), Fault::unavailable("service", reason));
        }
    }

    #[test]
    fn defect_of_a_service_stays_one() {
        let status = Status::from(Fault::Internal("secret".into()));
        assert_eq!(Fault::from(status), Fault::Internal("internal error".into()));
    }

    #[test]
    fn service_that_does_not_know_a_call_is_unavailable() {
        let unknown = Status::unimplemented("grpc-status header missing, mapped from HTTP status code 404");
        let Fault::Unavailable { what, reason } = Fault::from(unknown) else { panic!("unavailable") };
        assert_eq!(what, "service");
        assert!(reason.starts_with("it does not know this call ("), "{reason}");
    }

    fn every_fault() -> Vec<Fault> {
        vec![
            Fault::not_found("component", "x1"),
            Fault::AlreadyExists { kind: "session".into(), name: "s1".into() },
            Fault::Invalid(Invalid::new("limit", "has an empty item")),
            Fault::Violations(vec![
                Invalid::new("spec.image.url", "is missing"),
                Invalid::new("spec.bmc.address", "is no address"),
            ]),
            Fault::Conflict { kind: "host".into(), name: "m/h1".into() },
            Fault::Locked { kind: "component".into(), name: "x1".into(), reason: "is powering off".into() },
            Fault::unavailable("database", "connection refused"),
            Fault::Busy { reason: "too many lists".into(), retry_after: Duration::from_secs(3) },
            Fault::stale("power-controller"),
            Fault::ResumeExpired(7),
        ]
    }

    #[test]
    fn texts_fit_into_headers_whatever_they_quote() {
        for quoted in ["x".repeat(100_000), "ä".repeat(100_000)] {
            let status = Status::from(Fault::Invalid(Invalid::new("labelSelector", quoted.clone())));
            assert!(status.message().len() < 2 * LONGEST_TEXT && status.details().len() < 3 * LONGEST_TEXT);
            let Fault::Invalid(Invalid { field, reason }) = status.into() else { panic!("invalid") };
            assert_eq!(field, "labelSelector");
            assert!(reason.ends_with('…') && quoted.starts_with(reason.trim_end_matches('…')));
        }
    }

    #[test]
    fn faults_survive_the_wire() {
        for fault in every_fault() {
            assert_eq!(Fault::from(Status::from(fault.clone())), fault);
        }
    }

    #[test]
    fn codes_and_reasons_are_part_of_the_api() {
        let mut faults = every_fault();
        faults.push(Fault::Internal("secret".into()));
        let lines = faults.iter().map(|fault| {
            let (code, reason) = fault.code();
            format!("{reason}: {code:?}: {fault}\n")
        });
        expect![[r#"
            NOT_FOUND: NotFound: component 'x1' does not exist
            ALREADY_EXISTS: AlreadyExists: session 's1' already exists
            INVALID: InvalidArgument: limit: has an empty item
            INVALID: InvalidArgument: spec.image.url: is missing; spec.bmc.address: is no address
            CONFLICT: Aborted: host 'm/h1' has changed since it was read
            LOCKED: FailedPrecondition: component 'x1': is powering off
            UNAVAILABLE: Unavailable: database: connection refused
            BUSY: ResourceExhausted: too many lists
            STALE: Aborted: the leases of power-controller under which this was decided are over
            RESUME_TOKEN_EXPIRED: OutOfRange: revision 7 cannot be resumed from
            INTERNAL: Internal: internal error
        "#]]
        .assert_eq(&lines.collect::<String>());
    }
}
