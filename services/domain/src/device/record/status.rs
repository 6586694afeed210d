//! Statuses of a device that the service decides (device reference 1.4).

use std::sync::Arc;

/// Statuses of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceStatus {
    /// Whether the device can be reached and is well.
    pub summary: StatusEntry<SummaryStatus>,
    /// Whether the device runs its spec.
    pub updated: StatusEntry<UpdatedStatus>,
    /// Whether its applications are well.
    pub applications: StatusEntry<ApplicationsStatus>,
    /// Stage of its life.
    pub lifecycle: StatusEntry<LifecycleStatus>,
}

/// Status with a text for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusEntry<S> {
    /// Status, by which rules decide.
    pub status: S,
    /// Text for people; empty: none.
    pub info: Arc<str>,
}

impl<S> StatusEntry<S> {
    /// Makes an entry.
    pub fn new(status: S, info: impl Into<Arc<str>>) -> Self {
        Self { status, info: info.into() }
    }

    /// Makes an entry without a text.
    pub fn bare(status: S) -> Self {
        Self { status, info: Arc::default() }
    }
}

/// Whole of a device in one word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SummaryStatus {
    /// The agent reports, and no resource is short.
    Online,
    /// A resource is short.
    Degraded,
    /// A resource is critically short.
    Error,
    /// The device reboots for an update.
    Rebooting,
    /// The device was switched off. Clients know the word; no rule decides so.
    PoweredOff,
    /// The agent was not seen for too long, or never.
    #[default]
    Unknown,
    /// The database was restored, and the agent was not seen since.
    AwaitingReconnect,
    /// The agent runs a newer version than the restored database knows.
    ConflictPaused,
}

impl SummaryStatus {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 8] = [
        Self::Online,
        Self::Degraded,
        Self::Error,
        Self::Rebooting,
        Self::PoweredOff,
        Self::Unknown,
        Self::AwaitingReconnect,
        Self::ConflictPaused,
    ];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Online => "Online",
            Self::Degraded => "Degraded",
            Self::Error => "Error",
            Self::Rebooting => "Rebooting",
            Self::PoweredOff => "PoweredOff",
            Self::Unknown => "Unknown",
            Self::AwaitingReconnect => "AwaitingReconnect",
            Self::ConflictPaused => "ConflictPaused",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// Relation of a device to its spec.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum UpdatedStatus {
    /// The device runs its spec.
    UpToDate,
    /// The device does not run its spec.
    OutOfDate,
    /// An update is under way.
    Updating,
    /// Status not known.
    #[default]
    Unknown,
}

impl UpdatedStatus {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::UpToDate, Self::OutOfDate, Self::Updating, Self::Unknown];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::UpToDate => "UpToDate",
            Self::OutOfDate => "OutOfDate",
            Self::Updating => "Updating",
            Self::Unknown => "Unknown",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// Applications of a device in one word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ApplicationsStatus {
    /// Every application is well.
    Healthy,
    /// An application is not fully at work.
    Degraded,
    /// An application has failed.
    Error,
    /// Status not known.
    #[default]
    Unknown,
    /// The device has no applications.
    NoApplications,
}

impl ApplicationsStatus {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 5] =
        [Self::Healthy, Self::Degraded, Self::Error, Self::Unknown, Self::NoApplications];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Degraded => "Degraded",
            Self::Error => "Error",
            Self::Unknown => "Unknown",
            Self::NoApplications => "NoApplications",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// Stage of the life of a device, in the order of a life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LifecycleStatus {
    /// The device was created without an enrolment.
    #[default]
    Unknown,
    /// The enrolment was approved.
    Enrolled,
    /// The end was asked for, or the agent has begun it.
    Decommissioning,
    /// The agent has ended its work, successfully or not.
    Decommissioned,
}

impl LifecycleStatus {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::Unknown, Self::Enrolled, Self::Decommissioning, Self::Decommissioned];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Enrolled => "Enrolled",
            Self::Decommissioning => "Decommissioning",
            Self::Decommissioned => "Decommissioned",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}
