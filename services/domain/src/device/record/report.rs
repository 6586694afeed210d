//! Report of an agent: everything that it writes about its device (device reference 1.3, 2.2).

use std::sync::Arc;

use crate::{
    core::{condition::ConditionStatus, time::Timestamp},
    device::record::{
        application::ApplicationReport,
        condition::{ConditionKind, ConditionReason, DeviceCondition},
        status::{ApplicationsStatus, StatusEntry},
    },
};

/// Report of an agent about its device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentReport {
    /// Conditions that agents own, one of each kind.
    pub conditions: Vec<DeviceCondition>,
    /// Facts about the running system.
    pub system_info: Arc<SystemInfo>,
    /// Applications.
    pub applications: Vec<ApplicationReport>,
    /// The agent's own verdict about the applications. Agents know more than the statuses of single applications show.
    pub applications_verdict: StatusEntry<ApplicationsStatus>,
    /// Resources that may run short.
    pub resources: DeviceResources,
    /// Integrity of the device.
    pub integrity: DeviceIntegrity,
    /// Version of the spec that the agent runs: any text.
    pub rendered_version: Arc<str>,
    /// Running system.
    pub os: RunningOs,
    /// Units of systemd in their stored form; empty: not reported.
    pub systemd: Arc<str>,
    /// Manner in which the system is updated; `None`: not reported, as by older agents.
    pub os_mode: Option<OsMode>,
}

impl AgentReport {
    /// Report that stands for the agent of a new device.
    pub fn initial(created: Timestamp) -> Self {
        let updating = DeviceCondition {
            kind: ConditionKind::Updating,
            status: ConditionStatus::Unknown,
            reason: ConditionReason::from_word(""),
            message: Arc::default(),
            since: created,
            observed_generation: None,
        };
        Self { conditions: vec![updating], ..Self::default() }
    }
}

/// Facts by name, in the order of the names.
pub type SystemFacts = Box<[(Arc<str>, Arc<str>)]>;

/// Facts about a running system. No rule reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemInfo {
    /// CPU architecture.
    pub architecture: Arc<str>,
    /// Id of the present boot.
    pub boot_id: Arc<str>,
    /// Operating system.
    pub operating_system: Arc<str>,
    /// Version of the agent.
    pub agent_version: Arc<str>,
    /// Facts that an administrator lets the agent collect; `None`: not reported.
    pub custom_info: Option<SystemFacts>,
    /// Further facts by name.
    pub others: SystemFacts,
}

/// Running system of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunningOs {
    /// Reference of the image; empty: not known.
    pub image: Arc<str>,
    /// Digest of the image; empty: not known.
    pub image_digest: Arc<str>,
}

/// Resources of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceResources {
    /// Processor.
    pub cpu: ResourceStatus,
    /// Memory.
    pub memory: ResourceStatus,
    /// Disk.
    pub disk: ResourceStatus,
}

impl DeviceResources {
    /// Returns each resource with its status, in the order of the contract.
    pub fn each(self) -> [(ResourceKind, ResourceStatus); 3] {
        ResourceKind::ALL.map(|kind| (kind, self.of(kind)))
    }

    fn of(self, kind: ResourceKind) -> ResourceStatus {
        match kind {
            ResourceKind::Cpu => self.cpu,
            ResourceKind::Memory => self.memory,
            ResourceKind::Disk => self.disk,
        }
    }
}

/// Resource of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    /// Processor.
    Cpu,
    /// Memory.
    Memory,
    /// Disk.
    Disk,
}

impl ResourceKind {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Memory, Self::Disk];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Memory => "Memory",
            Self::Disk => "Disk",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// Status of a resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ResourceStatus {
    /// Enough is left.
    Healthy,
    /// The resource runs short.
    Warning,
    /// Next to nothing is left.
    Critical,
    /// The resource could not be measured.
    Error,
    /// Status not known.
    #[default]
    Unknown,
}

impl ResourceStatus {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 5] = [Self::Healthy, Self::Warning, Self::Critical, Self::Error, Self::Unknown];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Warning => "Warning",
            Self::Critical => "Critical",
            Self::Error => "Error",
            Self::Unknown => "Unknown",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// Integrity of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceIntegrity {
    /// Integrity as a whole.
    pub overall: StatusEntry<IntegrityStatus>,
    /// Time of the last check; `None`: never checked.
    pub last_verified: Option<Timestamp>,
    /// Identity of the device; `None`: not reported.
    pub device_identity: Option<StatusEntry<IntegrityStatus>>,
    /// Trusted platform module; `None`: not reported.
    pub tpm: Option<StatusEntry<IntegrityStatus>>,
}

/// Status of the integrity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum IntegrityStatus {
    /// The check succeeded.
    Verified,
    /// The check failed.
    Failed,
    /// Status not known.
    #[default]
    Unknown,
    /// The device cannot be checked.
    Unsupported,
}

impl IntegrityStatus {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::Verified, Self::Failed, Self::Unknown, Self::Unsupported];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Verified => "Verified",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
            Self::Unsupported => "Unsupported",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// Manner in which the system of a device is updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OsMode {
    /// The system is replaced by an image.
    Image,
    /// Packages of the system are updated.
    Package,
}

impl OsMode {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 2] = [Self::Image, Self::Package];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Package => "package",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}
