//! Calls to a driver, and its answers (host reference 3.1, 3.2).

use std::{sync::Arc, time::Duration};

use crate::{
    core::time::Timestamp,
    host::record::{
        annotations::RebootMode,
        operation::OperationKind,
        spec::{BootMode, HostImage, InspectionMode, RaidWish, RootDeviceHints},
        state::HostState,
        status::{HostInventory, OperationalStatus, WantedSystem},
    },
};

/// Operation that is due, with everything that the rules have to say about it. The driver adds the login, the address
/// and secrets, which it reads from the record and its companions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are explained by the reference's word for them, or below")]
pub enum DriverCall {
    Register(Box<RegisterCall>),
    Inspect(InspectCall),
    Prepare(Box<PrepareCall>),
    Service(ServiceCall),
    Provision(Box<ProvisionCall>),
    /// `restart`: the last attempt failed, and its failure is on record.
    Adopt {
        state: HostState,
        restart: bool,
    },
    Deprovision {
        restart: bool,
        cleaning_disabled: bool,
    },
    /// `force`: the last attempt failed, and its failure is on record.
    PowerOn {
        force: bool,
    },
    PowerOff {
        mode: RebootMode,
        force: bool,
        cleaning_disabled: bool,
    },
    /// `force`: interrupts an operation of the driver.
    Detach {
        force: bool,
    },
    Delete,
    AttachDataImage {
        url: Arc<str>,
    },
    DetachDataImage,
}

impl DriverCall {
    /// Returns the parts of the host that the operation prepares anew.
    pub fn parts(&self) -> PreparationParts {
        match self {
            Self::Prepare(call) => call.parts,
            Self::Service(call) => call.parts,
            Self::Register(_)
            | Self::Inspect(_)
            | Self::Provision(_)
            | Self::Adopt { .. }
            | Self::Deprovision { .. }
            | Self::PowerOn { .. }
            | Self::PowerOff { .. }
            | Self::Detach { .. }
            | Self::Delete
            | Self::AttachDataImage { .. }
            | Self::DetachDataImage => PreparationParts::default(),
        }
    }

    /// Kind of the operation.
    pub fn kind(&self) -> OperationKind {
        match self {
            Self::Register(_) => OperationKind::Register,
            Self::Inspect(_) => OperationKind::Inspect,
            Self::Prepare(_) => OperationKind::Prepare,
            Self::Service(_) => OperationKind::Service,
            Self::Provision(_) => OperationKind::Provision,
            Self::Adopt { .. } => OperationKind::Adopt,
            Self::Deprovision { .. } => OperationKind::Deprovision,
            Self::PowerOn { .. } => OperationKind::PowerOn,
            Self::PowerOff { .. } => OperationKind::PowerOff,
            Self::Detach { .. } => OperationKind::Detach,
            Self::Delete => OperationKind::Delete,
            Self::AttachDataImage { .. } => OperationKind::AttachDataImage,
            Self::DetachDataImage => OperationKind::DetachDataImage,
        }
    }
}

/// Facts that the driver keeps about a host. The host is registered again as soon as one of them differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registration {
    /// Address of the BMC.
    pub address: Arc<str>,
    /// Whether the certificate of the BMC is taken unverified.
    pub disable_certificate_verification: bool,
    /// MAC address that the host boots from.
    pub boot_mac: Option<Arc<str>>,
    /// Boot mode.
    pub boot_mode: BootMode,
    /// Whether cleaning is left out.
    pub cleaning_disabled: bool,
    /// Image that runs, or that is being put on the host.
    pub image: Option<HostImage>,
    /// Whether a custom procedure is in use.
    pub has_procedure: bool,
    /// Whether the host may never be off.
    pub disable_power_off: bool,
    /// Ramdisk image, where one is wanted and built.
    pub ramdisk: Option<Arc<RamdiskImage>>,
    /// Means of inspection.
    pub inspection: InspectionMode,
}

/// Ramdisk image that was built for a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RamdiskImage {
    /// Address of the image.
    pub url: Arc<str>,
    /// Version of the network data that it contains.
    pub network_version: Arc<str>,
}

/// Input of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterCall {
    /// Facts that the driver keeps.
    pub registration: Registration,
    /// State of the host.
    pub state: HostState,
    /// Operational status of the host.
    pub operational: OperationalStatus,
    /// CPU architecture.
    pub architecture: Arc<str>,
    /// Whether the login has changed since the last registration.
    pub credentials_changed: bool,
    /// Whether the last attempt failed, and its failure is on record.
    pub restart: bool,
}

/// Input of an inspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectCall {
    /// Boot mode.
    pub boot_mode: BootMode,
    /// Means of inspection.
    pub mode: InspectionMode,
    /// CPU architecture.
    pub architecture: Arc<str>,
    /// Whether the last attempt failed, and its failure is on record.
    pub restart: bool,
    /// Whether an inspected host is to be inspected again.
    pub refresh: bool,
    /// Whether a waiting ramdisk is to be given up for a new start.
    pub force_reboot: bool,
}

/// Input of a preparation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrepareCall {
    /// Wanted RAID volumes.
    pub target_raid: Option<RaidWish>,
    /// Known RAID volumes; `None` rebuilds all of them.
    pub actual_raid: Option<RaidWish>,
    /// Wanted hints.
    pub hints: Option<RootDeviceHints>,
    /// Changes that this call is about.
    pub parts: PreparationParts,
    /// Whether there is anything to do that was not begun.
    pub unprepared: bool,
    /// Whether the last attempt failed, and its failure is on record.
    pub restart: bool,
}

/// Changes that a preparation is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PreparationParts {
    /// RAID volumes or hints.
    pub storage: bool,
    /// Firmware settings.
    pub settings: bool,
    /// Firmware versions.
    pub components: bool,
}

impl PreparationParts {
    /// Returns whether nothing is to be changed.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Returns whether firmware is to be changed.
    pub fn has_firmware(self) -> bool {
        self.settings || self.components
    }

    /// Returns the changes of either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            storage: self.storage || other.storage,
            settings: self.settings || other.settings,
            components: self.components || other.components,
        }
    }
}

/// Input of servicing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceCall {
    /// Changes that this call is about; none: the driver ends a servicing that is under way.
    pub parts: PreparationParts,
    /// Whether the last attempt failed, and its failure is on record.
    pub restart: bool,
}

/// Input of provisioning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvisionCall {
    /// System to install.
    pub system: WantedSystem,
    /// Boot mode.
    pub boot_mode: BootMode,
    /// Hints that choose the disk.
    pub hints: Option<RootDeviceHints>,
    /// Whether a waiting ramdisk is to be given up for a new start.
    pub force_reboot: bool,
}

/// Answer of a driver to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverAnswer {
    /// The operation is finished, or there was nothing to do.
    Done(DoneFacts),
    /// The operation was accepted, or is still under way.
    InProgress {
        /// Time until the driver is asked again, unless it reports earlier.
        again_in: Duration,
        /// Whether the operation has begun to change the host.
        started: bool,
    },
    /// The operation failed.
    Failed {
        /// Failure in the words of the driver.
        text: Arc<str>,
    },
    /// The driver does not know the host.
    NotRegistered,
    /// The driver lacks capacity for the host.
    NeedsSlot,
    /// The driver needs another ramdisk image, or one at all.
    NeedsRamdisk,
    /// The driver could not be asked, which is no fault of the host.
    Trouble {
        /// Kind of the trouble.
        kind: DriverTrouble,
        /// Trouble in the words of the driver.
        text: Arc<str>,
    },
}

impl DriverAnswer {
    /// Returns whether the operation may still go on: it is under way, or the driver could not be asked about it.
    pub fn may_go_on(&self) -> bool {
        match self {
            Self::InProgress { .. } | Self::Trouble { .. } => true,
            Self::Done(_)
            | Self::Failed { .. }
            | Self::NotRegistered
            | Self::NeedsSlot
            | Self::NeedsRamdisk => false,
        }
    }
}

/// Facts that come with the end of an operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DoneFacts {
    /// Id of the host at the driver, from a registration.
    pub id: Option<Arc<str>>,
    /// Inventory, from an inspection.
    pub inventory: Option<Arc<HostInventory>>,
    /// Whether the operation changed the host before it ended.
    pub started: bool,
}

/// Reason for which a driver could not be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DriverTrouble {
    /// The backend does not answer as it should.
    Unreachable,
    /// The backend is busy with the host.
    Busy,
}

/// Report about a call. A later report about the same call replaces an earlier one, so that a driver may report the
/// end of an operation on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverReport {
    /// Number of the call.
    pub number: u64,
    /// Time of the answer.
    pub at: Timestamp,
    /// Answer.
    pub answer: DriverAnswer,
}
