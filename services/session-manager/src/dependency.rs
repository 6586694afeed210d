//! Errors of the systems that a session depends on.

use chassis::Fault;
use domain::boot::bos::compatibility::Compatibility;
use upstream::Failure;

/// Name of the component registry in texts for people.
pub(crate) const REGISTRY: &str = "component registry";

/// Name of the database in texts for people.
pub(crate) const DATABASE: &str = "database";

/// Name of a tenant's membership in texts for people.
pub(crate) const MEMBERSHIP: &str = "tenant membership";

/// Attempts after which BOS gives up on an upstream.
const BOS_TRIES: u32 = 10;

/// Reason why a session cannot proceed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DependencyError {
    /// A dependency does not answer: retry later.
    Retryable(DependencyOutage),
    /// A permanent error: the session ends. The text is for people.
    Fatal(String),
}

/// An outage of a dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyOutage {
    /// Name of the dependency, such as `inventory`.
    pub what: &'static str,
    /// Latest error, for people.
    pub error: String,
}

impl DependencyError {
    /// Returns the effect of the error on a setup after `failures` earlier ones in a row. In strict mode an upstream
    /// that does not answer after all retries ends the session, as in BOS (BOS reference 12, BUG-22).
    #[must_use]
    pub(crate) fn in_compatibility(self, compatibility: Compatibility, failures: u32) -> Self {
        let last = compatibility.strict_bos && failures.saturating_add(1) >= BOS_TRIES;
        match self {
            Self::Retryable(outage) if last && !outage.is_own() => {
                Self::Fatal(format!("{}: {}", outage.what, outage.error))
            }
            error => error,
        }
    }

    /// Error text for callers that cannot wait.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Retryable(outage) => outage.error,
            Self::Fatal(error) => error,
        }
    }

    /// Classifies a fault of another service. Only faults that judge the request itself are fatal.
    pub(crate) fn from_mesh(what: &'static str, fault: impl Into<Fault>) -> Self {
        let fault = fault.into();
        let error = match fault {
            Fault::Unavailable { reason, .. } => reason,
            Fault::Internal(cause) => cause,
            Fault::Locked { .. } | Fault::Busy { .. } | Fault::Stale { .. } | Fault::ResumeExpired(_) => {
                fault.to_string()
            }
            Fault::NotFound { .. } | Fault::AlreadyExists { .. } | Fault::Invalid(_) => {
                return Self::Fatal(format!("{what}: {fault}"));
            }
        };
        Self::Retryable(DependencyOutage { what, error })
    }
}

impl DependencyOutage {
    /// Returns whether the dependency is one of our own services, for which BOS waits too, or the confirmation of a
    /// membership. A confirmation ends within seconds, and without it a session would act on half of a set.
    fn is_own(&self) -> bool {
        [REGISTRY, DATABASE, MEMBERSHIP].contains(&self.what)
    }

    /// Converts the failure of a call to an external system. Callers handle failures that are final for the session
    /// before this conversion: the others, refusals included, concern the system or our configuration rather than the
    /// session.
    pub(crate) fn from_upstream(what: &'static str, failure: Failure) -> Self {
        Self { what, error: failure.text }
    }
}

#[cfg(test)]
mod tests {
    use domain::core::invalid::Invalid;
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_outage_ends_a_session_only_in_strict_mode() {
        let mut rows = String::new();
        for what in ["inventory", "image store", "tenant service", MEMBERSHIP, REGISTRY, DATABASE] {
            for (strict_bos, failures) in [(false, 0), (false, u32::MAX), (true, 0), (true, 8), (true, 9)] {
                let error =
                    DependencyError::Retryable(DependencyOutage { what, error: "no answer".to_owned() });
                let followed = match error.in_compatibility(Compatibility { strict_bos }, failures) {
                    DependencyError::Retryable(_) => "waits".to_owned(),
                    DependencyError::Fatal(error) => format!("fails: {error}"),
                };
                let mode = if strict_bos { "strict" } else { "" };
                rows += &format!("{what:18} {mode:6} after {failures}: {followed}\n");
            }
        }
        expect![[r#"
            inventory                 after 0: waits
            inventory                 after 4294967295: waits
            inventory          strict after 0: waits
            inventory          strict after 8: waits
            inventory          strict after 9: fails: inventory: no answer
            image store               after 0: waits
            image store               after 4294967295: waits
            image store        strict after 0: waits
            image store        strict after 8: waits
            image store        strict after 9: fails: image store: no answer
            tenant service            after 0: waits
            tenant service            after 4294967295: waits
            tenant service     strict after 0: waits
            tenant service     strict after 8: waits
            tenant service     strict after 9: fails: tenant service: no answer
            tenant membership         after 0: waits
            tenant membership         after 4294967295: waits
            tenant membership  strict after 0: waits
            tenant membership  strict after 8: waits
            tenant membership  strict after 9: waits
            component registry        after 0: waits
            component registry        after 4294967295: waits
            component registry strict after 0: waits
            component registry strict after 8: waits
            component registry strict after 9: waits
            database                  after 0: waits
            database                  after 4294967295: waits
            database           strict after 0: waits
            database           strict after 8: waits
            database           strict after 9: waits
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn only_a_judged_request_fails_a_session() {
        let rows: String = [
            Fault::unavailable("service", "connection refused"),
            Fault::Internal("Unimplemented: no such method".into()),
            Fault::Locked { kind: "node".into(), name: "x1".into(), reason: "busy".into() },
            Fault::ResumeExpired(3),
            Fault::not_found("image", "i1"),
            Fault::Invalid(Invalid::new("assignments[0].ids", "is empty")),
        ]
        .map(|fault| match DependencyError::from_mesh("peer", fault) {
            DependencyError::Retryable(outage) => format!("wait for {}: {}\n", outage.what, outage.error),
            DependencyError::Fatal(error) => format!("fail: {error}\n"),
        })
        .concat();
        expect![[r#"
            wait for peer: connection refused
            wait for peer: Unimplemented: no such method
            wait for peer: node 'x1': busy
            wait for peer: revision 3 cannot be resumed from
            fail: peer: image 'i1' does not exist
            fail: peer: assignments[0].ids: is empty
        "#]]
        .assert_eq(&rows);
    }
}
