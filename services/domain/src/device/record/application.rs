//! Applications of a device, as its agent reports them.

use std::sync::Arc;

/// Application of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationReport {
    /// Name.
    pub name: Arc<str>,
    /// Status.
    pub status: ApplicationStatus,
    /// Running workloads of all, such as `1/2`.
    pub ready: Arc<str>,
    /// Restarts of all workloads.
    pub restarts: i64,
    /// Whether the application is part of the system image.
    pub embedded: bool,
    /// Kind of application.
    pub app_type: ApplicationType,
    /// User that runs the application; empty: not reported.
    pub run_as: Arc<str>,
    /// Volumes with their references.
    pub volumes: Vec<(Arc<str>, Arc<str>)>,
}

/// Status of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApplicationStatus {
    /// Workloads are made, and none runs.
    Preparing,
    /// Some workloads run and others are being made.
    Starting,
    /// Workloads run.
    Running,
    /// No workload runs.
    Error,
    /// Status not known.
    Unknown,
    /// Every workload has ended as it should.
    Completed,
    /// The application was stopped on request.
    Stopped,
    /// The application is being stopped on request.
    Stopping,
}

impl ApplicationStatus {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 8] = [
        Self::Preparing,
        Self::Starting,
        Self::Running,
        Self::Error,
        Self::Unknown,
        Self::Completed,
        Self::Stopped,
        Self::Stopping,
    ];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Preparing => "Preparing",
            Self::Starting => "Starting",
            Self::Running => "Running",
            Self::Error => "Error",
            Self::Unknown => "Unknown",
            Self::Completed => "Completed",
            Self::Stopped => "Stopped",
            Self::Stopping => "Stopping",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// Kind of application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApplicationType {
    /// Compose file.
    Compose,
    /// Units of systemd that run containers.
    Quadlet,
    /// Single container.
    Container,
    /// Helm chart.
    Helm,
    /// Virtual machine.
    Vm,
}

impl ApplicationType {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 5] = [Self::Compose, Self::Quadlet, Self::Container, Self::Helm, Self::Vm];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Compose => "compose",
            Self::Quadlet => "quadlet",
            Self::Container => "container",
            Self::Helm => "helm",
            Self::Vm => "vm",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}
