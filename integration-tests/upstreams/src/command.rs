//! Reads and changes the world for tests and operators, past the systems' own APIs.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use simulator::node::PowerCommand;

use crate::{
    bss::{BootRequest, mac_of},
    cfs::ConfigurationRequest,
    history::{NodeEvent, PowerRecord},
    hsm::ComponentChange,
    images::StoredImage,
    node_faults::NodeFaults,
    state::MachineState,
};

/// An id that is not one of a node of the machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a node of the machine")]
pub struct UnknownNode(pub String);

/// State of the machine in numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineSummary {
    /// Nodes there are.
    pub nodes: usize,
    /// Nodes that have power.
    pub on: usize,
    /// Nodes whose operating system is up.
    pub up: usize,
    /// Nodes by their status in the configuration service.
    pub configuration: BTreeMap<String, usize>,
    /// Nodes that are reserved in the inventory.
    pub reserved: usize,
    /// Sums of [`PowerRecord`] over all nodes.
    pub power: PowerRecord,
}

/// Everything about one node.
#[derive(Clone, Debug, Serialize)]
pub struct NodeView {
    /// Location name.
    pub id: String,
    /// Numeric id.
    pub nid: u32,
    /// Address of its network card.
    pub mac: String,
    /// Role of the node.
    pub role: String,
    /// Refinement of the role; empty: none.
    pub sub_role: String,
    /// Architecture; empty: unknown to the inventory.
    pub arch: String,
    /// Whether the inventory enables the node.
    pub enabled: bool,
    /// Whether the node is locked in the inventory.
    pub locked: bool,
    /// Owner of the reservation: a transition or a test; `None`: not reserved.
    pub reserved_by: Option<Arc<str>>,
    /// Whether the node has power.
    pub on: bool,
    /// Whether the operating system of the node is up.
    pub up: bool,
    /// Token of the running boot data; empty: boot data from no client.
    pub token: Arc<str>,
    /// Name of the desired configuration; empty: none.
    pub desired_configuration: String,
    /// Progress of the hardware towards that configuration.
    pub configuration_status: &'static str,
    /// Whether the node may be configured.
    pub configuration_enabled: bool,
    /// Faults of the node.
    pub faults: NodeFaults,
    /// Power requests that the node got.
    pub power: PowerRecord,
}

/// A change of nodes. A missing member leaves its value as it is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeChange {
    /// All that is wrong with it from now on.
    pub faults: Option<NodeFaults>,
    /// Whether the inventory enables the node.
    pub enabled: Option<bool>,
    /// Whether the node is locked.
    pub locked: Option<bool>,
    /// Role of the node.
    pub role: Option<String>,
    /// Refines the role.
    pub sub_role: Option<String>,
    /// Architecture.
    pub arch: Option<String>,
    /// Whether the test, which is no transition, reserves the node.
    pub reserved: Option<bool>,
    /// Seconds until the test's reservation ends.
    pub reserved_seconds: Option<f64>,
}

/// An event of the power service.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum PowerEvent {
    /// The service stops, with all that it was performing, and starts again. Its transitions survive; it resumes the
    /// open ones at its first reaper round, as shipped a minute after the start.
    Restart {
        /// Duration of the downtime.
        seconds: f64,
    },
    /// The workers of all transitions die, as with one of several replicas, while the service keeps answering. It
    /// resumes the transitions as after a restart.
    WorkersDie,
    /// Hardware is not sampled, so that power states lag.
    NoSampling {
        /// Duration of the pause.
        seconds: f64,
    },
}

/// Owner of reservations that tests make.
const SOMEBODY: &str = "somebody";

impl MachineState {
    /// Returns the positions of `ids`, or of all nodes if it is empty.
    ///
    /// # Errors
    /// Names an id that is not one of a node.
    pub(crate) fn positions(&self, ids: &[String]) -> Result<Vec<usize>, UnknownNode> {
        if ids.is_empty() {
            return Ok(self.inventory.order.clone());
        }
        let position = |id: &String| self.machine.position(id).ok_or_else(|| UnknownNode(id.clone()));
        ids.iter().map(position).collect()
    }

    pub(crate) fn summary(&self) -> MachineSummary {
        let nodes = self.machine.nodes();
        let mut configuration = BTreeMap::new();
        for node in nodes {
            *configuration.entry(node.configuration().1.word().to_owned()).or_insert(0) += 1;
        }
        MachineSummary {
            nodes: nodes.len(),
            on: nodes.iter().filter(|node| node.is_on()).count(),
            up: nodes.iter().filter(|node| node.is_up()).count(),
            configuration,
            reserved: self.inventory.reservations.len(),
            power: self.power.records.iter().fold(PowerRecord::default(), PowerRecord::plus),
        }
    }

    pub(crate) fn view(&self, position: usize) -> NodeView {
        let (node, piece) = (&self.machine.nodes()[position], &self.inventory.nodes[position]);
        let (desired, status) = node.configuration();
        NodeView {
            id: piece.id.clone(),
            nid: piece.nid,
            mac: mac_of(position),
            role: piece.role.clone(),
            sub_role: piece.sub_role.clone(),
            arch: piece.arch.clone(),
            enabled: piece.enabled,
            locked: piece.locked,
            reserved_by: self.inventory.reservations.get(&position).map(|held| held.owner.clone()),
            on: node.is_on(),
            up: node.is_up(),
            token: node.booted_with().map_or_else(|| "".into(), |boot| boot.token.clone()),
            desired_configuration: desired.to_owned(),
            configuration_status: status.word(),
            configuration_enabled: node.configuration_enabled(),
            faults: self.faults[position].clone(),
            power: self.power.records[position].clone(),
        }
    }

    /// Changes nodes and notifies the subscribers.
    pub(crate) fn change(&mut self, positions: &[usize], change: &NodeChange) {
        if let Some(locked) = change.locked {
            let moved: Vec<_> = positions
                .iter()
                .copied()
                .filter(|place| self.inventory.nodes[*place].locked != locked)
                .collect();
            self.set_locked(&moved, locked);
        }
        for &position in positions {
            self.change_one(position, change);
        }
        if let Some(enabled) = change.enabled {
            self.notify(positions, ComponentChange::Enabled(enabled));
        }
        if let (Some(first), true) = (positions.first(), change.role.is_some() || change.sub_role.is_some()) {
            let piece = &self.inventory.nodes[*first];
            let role = ComponentChange::Role(piece.role.clone(), piece.sub_role.clone());
            self.notify(positions, role);
        }
    }

    fn change_one(&mut self, position: usize, change: &NodeChange) {
        if let Some(faults) = &change.faults {
            self.set_faults(position, faults.clone());
        }
        let piece = &mut self.inventory.nodes[position];
        piece.enabled = change.enabled.unwrap_or(piece.enabled);
        for (own, new) in [
            (&mut piece.role, &change.role),
            (&mut piece.sub_role, &change.sub_role),
            (&mut piece.arch, &change.arch),
        ] {
            if let Some(new) = new {
                new.clone_into(own);
            }
        }
        match change.reserved {
            Some(true) => {
                self.inventory.reserve(position, &SOMEBODY.into(), self.now);
            }
            Some(false) => self.inventory.release(position, SOMEBODY),
            None => {}
        }
        if let Some(seconds) = change.reserved_seconds {
            self.inventory.reserve(position, &SOMEBODY.into(), self.now);
            self.releases.insert((self.now + duration(seconds), position));
        }
    }

    /// Releases the node whose reservation by a test ends first.
    pub(crate) fn release_next(&mut self) {
        if let Some((_, position)) = self.releases.pop_first() {
            self.inventory.release(position, SOMEBODY);
        }
    }

    pub(crate) fn power_service(&mut self, event: PowerEvent) {
        match event {
            PowerEvent::Restart { seconds } => self.restart_power_service(duration(seconds)),
            PowerEvent::WorkersDie => self.kill_workers(),
            PowerEvent::NoSampling { seconds } => self.pause_sampling(duration(seconds)),
        }
    }

    pub(crate) fn history_of(&self, id: &str) -> Result<Vec<NodeEvent>, UnknownNode> {
        let position = self.machine.position(id).ok_or_else(|| UnknownNode(id.to_owned()))?;
        Ok(self.history.of(position))
    }

    pub(crate) fn boot_requests(&self) -> Vec<BootRequest> {
        self.boot.accepted()
    }

    pub(crate) fn configuration_requests(&self) -> Vec<ConfigurationRequest> {
        self.configurations.accepted()
    }

    /// Sets a group, partition or tenant; `None` removes it.
    pub(crate) fn set_collection(&mut self, kind: IdCollection, name: &str, ids: Option<Vec<String>>) {
        let all = match kind {
            IdCollection::Group => &mut self.inventory.groups,
            IdCollection::Partition => &mut self.inventory.partitions,
            IdCollection::Tenant => &mut self.tenants,
        };
        match ids {
            Some(ids) => all.insert(name.to_owned(), ids),
            None => all.remove(name),
        };
    }

    /// Makes an image special; `None` resets it to the default.
    pub(crate) fn set_image(&mut self, id: &str, image: Option<StoredImage>) {
        match image {
            Some(image) => self.images.special.insert(id.to_owned(), image),
            None => self.images.special.remove(id),
        };
    }
}

/// Named sets of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdCollection {
    /// A group of the inventory.
    Group,
    /// A partition of the inventory.
    Partition,
    /// A tenant.
    Tenant,
}

/// The button that a word of the control API means.
pub(crate) fn button(word: &str) -> Option<PowerCommand> {
    match word {
        "on" => Some(PowerCommand::On),
        "soft_off" => Some(PowerCommand::SoftOff),
        "force_off" => Some(PowerCommand::ForceOff),
        _ => None,
    }
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

impl PowerRecord {
    fn plus(self, other: &Self) -> Self {
        Self {
            on: self.on + other.on,
            soft_off: self.soft_off + other.soft_off,
            force_off: self.force_off + other.force_off,
            restart: self.restart + other.restart,
            crossings: self.crossings + other.crossings,
            overlaps: self.overlaps + other.overlaps,
            refused_reservations: self.refused_reservations + other.refused_reservations,
        }
    }
}
