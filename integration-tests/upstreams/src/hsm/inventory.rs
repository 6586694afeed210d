//! What the inventory holds.

use std::{collections::HashMap, sync::Arc, time::Duration};

use proto::inventory::{Group, Hardware};
use simulator::topology::NODE;

use super::{Groups, notices::Subscriptions};

/// What the inventory holds.
#[derive(Debug)]
pub(crate) struct Inventory {
    /// The nodes, by their position in the machine.
    pub(crate) nodes: Vec<Hardware>,
    /// What is not a node.
    pub(crate) others: Vec<Hardware>,
    /// Positions of the nodes in the order of their ids, in which every list comes.
    pub(crate) order: Vec<usize>,
    pub(crate) groups: Groups,
    pub(crate) partitions: Groups,
    /// By position: what nobody else may reserve now.
    pub(crate) reservations: HashMap<usize, Reservation>,
    pub(crate) subscriptions: Subscriptions,
}

/// Who has a node for itself.
#[derive(Clone, Debug)]
pub(crate) struct Reservation {
    /// The transition, or whoever a test made it for.
    pub(crate) owner: Arc<str>,
    pub(crate) since: Duration,
}

impl Inventory {
    pub(crate) fn new(hardware: Vec<Hardware>, groups: Vec<Group>, partitions: Vec<Group>) -> Self {
        let (nodes, others): (Vec<_>, Vec<_>) = hardware.into_iter().partition(|piece| piece.r#type == NODE);
        let mut order: Vec<_> = (0..nodes.len()).collect();
        order.sort_by(|a, b| nodes[*a].id.cmp(&nodes[*b].id));
        let named = |groups: Vec<Group>| groups.into_iter().map(|group| (group.label, group.ids)).collect();
        Self {
            nodes,
            others,
            order,
            groups: named(groups),
            partitions: named(partitions),
            reservations: HashMap::new(),
            subscriptions: Subscriptions::default(),
        }
    }

    /// Takes the node for `owner` unless it is locked or somebody else has it.
    pub(crate) fn reserve(&mut self, position: usize, owner: &Arc<str>, since: Duration) -> bool {
        if let Some(held) = self.reservations.get(&position) {
            return held.owner == *owner;
        }
        let free = !self.nodes[position].locked;
        if free {
            self.reservations.insert(position, Reservation { owner: owner.clone(), since });
        }
        free
    }

    /// Gives back what `owner` has of the node.
    pub(crate) fn release(&mut self, position: usize, owner: &str) {
        if self.reservations.get(&position).is_some_and(|reservation| *reservation.owner == *owner) {
            self.reservations.remove(&position);
        }
    }
}
