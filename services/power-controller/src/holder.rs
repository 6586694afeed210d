//! Transitions that hold nodes at the upstream, for people: the upstream is asked, and nothing is recorded.

use std::{collections::HashSet, sync::Arc, time::Duration};

use chassis::{Fault, kinds::options::OptionsRecord, observe::mirror::Mirror, store::ledger::Ledger};
use domain::{
    boot::power::transition::{PowerTransition, TransitionDelivery},
    core::time::Timestamp,
};

use crate::{
    driver::{OpenTransitions, PowerUpstream, UpstreamTransition},
    journal::is_open,
    store::TransitionTable,
};

/// Transition that holds nodes.
#[derive(Debug, Clone)]
pub(crate) enum NodeHolder {
    /// Transition of this service, which the upstream has taken or may have taken.
    Own(Arc<PowerTransition>),
    /// Transition of another client.
    Foreign(UpstreamTransition),
    /// Transition that an operator has abandoned, whoever requested it.
    Abandoned(Arc<PowerTransition>),
}

/// Transitions that hold nodes.
#[derive(Debug, Default)]
pub(crate) struct NodeHolders {
    /// Holders, each with those of the components that it holds. No component has two.
    pub(crate) found: Vec<(NodeHolder, Vec<String>)>,
    /// Error about a transition that may hold any of the other components; `None`: all were read.
    pub(crate) unread: Option<String>,
}

/// Question which transitions hold nodes.
#[derive(Clone)]
pub(crate) struct HolderQuestion {
    pub(crate) transitions: Ledger<TransitionTable>,
    pub(crate) driver: PowerUpstream,
    pub(crate) options: Mirror<OptionsRecord>,
}

impl HolderQuestion {
    /// Returns the transition of this service that holds the component and that nobody has abandoned, as far as is on record.
    pub(crate) fn own(&self, component_id: &str) -> Option<Arc<PowerTransition>> {
        let recorded = self.transitions.view().all();
        recorded.into_iter().find(|one| {
            one.may_be_taken() && one.abandoned_at.is_none() && one.nodes().any(|id| id == component_id)
        })
    }

    /// Asks the upstream which transitions hold the components.
    ///
    /// # Errors
    /// When the upstream does not answer.
    pub(crate) async fn ask(&self, component_ids: Vec<String>) -> Result<NodeHolders, Fault> {
        let recorded = self.transitions.view().all();
        let (abandoned, ours): (Vec<_>, Vec<_>) =
            recorded.into_iter().partition(|one| one.abandoned_at.is_some());
        let open = ours.iter().filter(|one| is_open(one));
        let known: HashSet<_> = open.map(|one| one.upstream_id.clone()).collect();
        let open = self.driver.open_beside(&known, self.deadline()).await;
        let open = open.map_err(|failure| Fault::unavailable("power upstream", failure))?;
        Ok(holders_among(&ours, &abandoned, open, component_ids.into_iter().collect()))
    }

    /// Returns the deadline for answers of the upstream (BOS reference 4, `pcs_read_timeout`).
    pub(crate) fn deadline(&self) -> Duration {
        Duration::from_secs(self.options.in_force().pcs_read_timeout.into())
    }
}

/// Finds the holders of components. Transitions of this service come first, because one of them in doubt may be listed as if
/// it were another client's; abandoned ones come last.
fn holders_among(
    ours: &[Arc<PowerTransition>],
    abandoned: &[Arc<PowerTransition>],
    open: OpenTransitions,
    mut free: HashSet<String>,
) -> NodeHolders {
    let OpenTransitions { read, unread } = open;
    let record = |id: &str| abandoned.iter().find(|one| one.upstream_id == id);
    let mut found = Vec::new();
    let mut add = |holder: NodeHolder, nodes: &mut dyn Iterator<Item = &str>| {
        let held: Vec<_> = nodes.filter_map(|id| free.take(id)).collect();
        if !held.is_empty() {
            found.push((holder, held));
        }
    };
    for own in ours.iter().filter(|one| one.may_be_taken()) {
        add(NodeHolder::Own(Arc::clone(own)), &mut own.nodes());
    }
    let (given_up, foreign): (Vec<_>, Vec<_>) = read.into_iter().partition(|one| record(&one.id).is_some());
    for one in foreign {
        add(NodeHolder::Foreign(one.clone()), &mut one.ids.iter().map(String::as_str));
    }
    for (one, held) in given_up.iter().filter_map(|one| Some((one, record(&one.id)?))) {
        add(NodeHolder::Abandoned(Arc::clone(held)), &mut one.ids.iter().map(String::as_str));
    }
    for held in unread.iter().filter_map(|(id, _)| record(id)) {
        add(NodeHolder::Abandoned(Arc::clone(held)), &mut held.nodes());
    }
    let unread = unread.iter().find(|(id, _)| record(id).is_none());
    NodeHolders { found, unread: unread.map(|(_, failure)| failure.to_string()) }
}

impl NodeHolder {
    /// Returns the record of the transition, or one made of its facts.
    pub(crate) fn shown(self) -> PowerTransition {
        match self {
            Self::Own(recorded) | Self::Abandoned(recorded) => Arc::unwrap_or_clone(recorded),
            Self::Foreign(found) => PowerTransition {
                delivery: TransitionDelivery::Accepted,
                created_at: began(&found),
                ..PowerTransition::of_another(found.action, &found.id, found.ids)
            },
        }
    }
}

/// Returns the time at which the upstream took a transition; `None`: it does not tell.
pub(crate) fn began(found: &UpstreamTransition) -> Option<Timestamp> {
    (found.at < Timestamp(i64::MAX)).then_some(found.at)
}
