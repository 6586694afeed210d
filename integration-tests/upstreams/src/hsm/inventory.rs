//! Records of the inventory.

use std::{collections::HashMap, sync::Arc, time::Duration};

use proto::inventory::{Group, Hardware};
use simulator::topology::NODE;

use super::{Groups, notices::SubscriptionTable};

/// Records of the inventory.
#[derive(Debug)]
pub(crate) struct InventoryRecords {
    /// The nodes, by their position in the machine.
    pub(crate) nodes: Vec<Hardware>,
    /// Hardware other than nodes.
    pub(crate) others: Vec<Hardware>,
    /// Positions of the nodes in the order of their ids, the order of every list.
    pub(crate) order: Vec<usize>,
    pub(crate) groups: Groups,
    pub(crate) partitions: Groups,
    /// Reservations by position.
    pub(crate) reservations: HashMap<usize, NodeReservation>,
    pub(crate) subscriptions: SubscriptionTable,
}

/// An exclusive reservation of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeReservation {
    /// The transition, or the test.
    pub(crate) owner: Arc<str>,
    pub(crate) since: Duration,
}

impl InventoryRecords {
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
            subscriptions: SubscriptionTable::default(),
        }
    }

    /// Reserves the node for `owner` unless it is locked or another owner has reserved it.
    pub(crate) fn reserve(&mut self, position: usize, owner: &Arc<str>, since: Duration) -> bool {
        if let Some(held) = self.reservations.get(&position) {
            return held.owner == *owner;
        }
        let free = !self.nodes[position].locked;
        if free {
            self.reservations.insert(position, NodeReservation { owner: owner.clone(), since });
        }
        free
    }

    /// Releases the node if `owner` has reserved it.
    pub(crate) fn release(&mut self, position: usize, owner: &str) {
        if self.reservations.get(&position).is_some_and(|reservation| *reservation.owner == *owner) {
            self.reservations.remove(&position);
        }
    }
}
