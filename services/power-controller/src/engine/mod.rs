//! The state of all power actions under way, as plain values: one record for each transition, and one for each node.

mod nodes;
mod polls;
mod records;

use std::{sync::Arc, time::Instant};

use chassis::process::clock;
use domain::core::{time::Timestamp, trouble::Trouble};
use parking_lot::Mutex;

pub(crate) use self::{
    nodes::{Attempt, NodeHolder, NodeRecords, OpenAction, Opening, attempts},
    polls::PollSchedule,
    records::{Streak, TransitionRecords},
};
use crate::convert;

/// Point in time, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Time of day, for ages and for records.
    pub(crate) at: Timestamp,
    /// Time for waits.
    pub(crate) instant: Instant,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { at: clock::now(), instant: tokio::time::Instant::now().into_std() }
    }
}

/// State of all power actions of one term.
#[derive(Debug)]
pub(crate) struct PowerEngine {
    pub(crate) transitions: TransitionRecords,
    pub(crate) nodes: NodeRecords,
    pub(crate) polls: PollSchedule,
    /// Searches for transitions in doubt.
    pub(crate) searches: Streak,
    /// Searches for holders of nodes.
    pub(crate) holder_searches: Streak,
    /// Withdrawals of transitions.
    pub(crate) withdrawals: Streak,
}

/// Engine that the tasks of one term share.
pub(crate) type SharedEngine = Arc<Mutex<PowerEngine>>;

impl PowerEngine {
    pub(crate) fn new(nodes: NodeRecords, polls: PollSchedule) -> Self {
        Self {
            transitions: TransitionRecords::default(),
            nodes,
            polls,
            searches: Streak::default(),
            holder_searches: Streak::default(),
            withdrawals: Streak::default(),
        }
    }

    /// Returns the trouble of a node whose power is open in `generation`, because a transition for an older generation
    /// holds the node; `None`: no such transition does.
    pub(crate) fn waits_for_holder(&self, id: &str, generation: u64) -> Option<Trouble> {
        self.nodes.older_holder(id, generation).map(|holder| self.waits_for(holder))
    }

    /// Returns the trouble of a node whose power is open until the transition of its `holder` has ended.
    pub(crate) fn waits_for(&self, holder: &NodeHolder) -> Trouble {
        convert::waiting_for_transition(&holder.upstream_id, self.transitions.silence(&holder.transition))
    }
}
