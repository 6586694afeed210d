//! Evidence about a host besides its record: the look of its driver, its last report, and companion records.

use std::sync::Arc;

use crate::{
    core::{backoff::Jitter, time::Timestamp},
    host::record::{
        call::{DriverReport, RamdiskImage},
        progress::CallCarrier,
        status::HostInventory,
    },
};

/// Evidence about a host besides its record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostEvidence {
    /// Last look of the driver at the host.
    pub driver: DriverSight,
    /// Last reports about calls.
    pub reports: CallReports,
    /// Whether a slot is free for the host.
    pub slot: SlotOffer,
    /// Login at the BMC.
    pub credentials: CredentialsSight,
    /// Durable copy of the inventory.
    pub hardware_data: Option<Arc<HostInventory>>,
    /// Ramdisk image of the host.
    pub ramdisk: RamdiskSight,
    /// Wished firmware settings, if there are any.
    pub settings: Option<FirmwareWish>,
    /// Wished firmware versions, if there are any.
    pub components: Option<FirmwareWish>,
    /// Changes of firmware that a running host allows at a reboot.
    pub on_reboot: UpdatePolicy,
    /// Data image of the host.
    pub data_image: DataImageSight,
    /// User data, network data, metadata, and the login for an image registry.
    pub deploy_data: DeployData,
}

/// Last report about a call of each part that carries calls out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallReports {
    /// Report of the host provisioner.
    pub host_provisioner: Option<DriverReport>,
    /// Report of the power controller.
    pub power_controller: Option<DriverReport>,
}

impl CallReports {
    /// Returns the report of a part. The report of another part is about another call, even if the numbers are the same:
    /// the registry may have lost the commits that gave a number the first time.
    pub fn of(&self, carrier: CallCarrier) -> Option<&DriverReport> {
        match carrier {
            CallCarrier::HostProvisioner => self.host_provisioner.as_ref(),
            CallCarrier::PowerController => self.power_controller.as_ref(),
        }
    }

    /// Returns the highest number of a call with a report; 0: there is none.
    pub(crate) fn last_number(&self) -> u64 {
        let reports = [&self.host_provisioner, &self.power_controller];
        reports.into_iter().flatten().map(|report| report.number).max().unwrap_or(0)
    }
}

/// Look of a driver at a host: a part of one listing of everything that its backend knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DriverSight {
    /// The backend has not listed anything yet.
    #[default]
    Unlisted,
    /// The backend is not ready.
    NotReady,
    /// The backend does not know the host.
    Absent {
        /// Time at which the listing was asked for.
        asked_at: Timestamp,
    },
    /// The backend knows the host.
    Known(DriverView),
}

/// Look of a driver at a host that its backend knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DriverView {
    /// Time at which the listing was asked for, by the clock of reports.
    pub asked_at: Timestamp,
    /// Whether the power is on; `None`: not known.
    pub powered_on: Option<bool>,
    /// Whether the backend has trouble with the power of the host.
    pub has_power_failure: bool,
    /// Health of the hardware; `None`: the driver has no answer.
    pub health: Option<HardwareHealth>,
    /// Whether the backend's record was made anew and does not hold the running system.
    pub needs_adoption: bool,
    /// Whether the backend works on the host.
    pub is_busy: bool,
    /// Whether the host boots from images that need no slot: virtual media or UEFI HTTP.
    pub boots_without_slot: bool,
    /// Whether the backend wants a ramdisk image.
    pub wants_ramdisk: bool,
}

impl DriverView {
    /// Returns the view as it would be if it had been asked for at that time.
    #[must_use]
    pub fn seen_at(self, asked_at: Timestamp) -> Self {
        Self { asked_at, ..self }
    }
}

impl DriverSight {
    /// Returns the look at a known host.
    pub fn view(&self) -> Option<&DriverView> {
        match self {
            Self::Known(view) => Some(view),
            Self::Unlisted | Self::NotReady | Self::Absent { .. } => None,
        }
    }
}

/// Health of the hardware, as the driver reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HardwareHealth {
    /// The hardware is in order.
    Healthy,
    /// The hardware needs attention.
    Warning,
    /// The hardware fails.
    Critical,
    /// The driver uses another word.
    Unknown,
}

/// Answer of the queue for slots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SlotOffer {
    /// The host has a slot, or may take one now.
    Open,
    /// Every slot is taken, or promised to hosts that have waited longer.
    #[default]
    Taken,
}

/// Login at a BMC, as its secret was read. Values never reach the rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CredentialsSight {
    /// The secret does not exist.
    #[default]
    Missing,
    /// The secret could not be read.
    Unreadable,
    /// The secret lacks the user name or the password.
    Incomplete,
    /// The secret has both.
    Complete {
        /// Version of the secret.
        version: Arc<str>,
    },
    /// The secret is gone, and the copy that was kept at registration stands in for it during a deletion.
    Kept {
        /// Version of the secret that was copied.
        version: Arc<str>,
    },
}

/// Ramdisk image of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RamdiskSight {
    /// The image is not built yet.
    #[default]
    Pending,
    /// The image cannot be built, or its network data cannot be read.
    Failed {
        /// Failure, for people.
        text: Arc<str>,
    },
    /// The image is built.
    Built(Arc<RamdiskImage>),
}

/// Wishes about firmware, as their own record judges them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FirmwareWish {
    /// Whether the record was judged in its present generation.
    pub is_judged: bool,
    /// Whether the present values are known.
    pub is_read: bool,
    /// Whether a wish differs from the present values.
    pub is_changed: bool,
    /// Whether every wish can be fulfilled.
    pub is_valid: bool,
    /// Time at which the present values were read.
    pub read_at: Timestamp,
    /// Whether a wished change was not begun yet.
    pub is_pending: bool,
}

/// Changes of firmware that a running host allows at a reboot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UpdatePolicy {
    /// Whether settings are changed.
    pub settings: bool,
    /// Whether versions are changed.
    pub components: bool,
}

/// Data image of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataImageSight {
    /// Address of the wanted image; `None`: none is wanted.
    pub wanted: Option<Arc<str>>,
    /// Address of the inserted image; `None`: none is inserted.
    pub inserted: Option<Arc<str>>,
}

/// Secrets that a provisioning needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DeployData {
    /// All are readable, or none is named.
    #[default]
    Ready,
    /// A secret cannot be read.
    Unreadable {
        /// Reason, for people.
        text: Arc<str>,
    },
    /// The login for the image registry cannot be used.
    PullSecretUnusable {
        /// Problem with it.
        problem: PullSecretProblem,
        /// Reason, for people.
        text: Arc<str>,
    },
}

/// Problem with the login for an image registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PullSecretProblem {
    /// The secret has a type that is not supported.
    Format,
    /// The content of the secret cannot be read.
    Content,
}

/// Settings that rules follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPolicy {
    /// Failed rounds of provisioning after which none is begun; 0: no limit.
    pub max_provisioning_retries: u32,
    /// CPU architecture of hosts of which none is known.
    pub architecture: Arc<str>,
    /// Part that carries out the power calls of hosts.
    pub power_carrier: CallCarrier,
}

impl Default for HostPolicy {
    fn default() -> Self {
        Self {
            max_provisioning_retries: 5,
            architecture: "x86_64".into(),
            power_carrier: CallCarrier::PowerController,
        }
    }
}

/// Circumstances of one decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostMoment {
    /// Time of the decision.
    pub now: Timestamp,
    /// Random fraction for its back-off.
    pub jitter: Jitter,
}
