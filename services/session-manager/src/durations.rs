//! Time that nodes take, as it was learned, and what is expected with it.

use std::{sync::Arc, time::Duration};

use chassis::kinds::history::session_key;
use domain::{
    boot::{session::Session, template::Operation},
    core::{durations::DurationProfile, id::Tenant, time::Timestamp},
};

/// Time that nodes took in sessions of one operation and template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LearnedDurations {
    pub(crate) operation: Operation,
    /// Tenant of the template.
    pub(crate) tenant: Tenant,
    pub(crate) template_name: String,
    pub(crate) profile: DurationProfile,
    /// Time of the latest session.
    pub(crate) learned_at: Timestamp,
    pub(crate) revision: u64,
}

impl LearnedDurations {
    /// Creates what was seen in `session`.
    pub(crate) fn new(session: &Session, profile: DurationProfile, learned_at: Timestamp) -> Self {
        let Session { operation, tenant, template_name, .. } = session;
        Self {
            operation: *operation,
            tenant: tenant.clone(),
            template_name: template_name.clone(),
            profile,
            learned_at,
            revision: 0,
        }
    }

    /// Returns the key within the kind.
    pub(crate) fn key(&self) -> Arc<str> {
        key_of(self.operation, &self.tenant, &self.template_name)
    }
}

/// Returns the key of the durations that sessions like `session` have.
pub(crate) fn durations_key(session: &Session) -> Arc<str> {
    key_of(session.operation, &session.tenant, &session.template_name)
}

fn key_of(operation: Operation, tenant: &Tenant, template_name: &str) -> Arc<str> {
    format!("{}\t{}", operation.word(), session_key(tenant.as_str(), template_name)).into()
}

/// Expectation for nodes that begin together.
pub(crate) struct ExpectedDuration {
    /// Time within which all of them are as wanted as likely as not.
    pub(crate) likely: Duration,
    /// Time within which they are in nine of ten cases.
    pub(crate) late: Duration,
    /// Number of nodes before that both rest on.
    pub(crate) learned_from: u64,
}
