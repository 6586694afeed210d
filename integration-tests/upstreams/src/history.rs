//! Events of each node, in order, so that tests can prove every action on it, and the absence of others.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use serde::Serialize;

/// Events that are kept of one node: several boots.
const MOST_EVENTS: usize = 64;

/// An event of one node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeEvent {
    /// Seconds since the start.
    pub at: f64,
    /// Place in the order of all events of all nodes.
    pub sequence: u64,
    /// Kind of the event.
    #[serde(flatten)]
    pub what: EventKind,
}

/// Kinds of events of a node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum EventKind {
    /// The boot script service took data for the node.
    BootData {
        /// Token that names the data.
        token: Arc<str>,
    },
    /// The configuration service accepted a change of the node.
    Configuration {
        /// Desired configuration.
        desired: Arc<str>,
        /// Whether the component is enabled now.
        enabled: bool,
        /// Whether the change clears the applied layers.
        cleared: bool,
    },
    /// A transition that names the node was accepted.
    Asked {
        /// The transition.
        transition: Arc<str>,
        /// Operation, such as `Soft-Off`.
        operation: &'static str,
    },
    /// The node's task in a transition has a result.
    Result {
        /// The transition.
        transition: Arc<str>,
        /// `succeeded`, `failed` or `unsupported`.
        status: &'static str,
        /// Reason of the failure; empty: there was none.
        error: Arc<str>,
    },
    /// The node turned on.
    On,
    /// The node turned off.
    Off,
    /// The node's operating system is up.
    Booted {
        /// Token of the boot data; empty: boot data from no client.
        token: Arc<str>,
    },
    /// The configuration service changed its mind about it.
    Configured {
        /// New status.
        status: &'static str,
    },
    /// The node was locked or unlocked in the inventory.
    Locked {
        /// Whether the node is locked now.
        locked: bool,
    },
}

/// Number of requested power changes of a node, and their results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PowerRecord {
    /// Transitions to on that named it.
    pub on: u32,
    /// Graceful transitions to off that named it, escalating ones included.
    pub soft_off: u32,
    /// Forced transitions to off that named it.
    pub force_off: u32,
    /// Restarts that named it.
    pub restart: u32,
    /// Transitions that were accepted while an earlier one in the opposite direction had no result for it.
    pub crossings: u32,
    /// Transitions that were accepted while an earlier one in the same direction had no result for it.
    pub overlaps: u32,
    /// Transitions that failed for it because it was locked or reserved.
    pub refused_reservations: u32,
}

/// The events of every node.
#[derive(Debug)]
pub(crate) struct NodeHistory {
    nodes: Vec<VecDeque<NodeEvent>>,
    sequence: u64,
}

impl NodeHistory {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { nodes: vec![VecDeque::new(); nodes], sequence: 0 }
    }

    pub(crate) fn note(&mut self, now: Duration, position: usize, what: EventKind) {
        self.sequence += 1;
        let events = &mut self.nodes[position];
        if events.len() == MOST_EVENTS {
            events.pop_front();
        }
        events.push_back(NodeEvent { at: now.as_secs_f64(), sequence: self.sequence, what });
    }

    pub(crate) fn of(&self, position: usize) -> Vec<NodeEvent> {
        self.nodes[position].iter().cloned().collect()
    }
}
