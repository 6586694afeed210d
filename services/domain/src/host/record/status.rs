//! Knowledge about a host, as clients see it (host reference 1.8, 2.4).

use std::sync::Arc;

use crate::{
    core::{condition::Condition, time::Timestamp},
    host::record::{
        condition::{ConditionKind, ConditionReason},
        history::OperationHistory,
        spec::{BootMode, HostImage, RaidWish, RootDeviceHints},
        state::HostState,
    },
};

/// Status of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostStatus {
    /// Operational status.
    pub operational: OperationalStatus,
    /// Error that clients see; `None`: no failure is recorded.
    pub error: Option<HostError>,
    /// Failures since the last success.
    pub error_count: u32,
    /// Failed rounds of provisioning of the wanted system.
    pub provisioning_fail_count: u32,
    /// System of the last call that provisions; its image is the visible last attempted image.
    pub last_attempt: Option<WantedSystem>,
    /// Time of the last save; `None`: never saved.
    pub last_updated: Option<Timestamp>,
    /// Name of the hardware profile; empty: not chosen yet.
    pub hardware_profile: Arc<str>,
    /// Inventory of the hardware.
    pub hardware: Option<Arc<HostInventory>>,
    /// Whether the power is on, as last known.
    pub powered_on: bool,
    /// State, and settings that were applied.
    pub provisioning: ProvisioningStatus,
    /// Last login that worked.
    pub good_credentials: Option<CredentialsRecord>,
    /// Last login that the driver was given.
    pub tried_credentials: Option<CredentialsRecord>,
    /// Latest times of the four operations that clients see.
    pub history: OperationHistory,
    /// Conditions, one of each kind.
    pub conditions: Vec<Condition<ConditionKind, ConditionReason>>,
}

/// State of a host, and settings that were applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProvisioningStatus {
    /// State of the host.
    pub state: HostState,
    /// Id of the host at the driver; empty: none.
    pub id: Arc<str>,
    /// Image that runs.
    pub image: Option<HostImage>,
    /// Method of the custom procedure that was carried out.
    pub custom_deploy: Option<Arc<str>>,
    /// Boot mode of the present operation.
    pub boot_mode: Option<BootMode>,
    /// Hints that were applied.
    pub root_device_hints: Option<RootDeviceHints>,
    /// RAID volumes that were applied.
    pub raid: Option<RaidWish>,
}

/// System to run: an image, a custom procedure, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedSystem {
    /// Image.
    pub image: Option<HostImage>,
    /// Method of the custom procedure.
    pub procedure: Option<Arc<str>>,
}

/// Inventory of the hardware. Rules read the architecture and leave the rest alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostInventory {
    /// CPU architecture; empty: not known.
    pub architecture: Arc<str>,
    /// Whole inventory in its stored form.
    pub details: Arc<str>,
}

/// Login at a BMC: a version of a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CredentialsRecord {
    /// Name of the secret.
    pub name: Arc<str>,
    /// Version of the secret.
    pub version: Arc<str>,
}

/// Operational status of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OperationalStatus {
    /// No decision was made yet.
    #[default]
    Unset,
    /// The host is known and not managed.
    Discovered,
    /// No failure is recorded.
    Ok,
    /// A failure is recorded.
    Error,
    /// The host waits for a slot.
    Delayed,
    /// The driver has let go of the host.
    Detached,
    /// Firmware of a running host is changed.
    Servicing,
}

impl OperationalStatus {
    /// Every operational status.
    pub const ALL: [Self; 7] = [
        Self::Unset,
        Self::Discovered,
        Self::Ok,
        Self::Error,
        Self::Delayed,
        Self::Detached,
        Self::Servicing,
    ];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unset => "",
            Self::Discovered => "discovered",
            Self::Ok => "OK",
            Self::Error => "error",
            Self::Delayed => "delayed",
            Self::Detached => "detached",
            Self::Servicing => "servicing",
        }
    }

    /// Returns the operational status of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }
}

/// Failure of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostError {
    /// Kind, by which rules decide.
    pub kind: HostErrorKind,
    /// Text for people.
    pub text: Arc<str>,
}

/// Kind of the failure of a host: the operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostErrorKind {
    /// Login, address or registration.
    Registration,
    /// Inspection.
    Inspection,
    /// Preparation.
    Preparation,
    /// Provisioning or deprovisioning.
    Provisioning,
    /// Adoption of a host that runs its system.
    ProvisionedRegistration,
    /// Power.
    PowerManagement,
    /// Servicing.
    Servicing,
    /// Detachment.
    Detach,
}

impl HostErrorKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Registration,
        Self::Inspection,
        Self::Preparation,
        Self::Provisioning,
        Self::ProvisionedRegistration,
        Self::PowerManagement,
        Self::Servicing,
        Self::Detach,
    ];

    /// The word in records and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Registration => "registration error",
            Self::Inspection => "inspection error",
            Self::Preparation => "preparation error",
            Self::Provisioning => "provisioning error",
            Self::ProvisionedRegistration => "provisioned registration error",
            Self::PowerManagement => "power management error",
            Self::Servicing => "servicing error",
            Self::Detach => "detach error",
        }
    }

    /// Returns the kind of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}
