//! A simulated node: its reactions to commands and to its timers. The node has no clock, no lock and no network: it
//! returns its changes and its next timer.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{boot::BootData, faults::HardwareFault, hardware::NodePace, reporter::NodeReport};

/// Command of the power service to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerCommand {
    /// Turn the node on.
    On,
    /// Ask the operating system to shut down.
    SoftOff,
    /// Cut the power.
    ForceOff,
}

/// Event of a node's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeEvent {
    TurnedOn,
    TurnedOff,
    Booted,
    ConfigurationEnded,
}

/// Timer of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeTimer {
    pub(crate) due: NodeEvent,
    pub(crate) after: Duration,
    turn: u32,
}

/// Effect of a command or a timer.
#[derive(Debug, Default)]
pub(crate) struct NodeStep {
    pub(crate) power_changed: bool,
    pub(crate) configuration_changed: bool,
    pub(crate) booted: bool,
    pub(crate) timer: Option<NodeTimer>,
    pub(crate) report: Option<NodeReport>,
}

/// Progress of a node's configuration. The words are those of the service (BOS reference 6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigurationStatus {
    /// No configuration is wanted.
    Unconfigured,
    /// The wanted configuration was not applied yet.
    Pending,
    /// The wanted configuration was applied.
    Configured,
    /// The wanted configuration could not be applied.
    Failed,
}

impl ConfigurationStatus {
    /// Word of the configuration service.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unconfigured => "unconfigured",
            Self::Pending => "pending",
            Self::Configured => "configured",
            Self::Failed => "failed",
        }
    }
}

/// Wanted configuration of a node.
#[derive(Clone, Debug)]
pub struct WantedConfiguration {
    /// Name of the configuration; empty: none.
    pub name: Arc<str>,
    /// Whether the configuration may be applied now.
    pub enabled: bool,
    /// Whether to drop the record of the applied configuration, so that it is applied again.
    pub clear_state: bool,
}

/// The next event of a node. Replacing or cancelling the event voids its earlier timer.
#[derive(Debug, Default)]
struct PlannedEvent {
    pending: Option<NodeEvent>,
    turn: u32,
}

impl PlannedEvent {
    fn set(&mut self, due: NodeEvent, after: Duration) -> Option<NodeTimer> {
        self.turn += 1;
        self.pending = Some(due);
        Some(NodeTimer { due, after, turn: self.turn })
    }

    fn cancel(&mut self) {
        self.turn += 1;
        self.pending = None;
    }

    /// Consumes `timer`, and returns whether it is still valid.
    fn take(&mut self, timer: NodeTimer) -> bool {
        let stands = self.turn == timer.turn && self.pending == Some(timer.due);
        if stands {
            self.pending = None;
        }
        stands
    }
}

#[derive(Debug)]
enum BootStage {
    Off,
    /// The node is on but not up, with its boot data at power-on, if there was any.
    Starting(Option<Arc<BootData>>),
    /// The operating system is up. Dropping the guard, as at power-off, ends the node's reports.
    Up {
        /// Boot data of this boot; none for an image of unknown origin.
        boot: Option<Arc<BootData>>,
        _reporting: Option<DropGuard>,
    },
}

/// A node, with the data of the upstreams about it.
#[derive(Debug)]
pub struct SimulatedNode {
    /// Id of the node.
    pub id: Arc<str>,
    /// Fault of the node.
    pub fault: Option<HardwareFault>,
    /// Lock in the inventory: transitions of the node are accepted and have no effect, as with the real power
    /// service.
    locked: bool,
    pace: NodePace,
    running: BootStage,
    motion: PlannedEvent,
    boot_data: Option<Arc<BootData>>,
    configuration: Arc<str>,
    configuration_status: ConfigurationStatus,
    configuration_enabled: bool,
    configuring: PlannedEvent,
}

impl SimulatedNode {
    /// Creates a node that is off, or up with an image of unknown origin.
    pub fn new(id: Arc<str>, pace: NodePace, fault: Option<HardwareFault>, locked: bool, up: bool) -> Self {
        Self {
            id,
            fault,
            locked,
            pace,
            running: if up { BootStage::Up { boot: None, _reporting: None } } else { BootStage::Off },
            motion: PlannedEvent::default(),
            boot_data: None,
            configuration: "".into(),
            configuration_status: ConfigurationStatus::Unconfigured,
            configuration_enabled: false,
            configuring: PlannedEvent::default(),
        }
    }

    /// Whether the node has power.
    pub fn is_on(&self) -> bool {
        !matches!(self.running, BootStage::Off)
    }

    /// Whether the operating system is up.
    pub fn is_up(&self) -> bool {
        matches!(self.running, BootStage::Up { .. })
    }

    /// Returns the boot data of the running system, if its origin is known.
    pub fn booted_with(&self) -> Option<&BootData> {
        match &self.running {
            BootStage::Up { boot, .. } => boot.as_deref(),
            BootStage::Off | BootStage::Starting(_) => None,
        }
    }

    /// Whether the configuration service may configure the node.
    pub fn configuration_enabled(&self) -> bool {
        self.configuration_enabled
    }

    /// Returns the wanted configuration and its progress.
    pub fn configuration(&self) -> (&str, ConfigurationStatus) {
        (&self.configuration, self.configuration_status)
    }

    /// Sets the boot data for the next power-on.
    pub(crate) fn set_boot_data(&mut self, data: Arc<BootData>) {
        self.boot_data = Some(data);
    }

    pub(crate) fn command(&mut self, command: PowerCommand) -> NodeStep {
        if self.locked {
            return NodeStep::default();
        }
        let timer = match (command, self.is_on()) {
            (PowerCommand::On, false) => self.turn_on(),
            (PowerCommand::On, true) => None,
            (PowerCommand::SoftOff, true) => self.shut_down(),
            (PowerCommand::ForceOff, true) => self.motion.set(NodeEvent::TurnedOff, self.pace.force_off),
            (PowerCommand::SoftOff | PowerCommand::ForceOff, false) => {
                self.motion.cancel();
                None
            }
        };
        NodeStep { timer, ..NodeStep::default() }
    }

    /// Begins a power-on; a repeated command does not restart it.
    fn turn_on(&mut self) -> Option<NodeTimer> {
        let refused = self.fault == Some(HardwareFault::StuckOff) || self.motion.pending.is_some();
        if refused { None } else { self.motion.set(NodeEvent::TurnedOn, self.pace.power_on) }
    }

    /// Begins a shutdown; a repeated command does not restart it. A node that shuts down does not finish booting
    /// first.
    fn shut_down(&mut self) -> Option<NodeTimer> {
        let refused = self.fault == Some(HardwareFault::IgnoresGracefulOff)
            || self.motion.pending == Some(NodeEvent::TurnedOff);
        if refused { None } else { self.motion.set(NodeEvent::TurnedOff, self.pace.soft_off) }
    }

    /// Sets the wanted configuration. The record of the applied configuration is dropped on request, or if the name
    /// changes.
    pub(crate) fn configure(&mut self, wanted: &WantedConfiguration) -> NodeStep {
        let before = (self.configuration.clone(), self.configuration_status);
        if wanted.clear_state || self.configuration != wanted.name {
            self.configuring.cancel();
            self.configuration_status = match wanted.name.is_empty() {
                true => ConfigurationStatus::Unconfigured,
                false => ConfigurationStatus::Pending,
            };
            self.configuration = wanted.name.clone();
        }
        self.configuration_enabled = wanted.enabled;
        if !wanted.enabled {
            self.configuring.cancel();
        }
        let changed = before != (self.configuration.clone(), self.configuration_status);
        NodeStep { configuration_changed: changed, timer: self.start_configuring(), ..NodeStep::default() }
    }

    fn start_configuring(&mut self) -> Option<NodeTimer> {
        let starts = self.configuration_enabled
            && self.configuration_status == ConfigurationStatus::Pending
            && self.configuring.pending.is_none()
            && matches!(self.running, BootStage::Up { .. });
        if starts {
            self.configuring.set(NodeEvent::ConfigurationEnded, self.pace.configuration)
        } else {
            None
        }
    }

    /// Handles an expired timer. A void timer has no effect.
    pub(crate) fn run_out(&mut self, timer: NodeTimer) -> NodeStep {
        let plan = match timer.due {
            NodeEvent::TurnedOn | NodeEvent::TurnedOff | NodeEvent::Booted => &mut self.motion,
            NodeEvent::ConfigurationEnded => &mut self.configuring,
        };
        if !plan.take(timer) {
            return NodeStep::default();
        }
        match timer.due {
            NodeEvent::TurnedOn => self.turned_on(),
            NodeEvent::TurnedOff => self.turned_off(),
            NodeEvent::Booted => self.booted(),
            NodeEvent::ConfigurationEnded => self.configuration_ended(),
        }
    }

    /// Turns the node on. Without boot data the node stays on and never boots.
    fn turned_on(&mut self) -> NodeStep {
        self.running = BootStage::Starting(self.boot_data.clone());
        let timer = match self.boot_data {
            Some(_) => self.motion.set(NodeEvent::Booted, self.pace.boot),
            None => None,
        };
        NodeStep { power_changed: true, timer, ..NodeStep::default() }
    }

    fn turned_off(&mut self) -> NodeStep {
        self.running = BootStage::Off;
        self.configuring.cancel();
        NodeStep { power_changed: true, ..NodeStep::default() }
    }

    /// Boots the node: it reports its boot data and enables its configuration, like the two agents of a real node.
    fn booted(&mut self) -> NodeStep {
        let data = match &mut self.running {
            BootStage::Starting(data) => data.take(),
            BootStage::Off | BootStage::Up { .. } => None,
        };
        let ended = CancellationToken::new();
        let reports = data.clone().filter(|_| self.fault != Some(HardwareFault::NeverReports));
        let report = reports.map(|boot| NodeReport { id: self.id.clone(), boot, ended: ended.clone() });
        self.running = BootStage::Up { boot: data, _reporting: Some(ended.drop_guard()) };
        self.configuration_enabled = true;
        NodeStep { booted: true, timer: self.start_configuring(), report, ..NodeStep::default() }
    }

    fn configuration_ended(&mut self) -> NodeStep {
        self.configuration_status = match self.fault {
            Some(HardwareFault::ConfigurationFails) => ConfigurationStatus::Failed,
            _ => ConfigurationStatus::Configured,
        };
        NodeStep { configuration_changed: true, ..NodeStep::default() }
    }
}
