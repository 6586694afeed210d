//! Transitions that the power service took, and the nodes that they keep.

use std::{collections::BTreeSet, time::SystemTime};

use proto::component::Action;
use tokio::time::Instant;

/// A transition that the power service took.
#[derive(Clone)]
pub(super) struct Taken {
    pub(super) id: String,
    pub(super) action: Action,
    pub(super) nodes: Vec<String>,
    /// Requested nodes that another transition held.
    pub(super) refused: Vec<String>,
    /// Nodes on which the transition has ended.
    pub(super) ended: BTreeSet<String>,
    pub(super) is_foreign: bool,
    pub(super) at: SystemTime,
    pub(super) began: Instant,
}

impl Taken {
    pub(super) fn new(id: &str, action: Action, nodes: Vec<String>) -> Self {
        let (refused, ended, is_foreign) = (Vec::new(), BTreeSet::new(), false);
        let (id, at, began) = (id.to_owned(), SystemTime::now(), Instant::now());
        Self { id, action, nodes, refused, ended, is_foreign, at, began }
    }

    pub(super) fn is_open(&self) -> bool {
        self.nodes.iter().any(|node| self.holds(node))
    }

    pub(super) fn holds(&self, node: &String) -> bool {
        self.nodes.contains(node) && !self.ended.contains(node)
    }

    /// Returns whether the node is reserved: until the transition has ended on all of its nodes, as at PCS.
    pub(super) fn reserves(&self, node: &String) -> bool {
        self.nodes.contains(node) && self.is_open()
    }
}
