//! Causes of devices. Class, outcome and texts of each cause are its row in [`super::table`].

/// Cause that makes a device as it is. The word is the same in answers, logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceReason {
    /// The device runs its spec.
    AsWanted,
    /// No fleet owns the device, and it has no spec of its own.
    NothingWanted,
    /// The agent requested its enrolment, and nobody has approved it.
    ApprovalAwaited,
    /// The enrolment was approved, and its record is being created.
    RecordAwaited,
    /// The device was deleted, and its request goes.
    Deleted,
    /// The device is enrolled, and its certificate was not issued yet.
    CertificateAwaited,
    /// The agent was never seen.
    NeverSeen,
    /// The agent was not seen for too long.
    Disconnected,
    /// The database was restored, and the agent was not seen since.
    ReconnectAwaited,
    /// The agent runs a newer version than the restored database knows.
    ConflictPaused,
    /// The end of the device was requested, and its agent has not begun it.
    EndRequested,
    /// The agent has begun to end its work.
    EndBegun,
    /// The agent has ended its work.
    Ended,
    /// The agent has ended its work and failed at a part of it.
    EndedInError,
    /// More than one fleet selects the device.
    SeveralFleets,
    /// The spec cannot be rendered.
    SpecInvalid,
    /// The agent works on an update.
    Updating,
    /// The device reboots for an update.
    Rebooting,
    /// The agent tries an update again.
    UpdateRetrying,
    /// The agent rolls an update back.
    UpdateRollingBack,
    /// The last update failed.
    UpdateFailed,
    /// The last update was canceled for a newer one.
    UpdateCanceled,
    /// The template of the fleet could not be applied to the device.
    TemplateUnfit,
    /// The fleet that owns the device could not be read.
    FleetUnread,
    /// The device has not been given the latest template of its fleet.
    RolloutAwaited,
    /// The latest template of the fleet has not been rendered for the device.
    RenderingAwaited,
    /// The agent has not taken the latest spec.
    SpecNotTaken,
    /// Another image runs than the spec names.
    OtherImage,
    /// The spec names an item of a catalogue, and the device takes packages only.
    CatalogItemUnsupported,
    /// An application has failed.
    ApplicationFailed,
    /// An application is not fully at work.
    ApplicationDegraded,
    /// A resource is critically short.
    ResourceCritical,
    /// A resource is short.
    ResourceShort,
    /// The check of the integrity of the device failed.
    IntegrityFailed,
}

impl DeviceReason {
    /// Every cause, in the order of the table.
    pub const ALL: [Self; 34] = [
        Self::AsWanted,
        Self::NothingWanted,
        Self::ApprovalAwaited,
        Self::RecordAwaited,
        Self::Deleted,
        Self::CertificateAwaited,
        Self::NeverSeen,
        Self::Disconnected,
        Self::ReconnectAwaited,
        Self::ConflictPaused,
        Self::EndRequested,
        Self::EndBegun,
        Self::Ended,
        Self::EndedInError,
        Self::SeveralFleets,
        Self::SpecInvalid,
        Self::Updating,
        Self::Rebooting,
        Self::UpdateRetrying,
        Self::UpdateRollingBack,
        Self::UpdateFailed,
        Self::UpdateCanceled,
        Self::TemplateUnfit,
        Self::FleetUnread,
        Self::RolloutAwaited,
        Self::RenderingAwaited,
        Self::SpecNotTaken,
        Self::OtherImage,
        Self::CatalogItemUnsupported,
        Self::ApplicationFailed,
        Self::ApplicationDegraded,
        Self::ResourceCritical,
        Self::ResourceShort,
        Self::IntegrityFailed,
    ];
}
