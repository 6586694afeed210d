//! State of the machine and of the systems around it at one time. The caller sets the time, so that a boot can be
//! played at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use chrono::{DateTime, SecondsFormat, Utc};
use proto::inventory::Hardware;
use simulator::{
    hardware::{NodePace, NodeTiming},
    machine::{MachineChanges, SimulatedMachine},
    node::{PowerCommand, SimulatedNode},
    reporter::NodeReport,
    topology::NODE,
};

use crate::{
    bss::BootRecords,
    cfs::ConfigurationRecords,
    history::{EventKind, NodeHistory},
    hsm::{ComponentChange, InventoryRecords, NoticeDelivery},
    images::ImageStock,
    node_faults::NodeFaults,
    pcs::PowerRecords,
    plan::MachinePlan,
};

/// The machine and all that the systems around it hold.
pub(crate) struct MachineState {
    /// Time since the start.
    pub(crate) now: Duration,
    /// The time of day at the start.
    epoch: SystemTime,
    pub(crate) machine: SimulatedMachine,
    /// Faults of nodes by position, as everything about nodes.
    pub(crate) faults: Vec<NodeFaults>,
    pub(crate) inventory: InventoryRecords,
    pub(crate) power: PowerRecords,
    pub(crate) boot: BootRecords,
    pub(crate) configurations: ConfigurationRecords,
    pub(crate) images: ImageStock,
    pub(crate) tenants: BTreeMap<String, Vec<String>>,
    pub(crate) history: NodeHistory,
    /// Times at which tests' reservations end, with their positions.
    pub(crate) releases: BTreeSet<(Duration, usize)>,
    pub(crate) outbox: MessageOutbox,
}

/// Reports and notices to be sent.
#[derive(Debug, Default)]
pub(crate) struct MessageOutbox {
    /// Reports of nodes to the gateway.
    pub(crate) reports: Vec<NodeReport>,
    /// Notices of the inventory to its subscribers.
    pub(crate) deliveries: Vec<NoticeDelivery>,
}

impl MachineState {
    /// The machine of `plan` at the beginning of its time, which is `epoch`.
    ///
    /// # Errors
    /// When the plan names a fault or a node that does not exist.
    pub(crate) fn new(plan: MachinePlan, epoch: SystemTime) -> anyhow::Result<Self> {
        let inventory = InventoryRecords::new(plan.hardware, plan.groups, plan.partitions);
        let timing = NodeTiming::new(plan.seed, plan.speed)?;
        let faults = plan.faults.assign(inventory.nodes.len(), plan.seed)?;
        let pace = |index: usize| plan.pace.clone().unwrap_or_else(|| timing.pace(index));
        let node = |(index, piece): (usize, &Hardware)| node(piece, pace(index), plan.up);
        let nodes: Vec<_> = inventory.nodes.iter().enumerate().map(node).collect();
        let count = nodes.len();
        let mut state = Self {
            now: Duration::ZERO,
            epoch,
            machine: SimulatedMachine::new(nodes),
            faults: Vec::new(),
            power: PowerRecords::new(plan.power, count),
            boot: BootRecords::default(),
            configurations: ConfigurationRecords::new(count),
            images: plan.images,
            tenants: plan.tenants,
            history: NodeHistory::new(count),
            releases: BTreeSet::new(),
            outbox: MessageOutbox::default(),
            inventory,
        };
        state.faults = vec![NodeFaults::default(); count];
        for (position, fault) in faults.into_iter().enumerate() {
            state.set_faults(position, NodeFaults::hardware(fault));
        }
        Ok(state)
    }

    /// Sets the faults of a node.
    pub(crate) fn set_faults(&mut self, position: usize, faults: NodeFaults) {
        self.machine.set_fault(position, faults.hardware);
        self.faults[position] = faults;
    }

    /// Runs the steps that are due by `now`, at most `most`, and returns the time of the next step.
    pub(crate) fn advance(&mut self, now: Duration, most: usize) -> Option<Duration> {
        for _ in 0..most {
            let Some(due) = self.next_due().filter(|due| *due <= now) else { break };
            self.now = due.max(self.now);
            if self.machine.next_due() == Some(due) {
                let changes = self.machine.advance(due, most);
                self.settle(changes);
            } else if self.releases.first().is_some_and(|(at, _)| *at == due) {
                self.release_next();
            } else {
                self.power_step();
            }
        }
        self.now = now.max(self.now);
        self.next_due()
    }

    fn next_due(&self) -> Option<Duration> {
        let release = self.releases.first().map(|(at, _)| *at);
        [self.machine.next_due(), self.power_due(), release].into_iter().flatten().min()
    }

    /// Spreads changes of the hardware to all systems.
    pub(crate) fn settle(&mut self, changes: MachineChanges) {
        for &position in &changes.power {
            let on = self.machine.nodes()[position].is_on();
            self.history.note(self.now, position, if on { EventKind::On } else { EventKind::Off });
            self.power_changed(position, !on);
        }
        for &position in &changes.booted {
            let boot = self.machine.nodes()[position].booted_with();
            let token = boot.map_or_else(|| "".into(), |boot| boot.token.clone());
            self.history.note(self.now, position, EventKind::Booted { token });
        }
        for &position in &changes.configuration {
            let (_, status) = self.machine.nodes()[position].configuration();
            self.history.note(self.now, position, EventKind::Configured { status: status.word() });
        }
        self.notify_states(&changes);
        self.outbox.reports.extend(changes.reports);
    }

    fn notify_states(&mut self, changes: &MachineChanges) {
        for word in ["Off", "On", "Ready"] {
            let moved = changes.power.iter().chain(&changes.booted).copied();
            let positions: Vec<_> = moved.filter(|position| self.node_state(*position) == word).collect();
            self.notify(&positions, ComponentChange::State(word));
        }
    }

    /// Presses the power button of nodes, past the power service.
    pub(crate) fn press(&mut self, command: PowerCommand, positions: &[usize]) {
        let changes = self.machine.command(self.now, command, positions);
        self.settle(changes);
    }

    /// The time of day so long after the start, as it is written in answers.
    pub(crate) fn clock(&self, at: Duration) -> String {
        DateTime::<Utc>::from(self.epoch + at).to_rfc3339_opts(SecondsFormat::Micros, true)
    }
}

fn node(piece: &Hardware, pace: NodePace, up: bool) -> SimulatedNode {
    debug_assert_eq!(piece.r#type, NODE);
    // No lock here: the power service enforces locks, and the hardware obeys any command.
    SimulatedNode::new(piece.id.as_str().into(), pace, None, false, up)
}
