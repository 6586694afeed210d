//! How an action that an upstream was asked for goes, node by node.

use crate::driver::Accepted;

/// How one node's part of an action goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaskState {
    /// It has no result yet.
    Pending,
    /// The power of the node is what was asked for.
    Succeeded,
    /// The task was begun and failed at the BMC, for this reason in the upstream's words.
    Failed(String),
    /// The node was asked, and its power was not what was asked for when its time was over, in the upstream's words.
    TimedOut(String),
    /// The task was not begun, for this reason in the upstream's words.
    Refused {
        words: String,
        /// Whether another transition holds the node.
        reserved: bool,
    },
}

/// One node's part of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    /// The node.
    pub(crate) id: String,
    pub(crate) state: TaskState,
}

/// How an action goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    /// One per node.
    pub(crate) tasks: Vec<Task>,
    /// Whether nothing will change any more.
    pub(crate) ended: bool,
    /// Record of the upstream under the id; none: it tells no more than tasks, or does not know the id.
    pub(crate) record: Option<Accepted>,
}
