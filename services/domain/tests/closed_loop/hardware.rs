//! A node as it really is, with its entries at the upstreams.

use std::ops::Range;

use domain::boot::{
    component::{Action, artifacts::BootArtifacts},
    configuration::ConfigurationObservation,
    power::PowerReading,
};

use crate::fault::Fault;

#[derive(Debug)]
pub(crate) struct Hardware {
    pub(crate) fault: Fault,
    /// When a passing fault shows, milliseconds.
    pub(crate) trouble: Range<i64>,
    pub(crate) powered: bool,
    /// Moves with every change of power, so that what belongs to an older time is recognised.
    pub(crate) cycle: u32,
    pub(crate) boots: u32,
    /// What it runs, once it is up.
    pub(crate) running: Option<BootArtifacts>,
    /// What it will load: token and artifacts that the boot script server has for it.
    pub(crate) boot_data: Option<(String, BootArtifacts)>,
    /// What it loaded when it was last switched on.
    pub(crate) loaded: Option<(String, BootArtifacts)>,
    /// The power action that is under way.
    pub(crate) changing: Option<Action>,
    pub(crate) force_offs: u32,
    pub(crate) refusals: u32,
    pub(crate) configuration: Option<String>,
    pub(crate) configuration_status: String,
    /// Moves whenever a configuration is set, so that an older run does not count.
    pub(crate) configuration_run: u32,
}

impl Hardware {
    fn is_troubled(&self, now: i64) -> bool {
        self.trouble.contains(&now)
    }

    /// What the power upstream says.
    pub(crate) fn power(&self, now: i64) -> (PowerReading, &'static str) {
        let level = if self.powered { PowerReading::On } else { PowerReading::Off };
        match self.fault {
            Fault::PowerSilent if self.is_troubled(now) => (PowerReading::Unknown, ""),
            Fault::PowerMissing if self.is_troubled(now) => (PowerReading::Missing, ""),
            Fault::PowerUndefined if self.is_troubled(now) && self.cycle.is_multiple_of(2) => {
                (PowerReading::Undefined, "")
            }
            Fault::PowerUndefined if self.is_troubled(now) => (level, "controller does not respond"),
            _ => (level, ""),
        }
    }

    /// What the configuration upstream says; `None`: nothing at all.
    pub(crate) fn configuration(&self, now: i64) -> Option<ConfigurationObservation> {
        match self.fault {
            Fault::ConfigurationSilent if self.is_troubled(now) => None,
            Fault::ConfigurationMissing if self.is_troubled(now) => Some(ConfigurationObservation::Missing),
            _ => Some(ConfigurationObservation::Known {
                desired: self.configuration.clone(),
                status: self.configuration_status.clone(),
            }),
        }
    }

    /// Whether boot data are taken now.
    pub(crate) fn takes_boot_data(&self, now: i64) -> bool {
        !(self.fault == Fault::PreparationFails && self.is_troubled(now))
    }

    /// Whether the power upstream refuses; at most once.
    pub(crate) fn refuses(&mut self) -> bool {
        let refuses = self.fault == Fault::PowerRefusesOnce && self.refusals == 0;
        self.refusals += u32::from(refuses);
        refuses
    }

    /// Whether `action` changes anything.
    pub(crate) fn obeys(&mut self, action: Action) -> bool {
        match action {
            Action::PoweringOn => !self.powered && self.fault != Fault::StuckOff,
            Action::PoweringOffGracefully => {
                let deaf = [Fault::IgnoresSoftOff, Fault::IgnoresFirstForceOff, Fault::NeverOff];
                self.powered && !deaf.contains(&self.fault)
            }
            Action::PoweringOffForcefully => {
                self.force_offs += 1;
                let first = self.fault == Fault::IgnoresFirstForceOff && self.force_offs == 1;
                self.powered && !first && self.fault != Fault::NeverOff
            }
            other => panic!("{} is no power action", other.word()),
        }
    }

    /// Whether the current boot gets to its report.
    pub(crate) fn comes_up(&self) -> bool {
        match self.fault {
            Fault::NeverReports => false,
            Fault::ReportsSecondBoot => self.boots > 1,
            _ => true,
        }
    }

    /// How a configuration run ends.
    pub(crate) fn configured(&self) -> &'static str {
        match self.fault {
            Fault::ConfigurationFails => "failed",
            Fault::ConfigurationOddWord => "baffled",
            _ => "configured",
        }
    }

    pub(crate) fn set_configuration(&mut self, configuration: &str) {
        self.configuration = Some(configuration.to_owned());
        self.configuration_status = "pending".to_owned();
        self.configuration_run += 1;
    }
}
