//! Causes of hosts. Class, outcome and texts of each cause are its row in [`super::table`].

/// Cause that makes a host as it is. The word is the same in answers, logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostReason {
    /// The host is as wanted.
    AsWanted,
    /// The host can be provisioned, and no image is wanted.
    Available,
    /// The host was installed by other means, and only its power is managed.
    ExternallyProvisioned,
    /// The last session on the node of the host left its power as it is, against the spec.
    PowerLeftBySession,
    /// No decision about the host was made yet, or another one follows at once.
    DecisionAwaited,
    /// Neither a BMC address nor credentials are given.
    BmcUnmanaged,
    /// An annotation pauses the host.
    Paused,
    /// A session acts on the node that the host is.
    NodeInUse,
    /// The backend has let go of the host.
    Detached,
    /// A detached host holds its deletion.
    DeletionHeld,
    /// The host is gone, and so will be its record.
    Gone,
    /// A request holds the power off.
    HeldOff,
    /// The secret with the login of the BMC does not exist.
    CredentialsMissing,
    /// The login is incomplete, or the BMC address or the name of the secret is missing.
    CredentialsIncomplete,
    /// The secret with the login could not be read.
    CredentialsUnreadable,
    /// The backend of the host is not ready.
    BackendNotReady,
    /// The backend of the host could not be asked.
    BackendUnreachable,
    /// The backend is busy with the host.
    BackendBusy,
    /// The answer of the backend lacks a part.
    BackendAnswerIncomplete,
    /// The power controller has to take the power call.
    PowerControllerAwaited,
    /// The backend gets to know the host and its login.
    Registering,
    /// The hardware is being inspected.
    Inspecting,
    /// RAID and firmware are being prepared.
    Preparing,
    /// Firmware of the running host is being changed.
    Servicing,
    /// An image or a custom procedure is being put on the host.
    Provisioning,
    /// The backend takes over the running system.
    Adopting,
    /// The image is being removed.
    Deprovisioning,
    /// The host is being switched on.
    PoweringOn,
    /// The host is being switched off.
    PoweringOff,
    /// The backend lets go of the host.
    Detaching,
    /// The backend forgets the host.
    Deleting,
    /// A data image is being inserted or ejected.
    DataImageChanging,
    /// Registration failed with a login that the BMC has not accepted yet.
    LoginUnproven,
    /// Registration failed with a login that has worked before.
    RegistrationFailed,
    /// The inspection failed.
    InspectionFailed,
    /// RAID or firmware could not be prepared.
    PreparationFailed,
    /// The image could not be put on the host.
    ProvisioningFailed,
    /// The image could not be removed.
    DeprovisioningFailed,
    /// The backend could not take over the running system.
    AdoptionFailed,
    /// The power could not be switched.
    PowerFailed,
    /// Firmware of the running host could not be changed.
    ServicingFailed,
    /// The backend could not let go of the host.
    DetachFailed,
    /// An operation is tried again later, and no failure is on record.
    RetryAwaited,
    /// The host waits for its turn among those that the backends can work on at once.
    SlotAwaited,
    /// The backend needs a ramdisk image that is not built.
    RamdiskAwaited,
    /// The power was not read since the last change.
    PowerReadingAwaited,
    /// The firmware settings have not been read.
    FirmwareReadingAwaited,
    /// The firmware wishes have not been judged.
    FirmwareUnjudged,
    /// The data image could not be inserted or ejected.
    DataImageFailed,
    /// User data, network data or metadata cannot be read.
    DeployDataUnreadable,
    /// The supplied inventory cannot be read.
    HardwareDetailsUnreadable,
    /// Provisioning failed as often as it may.
    ProvisioningGivenUp,
    /// The wanted image cannot be used by any backend.
    ImageUnusable,
    /// The BMC reports a warning about the hardware.
    HardwareWarning,
    /// The BMC reports a critical error of the hardware.
    HardwareCritical,
}

impl HostReason {
    /// Every cause, in the order of the table.
    pub const ALL: [Self; 55] = [
        Self::AsWanted,
        Self::Available,
        Self::ExternallyProvisioned,
        Self::PowerLeftBySession,
        Self::DecisionAwaited,
        Self::BmcUnmanaged,
        Self::Paused,
        Self::NodeInUse,
        Self::Detached,
        Self::DeletionHeld,
        Self::Gone,
        Self::HeldOff,
        Self::CredentialsMissing,
        Self::CredentialsIncomplete,
        Self::CredentialsUnreadable,
        Self::BackendNotReady,
        Self::BackendUnreachable,
        Self::BackendBusy,
        Self::BackendAnswerIncomplete,
        Self::PowerControllerAwaited,
        Self::Registering,
        Self::Inspecting,
        Self::Preparing,
        Self::Servicing,
        Self::Provisioning,
        Self::Adopting,
        Self::Deprovisioning,
        Self::PoweringOn,
        Self::PoweringOff,
        Self::Detaching,
        Self::Deleting,
        Self::DataImageChanging,
        Self::LoginUnproven,
        Self::RegistrationFailed,
        Self::InspectionFailed,
        Self::PreparationFailed,
        Self::ProvisioningFailed,
        Self::DeprovisioningFailed,
        Self::AdoptionFailed,
        Self::PowerFailed,
        Self::ServicingFailed,
        Self::DetachFailed,
        Self::RetryAwaited,
        Self::SlotAwaited,
        Self::RamdiskAwaited,
        Self::PowerReadingAwaited,
        Self::FirmwareReadingAwaited,
        Self::FirmwareUnjudged,
        Self::DataImageFailed,
        Self::DeployDataUnreadable,
        Self::HardwareDetailsUnreadable,
        Self::ProvisioningGivenUp,
        Self::ImageUnusable,
        Self::HardwareWarning,
        Self::HardwareCritical,
    ];
}
