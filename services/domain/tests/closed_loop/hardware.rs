//! The hardware of a node, with its entries at the upstreams.

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
    /// Time of a passing fault, milliseconds.
    pub(crate) trouble: Range<i64>,
    pub(crate) powered: bool,
    /// Number of changes of power, which identifies outdated events.
    pub(crate) cycle: u32,
    pub(crate) boots: u32,
    /// Artifacts of the running boot, once the node is up.
    pub(crate) running: Option<BootArtifacts>,
    /// Token and artifacts for the next boot at the boot script server.
    pub(crate) boot_data: Option<(String, BootArtifacts)>,
    /// Token and artifacts of the last boot.
    pub(crate) loaded: Option<(String, BootArtifacts)>,
    /// Power action under way.
    pub(crate) changing: Option<Action>,
    pub(crate) force_offs: u32,
    pub(crate) refusals: u32,
    pub(crate) configuration: Option<String>,
    pub(crate) configuration_status: String,
    /// Number of settings of a configuration, which identifies outdated runs.
    pub(crate) configuration_run: u32,
}

impl Hardware {
    fn is_troubled(&self, now: i64) -> bool {
        self.trouble.contains(&now)
    }

    /// Returns the answer of the power upstream.
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

    /// Returns the answer of the configuration upstream; `None`: it does not answer.
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

    /// Returns whether boot data are taken now.
    pub(crate) fn takes_boot_data(&self, now: i64) -> bool {
        !(self.fault == Fault::PreparationFails && self.is_troubled(now))
    }

    /// Returns whether the power upstream refuses an action, at most once.
    pub(crate) fn refuses(&mut self) -> bool {
        let refuses = self.fault == Fault::PowerRefusesOnce && self.refusals == 0;
        self.refusals += u32::from(refuses);
        refuses
    }

    /// Returns whether `action` changes the power.
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

    /// Returns whether the current boot is reported.
    pub(crate) fn comes_up(&self) -> bool {
        match self.fault {
            Fault::NeverReports => false,
            Fault::ReportsSecondBoot => self.boots > 1,
            _ => true,
        }
    }

    /// Returns the end of a configuration run.
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
