//! States of nodes by the answers of an upstream, as they are held: nodes with equal answers share one.

use std::{borrow::Cow, hash::Hash, sync::Arc};

use domain::core::{
    invalid::Invalid,
    shared_part::{PartPool, SharedPart},
    time::Timestamp,
};
use proto::{Message, WatchedMessage};

use crate::{
    mesh::time,
    observe::mirror::MirroredKind,
    store::resource::{Resource, WireForm},
};

/// Message with the state of one node.
pub trait NodeMessage: Message + WatchedMessage + Clone + Default + Eq + Hash + 'static {
    /// Word for the kind, see [`Resource::KIND`].
    const KIND: &'static str;

    /// Returns the members that differ from node to node.
    fn own_members(&mut self) -> OwnMembers<'_>;
}

/// Members of a message that differ from node to node.
#[derive(Debug)]
pub struct OwnMembers<'a> {
    /// Id of the node.
    pub id: &'a mut String,
    /// Time of the answer.
    pub observed_at: &'a mut Option<prost_types::Timestamp>,
    /// Revision of the last change.
    pub revision: &'a mut u64,
}

/// State of one node. Times are accurate to a millisecond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState<M> {
    id: Arc<str>,
    observed_at: Option<Timestamp>,
    revision: u64,
    /// Message without the members of the node's own.
    content: SharedPart<M>,
}

impl<M: NodeMessage> NodeState<M> {
    /// Returns the state in a message.
    pub fn of(mut message: M) -> Self {
        let OwnMembers { id, observed_at, revision } = message.own_members();
        let id = std::mem::take(id).into();
        let observed_at = observed_at.take().map(time::from_wire);
        let revision = std::mem::take(revision);
        Self { id, observed_at, revision, content: message.into() }
    }

    /// Returns the message of the state.
    pub fn message(&self) -> M {
        let mut message = M::clone(&self.content);
        let own = message.own_members();
        *own.id = self.id.to_string();
        *own.observed_at = self.observed_at.map(time::to_wire);
        *own.revision = self.revision;
        message
    }

    /// Id of the node.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Time of the answer; `None`: not known.
    pub fn observed_at(&self) -> Option<Timestamp> {
        self.observed_at
    }

    /// Message without id, time and revision.
    pub fn content(&self) -> &M {
        &self.content
    }

    /// Shares the answer with the states of other nodes.
    pub fn share(&mut self, pool: &mut PartPool<M>) {
        pool.share(&mut self.content);
    }
}

impl<M: NodeMessage> Resource for NodeState<M> {
    const KIND: &'static str = M::KIND;

    fn key(&self) -> &str {
        &self.id
    }

    fn shared_key(&self) -> Arc<str> {
        Arc::clone(&self.id)
    }

    fn share_key(&mut self, other: &Self) {
        self.id = Arc::clone(&other.id);
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    fn weight(&self) -> usize {
        // As if the answer was its own.
        size_of::<Self>() + size_of::<M>()
    }
}

impl<M: NodeMessage> WireForm for NodeState<M> {
    type Message = M;
    type Pool = PartPool<M>;

    fn to_wire(&self) -> Cow<'_, M> {
        Cow::Owned(self.message())
    }

    fn from_wire(message: M, pool: &mut PartPool<M>) -> Result<Self, Invalid> {
        let mut state = Self::of(message);
        state.share(pool);
        Ok(state)
    }
}

impl<M: NodeMessage> MirroredKind for NodeState<M> {}

#[cfg(test)]
mod tests {
    use proto::{configuration::ConfigurationState, power::PowerState};

    use super::*;

    fn state(id: &str, status: &str, revision: u64) -> ConfigurationState {
        ConfigurationState {
            id: id.into(),
            status: status.into(),
            desired_configuration: Some("compute".into()),
            observed_at: Some(prost_types::Timestamp { seconds: 7, nanos: 89_000_000 }),
            generation: 3,
            revision,
            ..ConfigurationState::default()
        }
    }

    #[test]
    fn a_message_comes_back_as_it_went() {
        for message in [state("x1", "configured", 4), ConfigurationState::default()] {
            assert_eq!(NodeState::of(message.clone()).message(), message);
        }
    }

    #[test]
    fn equal_answers_about_nodes_are_shared() {
        let mut pool = PartPool::default();
        let mut read = |message| NodeState::from_wire(message, &mut pool).unwrap();
        let [first, second] = [state("x1", "configured", 4), state("x2", "configured", 5)].map(&mut read);
        let third = read(state("x3", "pending", 6));
        assert!(SharedPart::is_same(&first.content, &second.content));
        assert!(!SharedPart::is_same(&first.content, &third.content));
        assert_eq!(second.message(), state("x2", "configured", 5));
    }

    /// A state is held for each node of a machine.
    #[test]
    fn a_state_is_small_beside_its_shared_answer() {
        assert_eq!([size_of::<NodeState<PowerState>>(), size_of::<NodeState<ConfigurationState>>()], [48; 2]);
    }
}
