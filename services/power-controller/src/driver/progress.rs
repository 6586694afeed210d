//! The progress of an action at an upstream, node by node.

use super::UpstreamTransition;

/// Progress of an action on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaskState {
    /// The task has no result yet, and may not have begun.
    Pending,
    /// The upstream has reserved the node and acts on it.
    Begun,
    /// The node has the requested power.
    Succeeded,
    /// The task began and failed at the BMC, for this reason in the upstream's words.
    Failed(String),
    /// The node was asked, and did not have the requested power at the end of its time, in the upstream's words.
    TimedOut(String),
    /// The task did not begin, for this reason in the upstream's words.
    Refused {
        words: String,
        /// Whether another transition holds the node.
        reserved: bool,
    },
}

/// Part of an action for one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpstreamTask {
    /// Id of the node.
    pub(crate) id: String,
    pub(crate) state: TaskState,
}

/// Record of an upstream under the id of a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UpstreamRecord {
    /// The upstream reports no more than tasks.
    NotKept,
    /// The upstream does not know the id.
    Missing,
    /// The upstream has this record.
    Found(UpstreamTransition),
}

/// Progress of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TransitionProgress {
    /// Tasks, one per node.
    pub(crate) tasks: Vec<UpstreamTask>,
    /// Whether the progress is final.
    pub(crate) ended: bool,
    /// Record of the upstream under the id.
    pub(crate) record: UpstreamRecord,
}

impl TransitionProgress {
    /// Returns the progress of a transition that the upstream does not know any more, or never knew.
    pub(crate) fn forgotten(record: UpstreamRecord) -> Self {
        Self { tasks: Vec::new(), ended: true, record }
    }
}
