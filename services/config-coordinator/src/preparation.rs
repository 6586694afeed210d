//! The record of preparing the power-ons of a component: enough to finish after a crash.

use std::{sync::Arc, time::Duration};

use chassis::{kinds::Digests, store::resource::Resource};
use domain::{
    boot::{component::Component, configuration::preparation::Preparation},
    core::{
        id::ComponentId,
        shared_part::{PartPool, SharedPart},
        time::Timestamp,
        trouble::Trouble,
    },
};

use crate::step::PlacingStep;

/// Time for which the text about an awaited peer stays on record while the peer goes on failing.
const SAME_PEER: Duration = Duration::from_secs(30);

/// Component whose coming power-on has to be prepared.
pub(crate) struct DuePreparation {
    pub(crate) component: Arc<Component>,
    pub(crate) preparation: Preparation,
}

/// Last preparation of one component.
///
/// After a restart an accepted or refused preparation is reported again unchanged. Any other may or may not have
/// reached the upstreams; sending the same data again does no harm, and the new token is the one that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PreparationRecord {
    pub(crate) id: ComponentId,
    /// Plan, shared by nodes that are prepared together.
    pub(crate) plan: SharedPart<PreparationPlan>,
    /// Progress, shared in the same way.
    pub(crate) progress: SharedPart<PreparationProgress>,
    /// Time since which the progress holds.
    pub(crate) since: Timestamp,
    pub(crate) revision: u64,
}

/// Plans and progress of all preparations.
#[derive(Debug, Default)]
pub(crate) struct PreparationPools {
    plans: PartPool<PreparationPlan>,
    progress: PartPool<PreparationProgress>,
}

impl PreparationPools {
    /// Shares the parts of a record with equal ones of other records.
    pub(crate) fn share(&mut self, record: &mut PreparationRecord) {
        self.plans.share(&mut record.plan);
        self.progress.share(&mut record.progress);
    }
}

/// Data to put in place, and the power-on that they are for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PreparationPlan {
    pub(crate) generation: u64,
    /// Number of the attempt, counted from 1.
    pub(crate) attempt: u32,
    /// Digest of the boot artifacts; empty: none.
    pub(crate) artifacts: Arc<str>,
    /// Configuration; empty: none.
    pub(crate) configuration: Arc<str>,
    /// Session; empty: none.
    pub(crate) session: Arc<str>,
}

/// Progress of a preparation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum PreparationProgress {
    /// The preparation may be under way; the upstreams may or may not have its data.
    Prepared,
    /// Every upstream took the data.
    Accepted {
        /// Token of the boot script server; empty: no boot data were needed.
        token: Arc<str>,
    },
    /// An upstream did not answer, or its answer is in doubt. The preparation is tried again.
    Failed {
        /// Peer that is waited for.
        trouble: Arc<Trouble>,
        /// Step of this peer; `None`: an earlier version recorded the failure.
        step: Option<PlacingStep>,
    },
    /// An upstream refused the data for this very component. The attempt is spent.
    Refused {
        /// Refusal in the words of the upstream.
        trouble: Arc<Trouble>,
    },
}

impl PreparationProgress {
    pub(crate) const PREPARED: &str = "prepared";
    pub(crate) const ACCEPTED: &str = "accepted";
    pub(crate) const FAILED: &str = "failed";
    pub(crate) const REFUSED: &str = "refused";

    /// Returns the progress as one word.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Prepared => Self::PREPARED,
            Self::Accepted { .. } => Self::ACCEPTED,
            Self::Failed { .. } => Self::FAILED,
            Self::Refused { .. } => Self::REFUSED,
        }
    }

    /// Returns the token of accepted boot data; empty: none.
    pub(crate) fn token(&self) -> &str {
        match self {
            Self::Accepted { token } => token,
            Self::Prepared | Self::Failed { .. } | Self::Refused { .. } => "",
        }
    }

    /// Returns the trouble of a failure or refusal.
    pub(crate) fn trouble(&self) -> Option<&Trouble> {
        match self {
            Self::Failed { trouble, .. } | Self::Refused { trouble } => Some(trouble),
            Self::Prepared | Self::Accepted { .. } => None,
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

    /// Returns whether the upstreams have to be called, for the first time or again.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Prepared | Self::Failed { .. } => true,
            Self::Accepted { .. } | Self::Refused { .. } => false,
        }
    }
}

impl PreparationRecord {
    /// Records the progress. A peer with a different text in each answer has its latest text recorded only now and
    /// then, since each would change thousands of records.
    pub(crate) fn advance(&mut self, progress: PreparationProgress, now: Timestamp) {
        if !self.progress.is_like(&progress) || now.since(self.since) >= SAME_PEER {
            (self.progress, self.since) = (progress.into(), now);
        }
    }

    /// Returns when an upstream refused the data of that power-on attempt, if one did.
    pub(crate) fn refused_at(&self, generation: u64, attempt: u32) -> Option<Timestamp> {
        let same = (self.plan.generation, self.plan.attempt) == (generation, attempt);
        let refused = matches!(*self.progress, PreparationProgress::Refused { .. });
        (same && refused).then_some(self.since)
    }
}

impl PreparationPlan {
    /// Returns the data that `preparation` puts in place for `component`.
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

    fn shared_key(&self) -> Arc<str> {
        self.id.shared()
    }

    fn weight(&self) -> usize {
        // As if its parts were its own.
        size_of::<Self>() + size_of::<PreparationPlan>() + size_of::<PreparationProgress>()
    }
}

#[cfg(test)]
mod tests {
    use domain::{boot::component::artifacts::BootArtifacts, core::trouble::TroubleKind};

    use super::*;

    #[test]
    fn the_words_about_a_peer_that_goes_on_failing_change_now_and_then() {
        let failed = |step, error: &str| PreparationProgress::Failed {
            trouble: Trouble::waiting_for(error).into(),
            step: Some(step),
        };
        let (bss, cfs) = (PlacingStep::BootParameters, PlacingStep::Configuration);
        let held = PreparationProgress::Failed {
            trouble: Trouble::own(TroubleKind::Held, "CFS does not have the node").into(),
            step: Some(cfs),
        };
        let refused =
            PreparationProgress::Refused { trouble: Trouble::failed("BSS at b (no)").unwrap().into() };
        let accepted = PreparationProgress::Accepted { token: "t1".into() };
        let untyped = PreparationProgress::Failed {
            trouble: Trouble::waiting_for("BSS at b (503)").into(),
            step: None,
        };
        let rows = [
            (failed(bss, "BSS at b (503)"), failed(bss, "BSS at b (no answer)"), 29_999, false),
            (failed(bss, "BSS at b (503)"), failed(bss, "BSS at b (no answer)"), 30_000, true),
            (failed(bss, "BSS at b (503)"), failed(cfs, "CFS at c (503)"), 0, true),
            (failed(cfs, "CFS at c (503)"), held, 0, true),
            (failed(bss, "BSS at b (503)"), refused, 0, true),
            (failed(bss, "BSS at b (503)"), accepted, 0, true),
            (PreparationProgress::Prepared, failed(bss, "BSS at b (503)"), 0, true),
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
                plan: PreparationPlan::new(&component, &preparation, &mut Digests::default()).into(),
                progress: before.clone().into(),
                since: Timestamp(1_000),
                revision: 0,
            };
            record.advance(after.clone(), Timestamp(1_000 + later));
            let expected = if changes { after } else { before };
            assert_eq!(*record.progress, expected, "{later}");
        }
    }
    /// A record is held for each node of a machine.
    #[test]
    fn a_record_is_small_beside_its_shared_parts() {
        assert_eq!(size_of::<PreparationRecord>(), 48);
    }
}
