//! Reasons of the statuses of a device: one word each for logs and metrics.

use crate::device::record::status::{LifecycleStatus, SummaryStatus, UpdatedStatus};

/// Reason of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SummaryReason {
    /// The database was restored, and the agent was not seen since.
    AwaitingReconnect,
    /// The agent runs a newer version than the restored database knows.
    ConflictPaused,
    /// The agent was not seen for too long, or never.
    Disconnected,
    /// The device reboots for an update.
    Rebooting,
    /// A resource is critically short.
    CriticalResource,
    /// A resource is short.
    ShortResource,
    /// No other row holds.
    Connected,
}

impl SummaryReason {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 7] = [
        Self::AwaitingReconnect,
        Self::ConflictPaused,
        Self::Disconnected,
        Self::Rebooting,
        Self::CriticalResource,
        Self::ShortResource,
        Self::Connected,
    ];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::AwaitingReconnect => "awaiting_reconnect",
            Self::ConflictPaused => "conflict_paused",
            Self::Disconnected => "disconnected",
            Self::Rebooting => "rebooting",
            Self::CriticalResource => "critical_resource",
            Self::ShortResource => "short_resource",
            Self::Connected => "connected",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

impl SummaryReason {
    /// Summary that follows.
    pub fn status(self) -> SummaryStatus {
        match self {
            Self::AwaitingReconnect => SummaryStatus::AwaitingReconnect,
            Self::ConflictPaused => SummaryStatus::ConflictPaused,
            Self::Disconnected => SummaryStatus::Unknown,
            Self::Rebooting => SummaryStatus::Rebooting,
            Self::CriticalResource => SummaryStatus::Error,
            Self::ShortResource => SummaryStatus::Degraded,
            Self::Connected => SummaryStatus::Online,
        }
    }

    /// Returns whether the device waits since a restored database.
    pub(crate) fn is_pause(self) -> bool {
        match self {
            Self::AwaitingReconnect | Self::ConflictPaused => true,
            Self::Disconnected
            | Self::Rebooting
            | Self::CriticalResource
            | Self::ShortResource
            | Self::Connected => false,
        }
    }
}

/// Reason of an updated status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UpdatedReason {
    /// The database was restored, and the agent was not seen since.
    AwaitingReconnect,
    /// The agent was not seen for too long.
    Disconnected,
    /// The agent works on an update.
    Updating,
    /// The agent runs a newer version than the restored database knows.
    ConflictPaused,
    /// The agent runs another version of the spec, or the spec cannot be rendered.
    SpecNotCurrent,
    /// The fleet cannot be read, so nothing is decided.
    FleetUnreadable,
    /// The agent runs the template of its fleet.
    FleetCurrent,
    /// The agent does not run the template of its fleet.
    FleetNotCurrent,
    /// The agent runs its spec.
    SpecCurrent,
    /// Another image runs than the spec names.
    OtherImage,
    /// The spec names an item of a catalogue, and the device takes packages only.
    CatalogItemUnsupported,
}

impl UpdatedReason {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 11] = [
        Self::AwaitingReconnect,
        Self::Disconnected,
        Self::Updating,
        Self::ConflictPaused,
        Self::SpecNotCurrent,
        Self::FleetUnreadable,
        Self::FleetCurrent,
        Self::FleetNotCurrent,
        Self::SpecCurrent,
        Self::OtherImage,
        Self::CatalogItemUnsupported,
    ];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::AwaitingReconnect => "awaiting_reconnect",
            Self::Disconnected => "disconnected",
            Self::Updating => "updating",
            Self::ConflictPaused => "conflict_paused",
            Self::SpecNotCurrent => "spec_not_current",
            Self::FleetUnreadable => "fleet_unreadable",
            Self::FleetCurrent => "fleet_current",
            Self::FleetNotCurrent => "fleet_not_current",
            Self::SpecCurrent => "spec_current",
            Self::OtherImage => "other_image",
            Self::CatalogItemUnsupported => "catalog_item_unsupported",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

impl UpdatedReason {
    /// Updated status that follows; `None`: the status stays.
    pub fn status(self) -> Option<UpdatedStatus> {
        match self {
            Self::AwaitingReconnect | Self::Disconnected => Some(UpdatedStatus::Unknown),
            Self::Updating => Some(UpdatedStatus::Updating),
            Self::ConflictPaused
            | Self::SpecNotCurrent
            | Self::FleetNotCurrent
            | Self::OtherImage
            | Self::CatalogItemUnsupported => Some(UpdatedStatus::OutOfDate),
            Self::FleetUnreadable => None,
            Self::FleetCurrent | Self::SpecCurrent => Some(UpdatedStatus::UpToDate),
        }
    }
}

/// Reason of a status of applications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApplicationsReason {
    /// The agent was not seen for too long, or never.
    Disconnected,
    /// The device reboots, so its applications do not run.
    Rebooting,
    /// The device has no applications.
    NoApplications,
    /// The agent judged its applications itself.
    Verdict,
    /// The agent gave no verdict, so the statuses of the applications count.
    Statuses,
}

impl ApplicationsReason {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 5] =
        [Self::Disconnected, Self::Rebooting, Self::NoApplications, Self::Verdict, Self::Statuses];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Disconnected => "disconnected",
            Self::Rebooting => "rebooting",
            Self::NoApplications => "no_applications",
            Self::Verdict => "verdict",
            Self::Statuses => "statuses",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// Reason of a stage of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LifecycleReason {
    /// The agent has begun to end its work.
    EndBegun,
    /// The agent has ended its work.
    Ended,
    /// The agent has ended its work and failed at a part of it.
    EndedInError,
    /// The agent reports no end.
    Kept,
}

impl LifecycleReason {
    /// Every value, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::EndBegun, Self::Ended, Self::EndedInError, Self::Kept];

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::EndBegun => "end_begun",
            Self::Ended => "ended",
            Self::EndedInError => "ended_in_error",
            Self::Kept => "kept",
        }
    }

    /// Returns the value of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

impl LifecycleReason {
    /// Stage of life that follows; `None`: the stage stays.
    pub fn status(self) -> Option<LifecycleStatus> {
        match self {
            Self::EndBegun => Some(LifecycleStatus::Decommissioning),
            Self::Ended | Self::EndedInError => Some(LifecycleStatus::Decommissioned),
            Self::Kept => None,
        }
    }
}
