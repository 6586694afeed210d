//! The machine and all that the systems around it hold, at one time. Time is what the caller says it is, so a whole
//! boot can be run in no time.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use chrono::{DateTime, SecondsFormat, Utc};
use proto::inventory::Hardware;
use simulator::{
    hardware::{Pace, Timing},
    machine::{Changes, Machine},
    node::{Node, PowerCommand},
    reporter::Report,
    topology::NODE,
};

use crate::{
    bss::BootRecords,
    cfs::Configurations,
    history::{History, What},
    hsm::{Change, Delivery, Inventory},
    images::Images,
    node_faults::NodeFaults,
    pcs::Power,
    plan::Plan,
};

/// The machine and all that the systems around it hold.
pub(crate) struct State {
    /// Time since the start.
    pub(crate) now: Duration,
    /// The time of day at the start.
    epoch: SystemTime,
    pub(crate) machine: Machine,
    /// By position, as everything about nodes.
    pub(crate) faults: Vec<NodeFaults>,
    pub(crate) inventory: Inventory,
    pub(crate) power: Power,
    pub(crate) boot: BootRecords,
    pub(crate) configurations: Configurations,
    pub(crate) images: Images,
    pub(crate) tenants: BTreeMap<String, Vec<String>>,
    pub(crate) history: History,
    /// When which reservations end that tests made for a time.
    pub(crate) releases: BTreeSet<(Duration, usize)>,
    pub(crate) outbox: Outbox,
}

/// What others are to be told.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// By nodes, to the gateway.
    pub(crate) reports: Vec<Report>,
    /// By the inventory, to subscribers.
    pub(crate) deliveries: Vec<Delivery>,
}

impl State {
    /// The machine of `plan` at the beginning of its time, which is `epoch`.
    ///
    /// # Errors
    /// Names what in the plan cannot be had.
    pub(crate) fn new(plan: Plan, epoch: SystemTime) -> anyhow::Result<Self> {
        let inventory = Inventory::new(plan.hardware, plan.groups, plan.partitions);
        let timing = Timing::new(plan.seed, plan.speed)?;
        let faults = plan.faults.assign(inventory.nodes.len(), plan.seed)?;
        let pace = |index: usize| plan.pace.clone().unwrap_or_else(|| timing.pace(index));
        let node = |(index, piece): (usize, &Hardware)| node(piece, pace(index), plan.up);
        let nodes: Vec<_> = inventory.nodes.iter().enumerate().map(node).collect();
        let count = nodes.len();
        let mut state = Self {
            now: Duration::ZERO,
            epoch,
            machine: Machine::new(nodes),
            faults: Vec::new(),
            power: Power::new(plan.power, count),
            boot: BootRecords::default(),
            configurations: Configurations::new(count),
            images: plan.images,
            tenants: plan.tenants,
            history: History::new(count),
            releases: BTreeSet::new(),
            outbox: Outbox::default(),
            inventory,
        };
        state.faults = vec![NodeFaults::default(); count];
        for (position, fault) in faults.into_iter().enumerate() {
            state.set_faults(position, NodeFaults::hardware(fault));
        }
        Ok(state)
    }

    /// Takes over what is wrong with a node.
    pub(crate) fn set_faults(&mut self, position: usize, faults: NodeFaults) {
        self.machine.set_fault(position, faults.hardware);
        self.faults[position] = faults;
    }

    /// Does what is due by `now`, at most `most` things, and gives the time at which there is more to do.
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

    /// Lets everybody know what the hardware did.
    pub(crate) fn settle(&mut self, changes: Changes) {
        for &position in &changes.power {
            let on = self.machine.nodes()[position].is_on();
            self.history.note(self.now, position, if on { What::On } else { What::Off });
            self.power_changed(position, !on);
        }
        for &position in &changes.booted {
            let boot = self.machine.nodes()[position].booted_with();
            let token = boot.map_or_else(|| "".into(), |boot| boot.token.clone());
            self.history.note(self.now, position, What::Booted { token });
        }
        for &position in &changes.configuration {
            let (_, status) = self.machine.nodes()[position].configuration();
            self.history.note(self.now, position, What::Configured { status: status.word() });
        }
        self.notify_states(&changes);
        self.outbox.reports.extend(changes.reports);
    }

    fn notify_states(&mut self, changes: &Changes) {
        for word in ["Off", "On", "Ready"] {
            let moved = changes.power.iter().chain(&changes.booted).copied();
            let positions: Vec<_> = moved.filter(|position| self.node_state(*position) == word).collect();
            self.notify(&positions, Change::State(word));
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

fn node(piece: &Hardware, pace: Pace, up: bool) -> Node {
    debug_assert_eq!(piece.r#type, NODE);
    // Whether it is locked is for the power service to know: the hardware does as it is told.
    Node::new(piece.id.as_str().into(), pace, None, false, up)
}
