//! Reasons of events, in the words of the contract.

use crate::device::record::report::ResourceKind;

/// Reason of an event of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceEventReason {
    /// The record was created.
    Created,
    /// A person, or a fleet, changed the record.
    Updated,
    /// The record was deleted.
    Deleted,
    /// The agent was seen again.
    Connected,
    /// The agent was not seen for too long.
    Disconnected,
    /// The device reboots for an update.
    IsRebooting,
    /// The agent runs a newer version than the restored database knows.
    ConflictPaused,
    /// A person resumed a paused device.
    ConflictResolved,
    /// An update began.
    ContentUpdating,
    /// The device runs its spec.
    ContentUpToDate,
    /// The device no longer runs its spec.
    ContentOutOfDate,
    /// An update failed.
    UpdateFailed,
    /// An application has failed.
    ApplicationError,
    /// An application is not fully at work.
    ApplicationDegraded,
    /// Every application is well.
    ApplicationHealthy,
    /// A resource runs short, or has enough again.
    Resource(ResourceKind, ResourceLevel),
    /// Another image of the system runs.
    OsImageChanged,
    /// The spec can be rendered.
    SpecValid,
    /// The spec cannot be rendered.
    SpecInvalid,
    /// More than one fleet selects the device.
    MultipleOwnersDetected,
    /// No more than one fleet selects the device again.
    MultipleOwnersResolved,
    /// The end of the device was asked for.
    Decommissioned,
}

/// Level of a resource, as events name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceLevel {
    /// Enough is left.
    Normal,
    /// The resource runs short.
    Warning,
    /// Next to nothing is left.
    Critical,
}

impl DeviceEventReason {
    /// Words for all reasons.
    pub const WORDS: [&'static str; 30] = [
        Self::Created.word(),
        Self::Updated.word(),
        Self::Deleted.word(),
        Self::Connected.word(),
        Self::Disconnected.word(),
        Self::IsRebooting.word(),
        Self::ConflictPaused.word(),
        Self::ConflictResolved.word(),
        Self::ContentUpdating.word(),
        Self::ContentUpToDate.word(),
        Self::ContentOutOfDate.word(),
        Self::UpdateFailed.word(),
        Self::ApplicationError.word(),
        Self::ApplicationDegraded.word(),
        Self::ApplicationHealthy.word(),
        Self::Resource(ResourceKind::Cpu, ResourceLevel::Normal).word(),
        Self::Resource(ResourceKind::Cpu, ResourceLevel::Warning).word(),
        Self::Resource(ResourceKind::Cpu, ResourceLevel::Critical).word(),
        Self::Resource(ResourceKind::Memory, ResourceLevel::Normal).word(),
        Self::Resource(ResourceKind::Memory, ResourceLevel::Warning).word(),
        Self::Resource(ResourceKind::Memory, ResourceLevel::Critical).word(),
        Self::Resource(ResourceKind::Disk, ResourceLevel::Normal).word(),
        Self::Resource(ResourceKind::Disk, ResourceLevel::Warning).word(),
        Self::Resource(ResourceKind::Disk, ResourceLevel::Critical).word(),
        Self::OsImageChanged.word(),
        Self::SpecValid.word(),
        Self::SpecInvalid.word(),
        Self::MultipleOwnersDetected.word(),
        Self::MultipleOwnersResolved.word(),
        Self::Decommissioned.word(),
    ];

    /// The word in records.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Created => "ResourceCreated",
            Self::Updated => "ResourceUpdated",
            Self::Deleted => "ResourceDeleted",
            Self::Connected => "DeviceConnected",
            Self::Disconnected => "DeviceDisconnected",
            Self::IsRebooting => "DeviceIsRebooting",
            Self::ConflictPaused => "DeviceConflictPaused",
            Self::ConflictResolved => "DeviceConflictResolved",
            Self::ContentUpdating => "DeviceContentUpdating",
            Self::ContentUpToDate => "DeviceContentUpToDate",
            Self::ContentOutOfDate => "DeviceContentOutOfDate",
            Self::UpdateFailed => "DeviceUpdateFailed",
            Self::ApplicationError => "DeviceApplicationError",
            Self::ApplicationDegraded => "DeviceApplicationDegraded",
            Self::ApplicationHealthy => "DeviceApplicationHealthy",
            Self::Resource(kind, level) => resource_word(kind, level),
            Self::OsImageChanged => "DeviceOSImageChanged",
            Self::SpecValid => "DeviceSpecValid",
            Self::SpecInvalid => "DeviceSpecInvalid",
            Self::MultipleOwnersDetected => "DeviceMultipleOwnersDetected",
            Self::MultipleOwnersResolved => "DeviceMultipleOwnersResolved",
            Self::Decommissioned => "DeviceDecommissioned",
        }
    }

    /// Returns whether the event is a warning.
    pub fn is_warning(self) -> bool {
        match self {
            Self::Disconnected
            | Self::ConflictPaused
            | Self::UpdateFailed
            | Self::ApplicationError
            | Self::ApplicationDegraded
            | Self::Resource(_, ResourceLevel::Warning | ResourceLevel::Critical)
            | Self::SpecInvalid
            | Self::MultipleOwnersDetected => true,
            Self::Created
            | Self::Updated
            | Self::Deleted
            | Self::Connected
            | Self::IsRebooting
            | Self::ConflictResolved
            | Self::ContentUpdating
            | Self::ContentUpToDate
            | Self::ContentOutOfDate
            | Self::ApplicationHealthy
            | Self::Resource(_, ResourceLevel::Normal)
            | Self::OsImageChanged
            | Self::SpecValid
            | Self::MultipleOwnersResolved
            | Self::Decommissioned => false,
        }
    }
}

const fn resource_word(kind: ResourceKind, level: ResourceLevel) -> &'static str {
    match (kind, level) {
        (ResourceKind::Cpu, ResourceLevel::Normal) => "DeviceCPUNormal",
        (ResourceKind::Cpu, ResourceLevel::Warning) => "DeviceCPUWarning",
        (ResourceKind::Cpu, ResourceLevel::Critical) => "DeviceCPUCritical",
        (ResourceKind::Memory, ResourceLevel::Normal) => "DeviceMemoryNormal",
        (ResourceKind::Memory, ResourceLevel::Warning) => "DeviceMemoryWarning",
        (ResourceKind::Memory, ResourceLevel::Critical) => "DeviceMemoryCritical",
        (ResourceKind::Disk, ResourceLevel::Normal) => "DeviceDiskNormal",
        (ResourceKind::Disk, ResourceLevel::Warning) => "DeviceDiskWarning",
        (ResourceKind::Disk, ResourceLevel::Critical) => "DeviceDiskCritical",
    }
}
