//! What is remembered about preparing the power-ons of a component: enough to finish after a crash.

use std::{sync::Arc, time::Duration};

use chassis::{convert::Digests, resource::Resource};
use domain::{
    boot::{component::Component, configuration::preparation::Preparation},
    core::{id::ComponentId, time::Timestamp, trouble::Trouble},
};

use crate::step::Step;

/// How long the words stay on record with which a peer was waited for, while it goes on failing.
const SAME_PEER: Duration = Duration::from_secs(30);

/// The last preparation of one component.
///
/// After a restart one that was accepted or refused is reported again as it is. Any other may or may not
/// have reached the upstreams; putting the same data there again does no harm, and its new token is the one
/// that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PreparationRecord {
    pub(crate) id: ComponentId,
    pub(crate) plan: Plan,
    pub(crate) progress: Progress,
    /// Since when it is so.
    pub(crate) since: Timestamp,
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
    pub(crate) configuration: Arc<str>,
    /// Empty: none.
    pub(crate) session: Arc<str>,
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
    /// An upstream did not answer, or nobody knows whether it took it. It is tried again.
    Failed {
        /// Peer that is waited for.
        trouble: Arc<Trouble>,
        /// Step of this peer; `None`: an earlier version recorded the failure.
        step: Option<Step>,
    },
    /// An upstream refused it for this very component. The attempt is spent.
    Refused {
        /// Refusal in the words of the upstream.
        trouble: Arc<Trouble>,
    },
}

impl Progress {
    pub(crate) const PREPARED: &str = "prepared";
    pub(crate) const ACCEPTED: &str = "accepted";
    pub(crate) const FAILED: &str = "failed";
    pub(crate) const REFUSED: &str = "refused";

    /// How far as one word.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Prepared => Self::PREPARED,
            Self::Accepted { .. } => Self::ACCEPTED,
            Self::Failed { .. } => Self::FAILED,
            Self::Refused { .. } => Self::REFUSED,
        }
    }

    /// Returns whether the same step has trouble of the same kind, whatever the words.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Failed { trouble, step }, Self::Failed { trouble: other, step: other_step }) => {
                step.is_some() && step == other_step && trouble.kind() == other.kind()
            }
            (
                Self::Prepared | Self::Accepted { .. } | Self::Failed { .. } | Self::Refused { .. },
                Self::Prepared | Self::Accepted { .. } | Self::Failed { .. } | Self::Refused { .. },
            ) => false,
        }
    }

    /// Whether the upstreams have to be asked, for the first time or again.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Prepared | Self::Failed { .. } => true,
            Self::Accepted { .. } | Self::Refused { .. } => false,
        }
    }
}

impl PreparationRecord {
    /// Notes how far the preparation is now. A peer whose trouble looks different each time has its last words noted
    /// now and then, since thousands of records would change with each of them.
    pub(crate) fn advance(&mut self, progress: Progress, now: Timestamp) {
        if !self.progress.is_like(&progress) || now.since(self.since) >= SAME_PEER {
            (self.progress, self.since) = (progress, now);
        }
    }

    /// When an upstream refused the data of that power-on attempt, if it did.
    pub(crate) fn refused_at(&self, generation: u64, attempt: u32) -> Option<Timestamp> {
        let same = (self.plan.generation, self.plan.attempt) == (generation, attempt);
        let refused = matches!(self.progress, Progress::Refused { .. });
        (same && refused).then_some(self.since)
    }
}

impl Plan {
    /// What `preparation` puts in place for `component`.
    pub(crate) fn new(component: &Component, preparation: &Preparation, digests: &mut Digests) -> Self {
        Self {
            generation: component.generation,
            attempt: preparation.attempt,
            artifacts: digests.of(&preparation.artifacts),
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

#[cfg(test)]
mod tests {
    use domain::{boot::component::artifacts::BootArtifacts, core::trouble::TroubleKind};

    use super::*;

    #[test]
    fn the_words_about_a_peer_that_goes_on_failing_change_now_and_then() {
        let failed = |step, error: &str| Progress::Failed {
            trouble: Trouble::waiting_for(error).into(),
            step: Some(step),
        };
        let (bss, cfs) = (Step::BootParameters, Step::Configuration);
        let held = Progress::Failed {
            trouble: Trouble::own(TroubleKind::Held, "CFS does not have the node").into(),
            step: Some(cfs),
        };
        let refused = Progress::Refused { trouble: Trouble::failed("BSS at b (no)").unwrap().into() };
        let accepted = Progress::Accepted { token: "t1".into() };
        let untyped = Progress::Failed { trouble: Trouble::waiting_for("BSS at b (503)").into(), step: None };
        let rows = [
            (failed(bss, "BSS at b (503)"), failed(bss, "BSS at b (no answer)"), 29_999, false),
            (failed(bss, "BSS at b (503)"), failed(bss, "BSS at b (no answer)"), 30_000, true),
            (failed(bss, "BSS at b (503)"), failed(cfs, "CFS at c (503)"), 0, true),
            (failed(cfs, "CFS at c (503)"), held, 0, true),
            (failed(bss, "BSS at b (503)"), refused, 0, true),
            (failed(bss, "BSS at b (503)"), accepted, 0, true),
            (Progress::Prepared, failed(bss, "BSS at b (503)"), 0, true),
            (untyped, failed(bss, "BSS at b (503)"), 0, true),
        ];
        for (before, after, later, changes) in rows {
            let component = Component::new(ComponentId::parse("x1").unwrap());
            let preparation = Preparation {
                attempt: 1,
                artifacts: Arc::new(BootArtifacts::empty()),
                configuration: Arc::default(),
                session: Arc::default(),
            };
            let mut record = PreparationRecord {
                id: component.id.clone(),
                plan: Plan::new(&component, &preparation, &mut Digests::default()),
                progress: before.clone(),
                since: Timestamp(1_000),
                revision: 0,
            };
            record.advance(after.clone(), Timestamp(1_000 + later));
            let expected = if changes { after } else { before };
            assert_eq!(record.progress, expected, "{later}");
        }
    }
}
