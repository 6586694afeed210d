//! What is remembered about preparing the power-ons of a component: enough to finish after a crash.

use std::{collections::HashMap, sync::Arc};

use chassis::resource::Resource;
use domain::{artifacts::BootArtifacts, component::Component, id::ComponentId, preparation::Preparation};
use sha2::{Digest, Sha256};

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

/// Digests of the artifacts in one batch. Components that boot the same image share its texts, and hashing
/// kilobytes for each of thousands would cost more than everything else that is done for them.
#[derive(Default)]
pub(crate) struct Digests {
    /// By the addresses of the texts, with the texts, so that no address is used again meanwhile.
    known: HashMap<[Option<usize>; 3], (BootArtifacts, Arc<str>)>,
}

impl Digests {
    fn of(&mut self, artifacts: &BootArtifacts) -> Arc<str> {
        let texts = [&artifacts.kernel, &artifacts.kernel_parameters, &artifacts.initrd];
        let addresses = texts.map(|text| text.as_ref().map(|text| Arc::as_ptr(text).cast::<u8>().addr()));
        let known = self.known.entry(addresses).or_insert_with(|| (artifacts.clone(), digest(artifacts)));
        Arc::clone(&known.1)
    }
}

/// Tells sets of artifacts apart by content, missing texts from empty ones included.
fn digest(artifacts: &BootArtifacts) -> Arc<str> {
    let mut hash = Sha256::new();
    for text in [&artifacts.kernel, &artifacts.kernel_parameters, &artifacts.initrd] {
        match text {
            Some(text) => {
                hash.update([1]);
                hash.update(text.len().to_le_bytes());
                hash.update(&**text);
            }
            None => hash.update([0]),
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn digests_tell_what_a_boot_comparison_tells_apart() {
        let text = |text: &str| (text != "-").then(|| Arc::from(text));
        let rows = [("a", "b", "c"), ("ab", "", "c"), ("a", "bc", ""), ("-", "b", "c"), ("", "b", "c")];
        let digests: HashSet<_> = rows
            .iter()
            .map(|(kernel, parameters, initrd)| BootArtifacts {
                kernel: text(kernel),
                kernel_parameters: text(parameters),
                initrd: text(initrd),
                timestamp: None,
            })
            .map(|artifacts| digest(&artifacts))
            .collect();
        assert_eq!(digests.len(), rows.len());
        assert!(digests.iter().all(|digest| digest.len() == 64));
    }
}
