//! States of configuration.

use proto::configuration::ConfigurationState;

use super::{NodeMessage, NodeState, OwnMembers};

/// State of configuration of one node.
pub type ConfigurationStateRecord = NodeState<ConfigurationState>;

impl NodeMessage for ConfigurationState {
    const KIND: &'static str = "configuration_state";

    fn own_members(&mut self) -> OwnMembers<'_> {
        let Self { id, observed_at, revision, .. } = self;
        OwnMembers { id, observed_at, revision }
    }
}
