//! One simulated node: what it does when it is told something and when its time has come. No clock, no lock, no
//! network: a node answers what changed and what it will do later.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{boot::BootData, faults::Fault, hardware::Pace, reporter::Report};

/// What the power upstream can be asked to do with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerCommand {
    /// Turn it on.
    On,
    /// Ask the operating system to shut down.
    SoftOff,
    /// Cut the power.
    ForceOff,
}

/// What a node does by itself when its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    TurnedOn,
    TurnedOff,
    Booted,
    ConfigurationEnded,
}

/// An appointment of a node with itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    pub(crate) due: Due,
    pub(crate) after: Duration,
    turn: u32,
}

/// What came of telling a node something.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) power_changed: bool,
    pub(crate) configuration_changed: bool,
    pub(crate) booted: bool,
    pub(crate) timer: Option<Timer>,
    pub(crate) report: Option<Report>,
}

/// How far the configuration service is with a node. The words are the service's (BOS reference 6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigurationStatus {
    /// Nothing is wanted.
    Unconfigured,
    /// Something is wanted and was not applied yet.
    Pending,
    /// What is wanted was applied.
    Configured,
    /// What is wanted could not be applied.
    Failed,
}

impl ConfigurationStatus {
    /// The service's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unconfigured => "unconfigured",
            Self::Pending => "pending",
            Self::Configured => "configured",
            Self::Failed => "failed",
        }
    }
}

/// What the configuration service is told about a node.
#[derive(Clone, Debug)]
pub struct WantedConfiguration {
    /// What is to be applied; empty: nothing.
    pub name: Arc<str>,
    /// Whether it may be applied now.
    pub enabled: bool,
    /// Whether to forget what was applied, so that it is applied again.
    pub clear_state: bool,
}

/// One thing that a node is about to do. What replaces it, or takes it back, makes the earlier timer void.
#[derive(Debug, Default)]
struct Plan {
    pending: Option<Due>,
    turn: u32,
}

impl Plan {
    fn set(&mut self, due: Due, after: Duration) -> Option<Timer> {
        self.turn += 1;
        self.pending = Some(due);
        Some(Timer { due, after, turn: self.turn })
    }

    fn cancel(&mut self) {
        self.turn += 1;
        self.pending = None;
    }

    /// Whether `timer` still stands; if so it is used up.
    fn take(&mut self, timer: Timer) -> bool {
        let stands = self.turn == timer.turn && self.pending == Some(timer.due);
        if stands {
            self.pending = None;
        }
        stands
    }
}

#[derive(Debug)]
enum Running {
    Off,
    /// On and not up: with the boot data it found when it turned on, if any.
    Starting(Option<Arc<BootData>>),
    /// The operating system is up. Dropping the guard, as turning off does, ends its report.
    Up {
        /// What it booted; none if nobody here gave it.
        boot: Option<Arc<BootData>>,
        _reporting: Option<DropGuard>,
    },
}

/// One node and what the upstreams hold about it.
#[derive(Debug)]
pub struct Node {
    /// Location name.
    pub id: Arc<str>,
    /// What is wrong with it, if anything.
    pub fault: Option<Fault>,
    /// Locked in the inventory: transitions are accepted for it and have no effect, as with the real power upstream.
    locked: bool,
    pace: Pace,
    running: Running,
    motion: Plan,
    boot_data: Option<Arc<BootData>>,
    configuration: Arc<str>,
    configuration_status: ConfigurationStatus,
    configuration_enabled: bool,
    configuring: Plan,
}

impl Node {
    /// A node that is off, or up with an image that nobody here gave it.
    pub fn new(id: Arc<str>, pace: Pace, fault: Option<Fault>, locked: bool, up: bool) -> Self {
        Self {
            id,
            fault,
            locked,
            pace,
            running: if up { Running::Up { boot: None, _reporting: None } } else { Running::Off },
            motion: Plan::default(),
            boot_data: None,
            configuration: "".into(),
            configuration_status: ConfigurationStatus::Unconfigured,
            configuration_enabled: false,
            configuring: Plan::default(),
        }
    }

    /// Whether it has power.
    pub fn is_on(&self) -> bool {
        !matches!(self.running, Running::Off)
    }

    /// Whether its operating system is up.
    pub fn is_up(&self) -> bool {
        matches!(self.running, Running::Up { .. })
    }

    /// What it runs, if it is up with something that it was given here.
    pub fn booted_with(&self) -> Option<&BootData> {
        match &self.running {
            Running::Up { boot, .. } => boot.as_deref(),
            Running::Off | Running::Starting(_) => None,
        }
    }

    /// Whether the configuration service may work on it.
    pub fn configuration_enabled(&self) -> bool {
        self.configuration_enabled
    }

    /// What the configuration service works towards, and how far it is.
    pub fn configuration(&self) -> (&str, ConfigurationStatus) {
        (&self.configuration, self.configuration_status)
    }

    /// What the node will boot the next time it turns on.
    pub(crate) fn set_boot_data(&mut self, data: Arc<BootData>) {
        self.boot_data = Some(data);
    }

    pub(crate) fn command(&mut self, command: PowerCommand) -> Step {
        if self.locked {
            return Step::default();
        }
        let timer = match (command, self.is_on()) {
            (PowerCommand::On, false) => self.turn_on(),
            (PowerCommand::On, true) => None,
            (PowerCommand::SoftOff, true) => self.shut_down(),
            (PowerCommand::ForceOff, true) => self.motion.set(Due::TurnedOff, self.pace.force_off),
            (PowerCommand::SoftOff | PowerCommand::ForceOff, false) => {
                self.motion.cancel();
                None
            }
        };
        Step { timer, ..Step::default() }
    }

    /// Being told again does not start it over.
    fn turn_on(&mut self) -> Option<Timer> {
        let refused = self.fault == Some(Fault::StuckOff) || self.motion.pending.is_some();
        if refused { None } else { self.motion.set(Due::TurnedOn, self.pace.power_on) }
    }

    /// Being told again does not start it over. A node that shuts down does not finish booting first.
    fn shut_down(&mut self) -> Option<Timer> {
        let refused =
            self.fault == Some(Fault::IgnoresGracefulOff) || self.motion.pending == Some(Due::TurnedOff);
        if refused { None } else { self.motion.set(Due::TurnedOff, self.pace.soft_off) }
    }

    /// The configuration service forgets what it applied when told to or when it is to apply something else.
    pub(crate) fn configure(&mut self, wanted: &WantedConfiguration) -> Step {
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
        Step { configuration_changed: changed, timer: self.start_configuring(), ..Step::default() }
    }

    fn start_configuring(&mut self) -> Option<Timer> {
        let starts = self.configuration_enabled
            && self.configuration_status == ConfigurationStatus::Pending
            && self.configuring.pending.is_none()
            && matches!(self.running, Running::Up { .. });
        if starts { self.configuring.set(Due::ConfigurationEnded, self.pace.configuration) } else { None }
    }

    /// What the node does when a timer of its own runs out. A timer that was overtaken does nothing.
    pub(crate) fn run_out(&mut self, timer: Timer) -> Step {
        let plan = match timer.due {
            Due::TurnedOn | Due::TurnedOff | Due::Booted => &mut self.motion,
            Due::ConfigurationEnded => &mut self.configuring,
        };
        if !plan.take(timer) {
            return Step::default();
        }
        match timer.due {
            Due::TurnedOn => self.turned_on(),
            Due::TurnedOff => self.turned_off(),
            Due::Booted => self.booted(),
            Due::ConfigurationEnded => self.configuration_ended(),
        }
    }

    /// Without boot data there is nothing to load: the node stays on and never comes up.
    fn turned_on(&mut self) -> Step {
        self.running = Running::Starting(self.boot_data.clone());
        let timer = match self.boot_data {
            Some(_) => self.motion.set(Due::Booted, self.pace.boot),
            None => None,
        };
        Step { power_changed: true, timer, ..Step::default() }
    }

    fn turned_off(&mut self) -> Step {
        self.running = Running::Off;
        self.configuring.cancel();
        Step { power_changed: true, ..Step::default() }
    }

    /// The node reports what it booted and lets itself be configured, as its two agents do.
    fn booted(&mut self) -> Step {
        let data = match &mut self.running {
            Running::Starting(data) => data.take(),
            Running::Off | Running::Up { .. } => None,
        };
        let ended = CancellationToken::new();
        let reports = data.clone().filter(|_| self.fault != Some(Fault::NeverReports));
        let report = reports.map(|boot| Report { id: self.id.clone(), boot, ended: ended.clone() });
        self.running = Running::Up { boot: data, _reporting: Some(ended.drop_guard()) };
        self.configuration_enabled = true;
        Step { booted: true, timer: self.start_configuring(), report, ..Step::default() }
    }

    fn configuration_ended(&mut self) -> Step {
        self.configuration_status = match self.fault {
            Some(Fault::ConfigurationFails) => ConfigurationStatus::Failed,
            _ => ConfigurationStatus::Configured,
        };
        Step { configuration_changed: true, ..Step::default() }
    }
}
