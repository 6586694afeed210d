//! Faults of hosts on a rack, chosen by a part of their name or of the address of their BMC.

use std::str::FromStr;

use proto::simulation::RackOperation;

/// Kind of a host's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RackFault {
    /// The BMC does not answer.
    DeadBmc,
    /// The BMC takes no password.
    WrongPassword,
    /// Inspection fails.
    FailsInspection,
    /// Inspection never ends.
    StuckInspecting,
    /// Preparation fails.
    FailsPreparing,
    /// Provisioning fails.
    FailsProvisioning,
    /// Provisioning never ends.
    StuckProvisioning,
    /// Deprovisioning fails.
    FailsDeprovisioning,
    /// Every power action fails.
    FailsPower,
    /// A soft power-off fails.
    IgnoresSoftPowerOff,
}

impl RackFault {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::DeadBmc,
        Self::WrongPassword,
        Self::FailsInspection,
        Self::StuckInspecting,
        Self::FailsPreparing,
        Self::FailsProvisioning,
        Self::StuckProvisioning,
        Self::FailsDeprovisioning,
        Self::FailsPower,
        Self::IgnoresSoftPowerOff,
    ];

    /// Word in settings and in names of hosts.
    pub fn word(self) -> &'static str {
        match self {
            Self::DeadBmc => "dead-bmc",
            Self::WrongPassword => "wrong-password",
            Self::FailsInspection => "fails-inspection",
            Self::StuckInspecting => "stuck-inspecting",
            Self::FailsPreparing => "fails-preparing",
            Self::FailsProvisioning => "fails-provisioning",
            Self::StuckProvisioning => "stuck-provisioning",
            Self::FailsDeprovisioning => "fails-deprovisioning",
            Self::FailsPower => "fails-power",
            Self::IgnoresSoftPowerOff => "ignores-soft-power-off",
        }
    }

    /// Effect of the fault on an operation, if it has one.
    pub(crate) fn effect(self, operation: RackOperation) -> Option<FaultEffect> {
        use RackOperation::{HardPowerOff, PowerOn, Reboot, SoftPowerOff};
        let switches = matches!(operation, PowerOn | SoftPowerOff | HardPowerOff | Reboot);
        let fails = |text| Some(FaultEffect::Fails(text));
        match (self, operation) {
            (Self::DeadBmc, RackOperation::Register) => fails("the BMC does not answer"),
            (Self::DeadBmc, _) if switches => fails("the BMC does not answer"),
            (Self::WrongPassword, RackOperation::Register) => fails("wrong user name or password"),
            (Self::FailsInspection, RackOperation::Inspect) => fails("the ramdisk reported no inventory"),
            (Self::FailsPreparing, RackOperation::Prepare) => fails("the firmware refused the settings"),
            (Self::FailsProvisioning, RackOperation::Provision) => fails("the image could not be written"),
            (Self::FailsDeprovisioning, RackOperation::Deprovision) => {
                fails("the disks could not be cleaned")
            }
            (Self::FailsPower, _) if switches => fails("the power supply does not react"),
            (Self::IgnoresSoftPowerOff, SoftPowerOff) => fails("the system did not shut down in time"),
            (Self::StuckInspecting, RackOperation::Inspect)
            | (Self::StuckProvisioning, RackOperation::Provision) => Some(FaultEffect::Hangs),
            (
                Self::DeadBmc
                | Self::WrongPassword
                | Self::FailsInspection
                | Self::StuckInspecting
                | Self::FailsPreparing
                | Self::FailsProvisioning
                | Self::StuckProvisioning
                | Self::FailsDeprovisioning
                | Self::FailsPower
                | Self::IgnoresSoftPowerOff,
                _,
            ) => None,
        }
    }
}

/// Effect of a fault on an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultEffect {
    /// The operation fails at its end, with that text.
    Fails(&'static str),
    /// The operation never ends.
    Hangs,
}

/// Faults by a part of the name or address. A host whose name has the word of a fault in it always has that fault.
///
/// The text form is a list such as `dead-bmc=rack-7,fails-power=node-12`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RackFaults(Vec<(RackFault, String)>);

impl RackFaults {
    /// Returns the faults of the host of that name behind that address.
    pub(crate) fn of(&self, name: &str, address: &str) -> Vec<RackFault> {
        let is_meant = |part: &str| name.contains(part) || address.contains(part);
        let named = RackFault::ALL.into_iter().filter(|fault| name.contains(fault.word()));
        let listed = self.0.iter().filter(|(_, part)| is_meant(part)).map(|(fault, _)| *fault);
        named.chain(listed).collect()
    }
}

/// Reason why faults cannot be injected.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a list such as dead-bmc=rack-7,fails-power=node-12; the faults are {known}",
    known = RackFault::ALL.map(RackFault::word).join(", ")
)]
pub struct RackFaultsError(String);

impl FromStr for RackFaults {
    type Err = RackFaultsError;

    fn from_str(text: &str) -> Result<Self, RackFaultsError> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let parsed = entries.map(|entry| {
            let (word, part) = entry.split_once('=')?;
            let fault = RackFault::ALL.into_iter().find(|fault| fault.word() == word)?;
            (!part.is_empty()).then(|| (fault, part.to_owned()))
        });
        let parsed: Option<Vec<_>> = parsed.collect();
        parsed.map(Self).ok_or_else(|| RackFaultsError(text.to_owned()))
    }
}
