//! When nodes were asked to shut down, and when they went on.

use std::collections::BTreeMap;

use proto::component::Action;
use tokio::time::Instant;

use super::Journal;
use crate::invariants;

/// What is known of the shutdowns of all nodes.
#[derive(Default)]
pub(super) struct ShutdownRecords {
    /// Time at which each node was last asked.
    asked: BTreeMap<String, Instant>,
    /// Time at which each node last went on; `None`: it is off.
    on_since: BTreeMap<String, Option<Instant>>,
    /// Time at which the power controller last lost what it knew.
    pub(super) lost: Option<Instant>,
}

impl Journal {
    /// Records the power of a node.
    pub fn note_power(&self, node: &str, is_on: bool) {
        let mut state = self.state.lock();
        let shutdowns = &mut state.shutdowns;
        let known = shutdowns.on_since.get(node).copied();
        match (known, is_on) {
            (Some(Some(_)), true) | (Some(None), false) => {}
            (_, true) => drop(shutdowns.on_since.insert(node.to_owned(), Some(Instant::now()))),
            (_, false) => drop(shutdowns.on_since.insert(node.to_owned(), None)),
        }
    }

    /// Records that the database of the power controller has lost rows: it cannot know which nodes were off.
    pub fn forget_shutdowns(&self) {
        self.state.lock().shutdowns.lost = Some(Instant::now());
    }

    /// Records that the power service took an action of this service.
    pub fn shuts_down(&self, action: Action, nodes: &[String]) {
        let mut state = self.state.lock();
        for node in nodes {
            if action == Action::PoweringOffGracefully {
                state.shutdowns.asked.insert(node.clone(), Instant::now());
            }
            let ShutdownRecords { asked, on_since, lost } = &state.shutdowns;
            let (asked, on_since) = (asked.get(node).copied(), on_since.get(node).copied().flatten());
            let is_forgotten = lost.is_some() && *lost >= asked;
            if action == Action::PoweringOffForcefully && !is_forgotten {
                state.judge("I4", invariants::asked_before_cut(node, asked, on_since));
            }
        }
        self.tell(&state);
    }
}
