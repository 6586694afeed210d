//! Request of one power action on a batch of nodes, from the intent to its end.

use crate::{
    boot::component::Action,
    core::{time::Timestamp, trouble::Trouble},
};

/// Power action on a batch of nodes, as it is on record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PowerTransition {
    /// Unique id.
    pub id: String,
    /// Power-on, graceful power-off or forced power-off; `None` only for a record of another version.
    pub action: Option<Action>,
    /// Nodes of the batch.
    pub members: Vec<TransitionMember>,
    /// State of the request to the upstream.
    pub delivery: TransitionDelivery,
    /// Id at the upstream; empty: none yet.
    pub upstream_id: String,
    /// Trouble of a transition that was refused, waits or is in doubt, in the words of the peer.
    pub trouble: Option<Trouble>,
    /// Time at which the intent was recorded.
    pub created_at: Option<Timestamp>,
    /// Time at which the request was sent.
    pub sent_at: Option<Timestamp>,
    /// Latest time at which the upstream can have accepted it; `None`: not accepted, or recorded by an older version.
    pub accepted_at: Option<Timestamp>,
    /// Time of the request to the upstream to end it early; `None`: there was none.
    pub withdrawn_at: Option<Timestamp>,
    /// Time at which an operator abandoned it; `None`: not abandoned.
    pub abandoned_at: Option<Timestamp>,
    /// Id of the request that abandoned it.
    pub abandoned_by: String,
    /// Revision of the last change; the store sets it.
    pub revision: u64,
}

/// Generation of the nodes of a transition that another client requested. Components have none below 1.
pub const NO_GENERATION: u64 = 0;

impl PowerTransition {
    /// Returns a transition that another client requested from the upstream, with these nodes.
    pub fn of_another(action: Option<Action>, upstream_id: &str, nodes: Vec<String>) -> Self {
        let member = |id| TransitionMember { id, generation: NO_GENERATION, ..TransitionMember::default() };
        Self {
            action,
            upstream_id: upstream_id.to_owned(),
            members: nodes.into_iter().map(member).collect(),
            ..Self::default()
        }
    }

    /// Returns whether the upstream has taken the transition and not ended it, or may have taken it.
    pub fn may_be_taken(&self) -> bool {
        match self.delivery {
            TransitionDelivery::Sent | TransitionDelivery::Unknown | TransitionDelivery::Accepted => true,
            TransitionDelivery::Unspecified
            | TransitionDelivery::Prepared
            | TransitionDelivery::Refused
            | TransitionDelivery::Finished => false,
        }
    }

    /// Returns the ids of its nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.id.as_str())
    }

    /// Returns whether another client requested the transition. It is on record only because an operator has abandoned it.
    pub fn is_of_another(&self) -> bool {
        self.members.iter().all(|member| member.generation == NO_GENERATION)
    }
}

/// Attempt at the action on one node of a transition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransitionMember {
    /// Id of the component.
    pub id: String,
    /// Generation of the component that the attempt is for; [`NO_GENERATION`]: another client requested the action.
    pub generation: u64,
    /// Number of the attempt, counted from 1.
    pub attempt: u32,
    /// Result on this node.
    pub outcome: TaskOutcome,
    /// Error of a failure, in the words of the peer.
    pub error: String,
    /// Id of the upstream's transition that held the node when this one was refused; empty: none known.
    pub held_by: String,
    /// Number of times in a row that a reservation was in the way of the attempt although no transition of the upstream
    /// was known to hold the node. The attempt is made again after a pause.
    pub reservations: u32,
}

/// State of the request of a transition to the upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TransitionDelivery {
    /// Not known to this version: nothing is done about it.
    #[default]
    Unspecified,
    /// Recorded; not sent yet.
    Prepared,
    /// Being sent.
    Sent,
    /// Accepted by the upstream under an id, and polled until it ends there.
    Accepted,
    /// Refused by the upstream.
    Refused,
    /// In doubt: the upstream may have accepted it, and is being searched for it.
    Unknown,
    /// Ended by the upstream, which holds none of its nodes any more.
    Finished,
}

/// Result of a transition on one node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TaskOutcome {
    /// Not known yet.
    #[default]
    Unspecified,
    /// The node has reached the requested power.
    Succeeded,
    /// The action began and ended without the effect.
    Failed,
    /// The upstream did not begin: the node received no command.
    Refused,
}
