//! Presence in the inventory of a node that is to be acted on (BOS reference 5.2, "HSM presence").
//!
//! BOS asks before every action and leaves out the nodes that are not listed. Here the registry asks when a wish
//! begins, then in rounds about all nodes that are acted on, and follows later listings; a node is prepared and
//! switched only while it is known to be listed.

use std::{sync::Arc, time::Duration};

use crate::{
    boot::bos::options::Options,
    core::{
        confirmed_set::{CONFIRMATION, LONGEST_GAP},
        time::Timestamp,
        trouble::{Trouble, TroubleKind},
    },
};

/// An inventory does not list a node that it was asked about.
pub const ERROR_ABSENT: &str =
    "the inventory does not list the node, so its power is left alone; it goes on once the node is listed";
/// [`ERROR_ABSENT`] of one answer only.
pub const ERROR_DOUBTFUL: &str = "the newest answer of the inventory lacks the node, so its power is left alone until the inventory has been asked again";

/// Least time between requests to an inventory in trouble, whatever else happens to the waiting nodes.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);

/// Answer of the inventory about a node since its generation began.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InventoryPresence {
    /// No answer yet.
    Unknown {
        /// Peer that is waited for and its last error; empty: the request has just been made.
        trouble: Arc<str>,
    },
    /// The inventory lists the node.
    Listed,
    /// The newest answer lacks the node. No action begins until another answer decides.
    Doubtful {
        /// Time of the first answer that lacked the node.
        since: Timestamp,
    },
    /// Answers far enough apart lack the node.
    Absent {
        /// Time of the first of these answers.
        since: Timestamp,
    },
}

impl Default for InventoryPresence {
    fn default() -> Self {
        Self::Unknown { trouble: Arc::default() }
    }
}

impl InventoryPresence {
    /// Returns how long to wait at `now` before the next request about an enabled node; `None`: later rounds and
    /// listings cover it.
    pub fn ask_in(&self, options: &Options, now: Timestamp) -> Option<Duration> {
        match self {
            Self::Unknown { trouble } if trouble.is_empty() => Some(Duration::ZERO),
            Self::Unknown { .. } => Some(AFTER_TROUBLE),
            Self::Listed => None,
            Self::Doubtful { since } => Some(CONFIRMATION.saturating_sub(now.since(*since))),
            Self::Absent { .. } => Some(options.polling_period()),
        }
    }

    /// Returns whether answers far enough apart lack the node.
    pub fn is_absent(&self) -> bool {
        match self {
            Self::Absent { .. } => true,
            Self::Unknown { .. } | Self::Listed | Self::Doubtful { .. } => false,
        }
    }

    /// Returns whether an enabled node is requested in each round: a listed node may be removed while it is acted on.
    /// All others are requested at times of their own.
    pub fn is_queried_in_rounds(&self) -> bool {
        match self {
            Self::Listed => true,
            Self::Unknown { .. } | Self::Doubtful { .. } | Self::Absent { .. } => false,
        }
    }

    /// Returns the presence after an answer at `now` that lists the node or lacks it. A listed node counts at once, an
    /// absence once a later answer confirms it. A doubt that no answer has confirmed in time begins anew.
    pub(crate) fn after(&self, is_listed: bool, now: Timestamp) -> Self {
        match self {
            _ if is_listed => Self::Listed,
            Self::Unknown { .. } | Self::Listed => Self::Doubtful { since: now },
            Self::Doubtful { since } if now.since(*since) > LONGEST_GAP => Self::Doubtful { since: now },
            Self::Doubtful { since } if now.since(*since) >= CONFIRMATION => Self::Absent { since: *since },
            Self::Doubtful { .. } | Self::Absent { .. } => self.clone(),
        }
    }

    /// Returns the trouble of a node that must not be acted on; `None`: it is listed, or the request has just been
    /// made.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        match self {
            Self::Unknown { trouble } => Trouble::new(TroubleKind::Waiting, Arc::clone(trouble)),
            Self::Listed => None,
            Self::Doubtful { .. } => Some(Trouble::own(TroubleKind::NotListed, ERROR_DOUBTFUL)),
            Self::Absent { .. } => Some(Trouble::own(TroubleKind::NotListed, ERROR_ABSENT)),
        }
    }
}
