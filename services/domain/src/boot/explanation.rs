//! Explains why a node or a session is as it is: the causes, the evidence, and the next step.
//!
//! Nothing is decided here. [`explain_component`] joins the record of a component, the decision of
//! [`evaluate`](super::evaluation::evaluate), the readings and the events, and [`explain_session`] joins the members
//! of a session. The causes with their texts are one table, [`CauseReason`].
//!
//! A missing answer is no negative one: a cause says "never" only where a source was able to know.

use std::sync::Arc;

use crate::{
    boot::{
        component::Action,
        power::transition::{TaskOutcome, TransitionDelivery},
    },
    core::{
        explanation::{CauseOutcome, NextStep},
        time::Timestamp,
    },
};

mod cause;
mod component;
mod evidence;
mod history;
mod session;
mod sight;
mod stage;
mod story;
mod table;
mod wording;

pub use cause::CauseReason;
pub use component::explain_component;
pub use evidence::{EvidenceItem, EvidenceSource};
pub use history::{HistoryChange, HistoryEvent, StoredEvent};
pub use session::{LeftOutNode, SessionEvidence, SessionMember, explain_session};
pub use sight::{BatchSight, ComponentEvidence, ConfigurationSight, HolderClient, HolderSight, PowerSight};
pub use stage::BootStage;

/// Answer to the question why a node or session is as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Id of the component, or name of the session.
    pub subject: String,
    /// Outcome so far.
    pub outcome: CauseOutcome,
    /// Causes, the first to act on in front; never empty.
    pub causes: Vec<ExplainedCause>,
    /// Evidence that was examined.
    pub evidence: Vec<EvidenceItem>,
    /// Last stage that evidence proves; `None`: none, or a session is explained.
    pub last_stage: Option<BootStage>,
    /// First stage without proof; `None`: none, or a session is explained.
    pub missing_stage: Option<BootStage>,
    /// Single next step.
    pub next_step: NextStep,
}

impl Explanation {
    /// Returns one sentence about a cause of this explanation.
    pub fn sentence(&self, cause: &ExplainedCause) -> String {
        wording::sentence(cause, &self.subject)
    }
}

/// Cause with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedCause {
    /// Reason, by which programs decide.
    pub reason: CauseReason,
    /// Time at which it became true; `None`: unknown.
    pub since: Option<Timestamp>,
    /// Time at which it ends by itself; `None`: it does not, or nobody knows when.
    pub until: Option<Timestamp>,
    /// Attempt that it is about.
    pub attempt: Option<AttemptNumber>,
    /// Peer that it is about.
    pub peer: Option<Peer>,
    /// Words of the peer; empty: none.
    pub words: Arc<str>,
    /// Session that it is about; empty: none.
    pub session: Arc<str>,
    /// Batch that it is about.
    pub batch: Option<BatchNumber>,
    /// First ids with this cause; empty: the subject alone.
    pub members: Vec<String>,
    /// Number of ids with this cause; 0: the subject alone.
    pub member_count: u32,
}

impl ExplainedCause {
    /// Creates a cause of the subject alone.
    pub(super) fn new(reason: CauseReason) -> Self {
        Self {
            reason,
            since: None,
            until: None,
            attempt: None,
            peer: None,
            words: Arc::default(),
            session: Arc::default(),
            batch: None,
            members: Vec::new(),
            member_count: 0,
        }
    }

    fn since(self, since: Option<Timestamp>) -> Self {
        Self { since, ..self }
    }

    fn until(self, until: Option<Timestamp>) -> Self {
        Self { until, ..self }
    }

    fn saying(self, words: impl Into<Arc<str>>) -> Self {
        Self { words: words.into(), ..self }
    }

    fn about(self, peer: Peer) -> Self {
        Self { peer: Some(peer), ..self }
    }
}

/// Number of a batch of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchNumber {
    /// Counted from 1.
    pub number: usize,
    /// Number of batches.
    pub of: usize,
}

/// Number of an attempt at a power action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptNumber {
    /// Counted from 1.
    pub number: u32,
    /// Most attempts of the action; 0: unknown.
    pub most: u32,
}

/// System that Reveille calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// The inventory.
    Inventory,
    /// The power service.
    Power,
    /// The services that prepare a boot.
    Preparation,
    /// The configuration service.
    Configuration,
}

impl Peer {
    /// Name in sentences.
    fn name(self) -> &'static str {
        match self {
            Self::Inventory => "the inventory",
            Self::Power => "the power service",
            Self::Preparation => "a service that prepares its boot",
            Self::Configuration => "the configuration service",
        }
    }
}

/// Tools of the site that a next step may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteTools {
    /// The command line of a CSM machine.
    Csm,
    /// None but Reveille itself.
    Own,
}

/// Result of a transition on one node, in the words of the power service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionResult {
    /// Kind of the action; `None`: of another version.
    pub action: Option<Action>,
    /// Number of the attempt, counted from 1.
    pub attempt: u32,
    /// Time of the intent.
    pub created_at: Option<Timestamp>,
    /// State of the request.
    pub delivery: TransitionDelivery,
    /// Result on the node.
    pub outcome: TaskOutcome,
    /// Words of the power service; empty: none.
    pub words: Arc<str>,
}

/// Requests of a node for its boot script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptEvidence {
    /// Another service serves the scripts, or none does.
    NotOffered,
    /// The source did not answer.
    Unknown,
    /// The source answered.
    Known {
        /// Time since which every request is on record.
        recorded_since: Timestamp,
        /// Requests since the latest preparation; `None`: there was none.
        requests: Option<ScriptRequests>,
    },
}

/// Requests of a node for its boot script since the latest preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptRequests {
    /// Time of the first request.
    pub first_at: Timestamp,
    /// Time of the latest request.
    pub last_at: Timestamp,
    /// Number of requests.
    pub count: u32,
}

#[cfg(test)]
mod tests;
