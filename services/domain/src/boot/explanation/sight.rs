//! Everything that the explanation of a component is made from.

use super::{BatchNumber, HistoryEvent, ScriptEvidence, SiteTools, TransitionResult};
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
