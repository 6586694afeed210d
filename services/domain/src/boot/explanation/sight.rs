//! Everything that the explanation of a component is made from.

use std::{sync::Arc, time::Duration};

use super::{BatchNumber, CauseReason, HistoryEvent, ScriptEvidence, SiteTools, TransitionResult};
use crate::{
    boot::{bos::options::Options, component::Component, evaluation::Evidence, power::PowerReading},
    core::time::Timestamp,
};

/// Evidence about a component.
#[derive(Debug)]
pub struct ComponentEvidence<'a> {
    /// The record.
    pub component: &'a Component,
    /// Evidence of the status rules.
    pub evaluated: &'a Evidence,
    /// Options in force.
    pub options: &'a Options,
    /// Latest power reading, also of an earlier generation; `None`: there is none.
    pub power: Option<PowerSight>,
    /// Latest configuration reading, also of an earlier generation; `None`: there is none.
    pub configuration: Option<ConfigurationSight>,
    /// Events, the oldest first; `None`: they were not read.
    pub history: Option<&'a [HistoryEvent]>,
    /// Transitions of the node; `None`: they were not read.
    pub transitions: Option<&'a [TransitionResult]>,
    /// Transition that holds the node at the power service; `None`: there is none, or the power service was not asked.
    pub holder: Option<&'a HolderSight>,
    /// Requests for boot scripts.
    pub script: &'a ScriptEvidence,
    /// Batch of the node in the rollout of its session; `None`: there is none, or the session was not read.
    pub batch: Option<&'a BatchSight>,
    /// Tools that the next step may name.
    pub tools: SiteTools,
}

/// Batch of a node, with the standing of the rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchSight {
    /// Number of the batch.
    pub batch: BatchNumber,
    /// Standing of the rollout in words.
    pub rollout: String,
}

/// Transition that holds a node, by an answer of the power service to this question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderSight {
    /// Id at the power service, or else on record.
    pub id: Arc<str>,
    /// Time of its creation; `None`: unknown.
    pub created_at: Option<Timestamp>,
    /// Client that requested it.
    pub client: HolderClient,
}

/// Client of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HolderClient {
    /// Reveille.
    Own {
        /// Time at which its own time was over; `None`: it is not.
        withdrawn_at: Option<Timestamp>,
    },
    /// Another one.
    Another,
    /// Reveille or another one, until an operator gave the transition up.
    GivenUp,
}

/// Time in which the power service ends a transition that it was asked to end: it looks at its transitions every 15 s and at
/// its hardware every 30 s.
const WITHDRAWAL: Duration = Duration::from_secs(60);

/// Time of the longest transition of another client: a shutdown, a forced one and a power-on, each of five minutes.
const LONGEST: Duration = Duration::from_secs(15 * 60);

impl HolderSight {
    /// Returns the cause of a wait for the transition at `now`.
    pub(super) fn reason(&self, now: Timestamp) -> CauseReason {
        let is_over = |begin: Option<Timestamp>, time| begin.is_some_and(|begin| begin.plus(time) <= now);
        let is_overdue = match self.client {
            HolderClient::GivenUp => return CauseReason::ReservationKept,
            HolderClient::Own { withdrawn_at } => is_over(withdrawn_at, WITHDRAWAL),
            HolderClient::Another => is_over(self.created_at, LONGEST),
        };
        if is_overdue { CauseReason::TransitionOverdue } else { CauseReason::TransitionAwaited }
    }
}

/// Power reading with its age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerSight {
    /// Answer of the power service.
    pub reading: PowerReading,
    /// Time of the answer.
    pub observed_at: Option<Timestamp>,
    /// Whether it is about the current generation, and its author is connected.
    pub is_current: bool,
}

/// Configuration reading with its age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationSight {
    /// Whether the answer left the node out.
    pub is_missing: bool,
    /// Configuration that the service works towards; `None`: none.
    pub desired: Option<String>,
    /// Status in the words of the service.
    pub status: String,
    /// Time of the answer.
    pub observed_at: Option<Timestamp>,
    /// Whether it is about the current generation, and its author is connected.
    pub is_current: bool,
}
