//! Errors of the systems that a session depends on.

use std::{fmt, time::Duration};

use chassis::Fault;
use domain::boot::{bos::compatibility::Compatibility, session::IdleReason};
use upstream::Failure;

/// Time for which BOS repeats a call of the inventory or of the tenant service: the pauses between ten tries (BOS
/// reference 6.1).
const BOS_REPEATS: Duration = Duration::from_secs(367);

/// Time for which BOS repeats a call of an image store: about the pauses between five tries (BOS reference 6.8).
const BOS_REPEATS_IMAGES: Duration = Duration::from_secs(15);

/// Dependency of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependency {
    /// The component registry.
    Registry,
    /// The database of the session manager.
    Database,
    /// The nodes of a tenant, which are being confirmed.
    Membership,
    /// The inventory.
    Inventory,
    /// The content of the inventory, which is being confirmed.
    Content,
    /// The tenant service.
    Tenants,
    /// The store of images.
    ImageStore,
    /// The directory that is used as a store of images.
    ImageDirectory,
    /// The image management service.
    ImageCatalogue,
}

impl Dependency {
    /// Name in texts for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Registry => "component registry",
            Self::Database => "database",
            Self::Membership => "tenant membership",
            Self::Inventory => "inventory",
            Self::Content => "content of the inventory",
            Self::Tenants => "tenant service",
            Self::ImageStore => "image store",
            Self::ImageDirectory => "image directory",
            Self::ImageCatalogue => "IMS",
        }
    }

    /// Returns how long BOS repeats a call of the dependency; `None`: BOS waits too, as for our own services, or the
    /// wait is for a confirmation. A confirmation ends within seconds, and without it a session would act on half of a
    /// set.
    const fn bos_patience(self) -> Option<Duration> {
        match self {
            Self::Inventory | Self::Tenants => Some(BOS_REPEATS),
            Self::Content | Self::Registry | Self::Database | Self::Membership => None,
            Self::ImageStore | Self::ImageDirectory | Self::ImageCatalogue => Some(BOS_REPEATS_IMAGES),
        }
    }
}

impl fmt::Display for Dependency {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.pad(self.text())
    }
}

/// Reason why a session cannot proceed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DependencyError {
    /// A dependency does not answer: retry later.
    Retryable(DependencyOutage),
    /// A permanent error: the session ends. The text is for people.
    Fatal(String),
    /// The session has no members, and so ends.
    Idle {
        /// Reason for it.
        reason: IdleReason,
        /// Error of the session, for people.
        error: String,
    },
}

/// An outage of a dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyOutage {
    /// Dependency that does not answer.
    pub what: Dependency,
    /// Latest error, for people.
    pub error: String,
}

impl DependencyError {
    /// Returns the effect of the error on a setup that has `waited` for the same dependency. In strict mode an upstream
    /// that does not answer for as long as BOS repeats its calls ends the session, as in BOS (BOS reference 12,
    /// BUG-22).
    #[must_use]
    pub(crate) fn in_compatibility(self, compatibility: Compatibility, waited: Duration) -> Self {
        match self {
            Self::Retryable(outage)
                if compatibility.strict_bos
                    && outage.what.bos_patience().is_some_and(|most| waited >= most) =>
            {
                Self::Fatal(format!("{}: {}", outage.what, outage.error))
            }
            error => error,
        }
    }

    /// Returns whether the dependency does not answer.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::Retryable(_) => true,
            Self::Fatal(_) | Self::Idle { .. } => false,
        }
    }

    /// Error text for callers that cannot wait.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Retryable(outage) => outage.error,
            Self::Fatal(error) | Self::Idle { error, .. } => error,
        }
    }

    /// Classifies a fault of another service. Only faults that judge the request itself are fatal.
    pub(crate) fn from_mesh(what: Dependency, fault: impl Into<Fault>) -> Self {
        let fault = fault.into();
        let error = match fault {
            Fault::Unavailable { reason, .. } => reason,
            Fault::Internal(cause) => cause,
            Fault::Locked { .. }
            | Fault::Conflict { .. }
            | Fault::Busy { .. }
            | Fault::Stale { .. }
            | Fault::ResumeExpired(_) => fault.to_string(),
            Fault::NotFound { .. }
            | Fault::AlreadyExists { .. }
            | Fault::Invalid(_)
            | Fault::Violations(_) => {
                return Self::Fatal(format!("{what}: {fault}"));
            }
        };
        Self::Retryable(DependencyOutage { what, error })
    }
}

impl DependencyOutage {
    /// Converts the failure of a call to an external system. Callers handle failures that are final for the session
    /// before this conversion: the others, refusals included, concern the system or our configuration rather than the
    /// session.
    pub(crate) fn from_upstream(what: Dependency, failure: Failure) -> Self {
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
        for what in [
            Dependency::Inventory,
            Dependency::Content,
            Dependency::ImageStore,
            Dependency::ImageDirectory,
            Dependency::ImageCatalogue,
            Dependency::Tenants,
            Dependency::Membership,
            Dependency::Registry,
            Dependency::Database,
        ] {
            for (strict_bos, waited) in
                [(false, 0), (false, u64::MAX), (true, 14), (true, 15), (true, 366), (true, 367)]
            {
                let error =
                    DependencyError::Retryable(DependencyOutage { what, error: "no answer".to_owned() });
                let after = Duration::from_secs(waited);
                let followed = match error.in_compatibility(Compatibility { strict_bos }, after) {
                    DependencyError::Retryable(_) => "waits".to_owned(),
                    DependencyError::Fatal(error) | DependencyError::Idle { error, .. } => {
                        format!("fails: {error}")
                    }
                };
                let mode = if strict_bos { "strict" } else { "" };
                rows += &format!("{what:24} {mode:6} after {waited}: {followed}\n");
            }
        }
        expect![[r#"
            inventory                       after 0: waits
            inventory                       after 18446744073709551615: waits
            inventory                strict after 14: waits
            inventory                strict after 15: waits
            inventory                strict after 366: waits
            inventory                strict after 367: fails: inventory: no answer
            content of the inventory        after 0: waits
            content of the inventory        after 18446744073709551615: waits
            content of the inventory strict after 14: waits
            content of the inventory strict after 15: waits
            content of the inventory strict after 366: waits
            content of the inventory strict after 367: waits
            image store                     after 0: waits
            image store                     after 18446744073709551615: waits
            image store              strict after 14: waits
            image store              strict after 15: fails: image store: no answer
            image store              strict after 366: fails: image store: no answer
            image store              strict after 367: fails: image store: no answer
            image directory                 after 0: waits
            image directory                 after 18446744073709551615: waits
            image directory          strict after 14: waits
            image directory          strict after 15: fails: image directory: no answer
            image directory          strict after 366: fails: image directory: no answer
            image directory          strict after 367: fails: image directory: no answer
            IMS                             after 0: waits
            IMS                             after 18446744073709551615: waits
            IMS                      strict after 14: waits
            IMS                      strict after 15: fails: IMS: no answer
            IMS                      strict after 366: fails: IMS: no answer
            IMS                      strict after 367: fails: IMS: no answer
            tenant service                  after 0: waits
            tenant service                  after 18446744073709551615: waits
            tenant service           strict after 14: waits
            tenant service           strict after 15: waits
            tenant service           strict after 366: waits
            tenant service           strict after 367: fails: tenant service: no answer
            tenant membership               after 0: waits
            tenant membership               after 18446744073709551615: waits
            tenant membership        strict after 14: waits
            tenant membership        strict after 15: waits
            tenant membership        strict after 366: waits
            tenant membership        strict after 367: waits
            component registry              after 0: waits
            component registry              after 18446744073709551615: waits
            component registry       strict after 14: waits
            component registry       strict after 15: waits
            component registry       strict after 366: waits
            component registry       strict after 367: waits
            database                        after 0: waits
            database                        after 18446744073709551615: waits
            database                 strict after 14: waits
            database                 strict after 15: waits
            database                 strict after 366: waits
            database                 strict after 367: waits
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
        .map(|fault| match DependencyError::from_mesh(Dependency::Registry, fault) {
            DependencyError::Retryable(outage) => format!("wait for {}: {}\n", outage.what, outage.error),
            DependencyError::Fatal(error) | DependencyError::Idle { error, .. } => format!("fail: {error}\n"),
        })
        .concat();
        expect![[r#"
            wait for component registry: connection refused
            wait for component registry: Unimplemented: no such method
            wait for component registry: node 'x1': busy
            wait for component registry: revision 3 cannot be resumed from
            fail: component registry: image 'i1' does not exist
            fail: component registry: assignments[0].ids: is empty
        "#]]
        .assert_eq(&rows);
    }
}
