//! What is remembered about preparing the power-ons of a component: enough to finish after a crash.

use std::sync::Arc;

use chassis::{convert::Digests, resource::Resource};
use domain::{component::Component, id::ComponentId, preparation::Preparation};

/// The last preparation of one component.
///
/// After a restart an accepted one is reported again as it is. One that was only prepared may or may not
/// have reached the upstreams; putting the same data there again does no harm, and its new token is the one
/// that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PreparationRecord {
    pub(crate) id: ComponentId,
    pub(crate) plan: Plan,
    pub(crate) progress: Progress,
    pub(crate) revision: u64,
}

/// What is to be in place, for which power-on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) generation: u64,
    /// Counted from 1.
    pub(crate) attempt: u32,
    /// Digest of the boot artifacts; empty: none.
    pub(crate) artifacts: Arc<str>,
    /// Empty: none.
    pub(crate) configuration: String,
    /// Empty: none.
    pub(crate) session: String,
}

/// How far a preparation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It may be under way; the upstreams may or may not have it.
    Prepared,
    /// Every upstream took it.
    Accepted {
        /// Token of the boot script server; empty: no boot data were needed.
        token: Arc<str>,
    },
    /// An upstream did not take it, or nobody knows whether it did.
    Failed {
        /// What the upstream said.
        error: Arc<str>,
    },
}

impl Progress {
    pub(crate) const PREPARED: &str = "prepared";
    pub(crate) const ACCEPTED: &str = "accepted";
    pub(crate) const FAILED: &str = "failed";

    /// How far as one word.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Prepared => Self::PREPARED,
            Self::Accepted { .. } => Self::ACCEPTED,
            Self::Failed { .. } => Self::FAILED,
        }
    }
}

impl Plan {
    /// What `preparation` puts in place for `component`.
    pub(crate) fn new(component: &Component, preparation: &Preparation, digests: &mut Digests) -> Self {
        Self {
            generation: component.generation,
            attempt: preparation.attempt,
            artifacts: preparation.artifacts.as_ref().map_or_else(|| "".into(), |one| digests.of(one)),
            configuration: preparation.configuration.clone(),
            session: preparation.session.clone(),
        }
    }
}

impl Resource for PreparationRecord {
    const KIND: &'static str = "boot_preparation";

    fn key(&self) -> &str {
        self.id.as_str()
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }
}
