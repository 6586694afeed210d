//! Decision about a host: the new record, the call that is due, and everything to be recorded with it.

use std::{sync::Arc, time::Duration};

use crate::{
    core::time::Timestamp,
    host::{
        evidence::PullSecretProblem,
        record::{
            Host,
            annotations::AnnotationName,
            operation::OperationKind,
            progress::{HostWork, SlotClaim},
            reason::WaitReason,
            state::HostState,
            status::{HostErrorKind, HostInventory},
        },
    },
};

/// Decision about a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDecision {
    /// New record of the host.
    pub host: Host,
    /// Call that the driver is to be given once the record is stored; `None`: none is new. The record has the call as
    /// well, so a caller that starts anew finds each call that lacks a report.
    pub call: Option<HostWork>,
    /// Events to record with the change.
    pub events: Vec<HostEvent>,
    /// Counters to raise once the record is stored.
    pub metrics: Vec<HostMetric>,
    /// Changes of companion records.
    pub companions: Vec<CompanionChange>,
    /// Row of the transition table that was followed, by its number in the host reference.
    pub row: Option<u8>,
    /// Reason for which the host waits from now on.
    pub reason: WaitReason,
    /// Time of the next decision if nothing changes before; `None`: there is no need for one.
    pub look: Option<Timestamp>,
}

impl HostDecision {
    /// Returns whether nothing is left of the host, so that its record goes.
    pub fn is_gone(&self) -> bool {
        self.reason == WaitReason::Gone
    }

    /// Claim of the host on a slot from now on.
    pub fn slot(&self) -> SlotClaim {
        self.host.progress.slot
    }
}

/// Change of a host that a person asks about later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostEvent {
    /// The host is known and not managed.
    Discovered,
    /// The driver knows the host for the first time.
    Registered,
    /// A login worked for the first time.
    BmcAccessValidated,
    /// A login cannot be used.
    BmcCredentialError {
        /// Reason.
        text: &'static str,
    },
    /// A hardware profile was chosen.
    ProfileSet {
        /// Name of the profile.
        profile: Arc<str>,
    },
    /// The inventory was taken from its durable copy or from a person.
    UpdateHardwareDetails,
    /// An annotation was removed unread.
    RemoveAnnotation(AnnotationName),
    /// The value of a reboot annotation cannot be read.
    InvalidAnnotationValue,
    /// An inspection began.
    InspectionStarted,
    /// An inspection returned an inventory.
    InspectionComplete,
    /// No inspection is wanted.
    InspectionSkipped,
    /// Provisioning began.
    ProvisioningStarted,
    /// Provisioning ended well.
    ProvisioningComplete,
    /// Deprovisioning began.
    DeprovisioningStarted,
    /// Deprovisioning ended well.
    DeprovisioningComplete,
    /// The power was switched on.
    PowerOn,
    /// The power was switched off.
    PowerOff,
    /// An operation failed.
    Failed {
        /// Kind of the failure.
        kind: HostErrorKind,
        /// Text of the failure.
        text: Arc<str>,
    },
    /// The login for an image registry cannot be used.
    ImageAuth(PullSecretProblem),
    /// A deletion went on without an operation that it should have waited for.
    DeletionSkipped {
        /// Operation that was skipped.
        operation: OperationKind,
        /// Id of the record that may be left at the driver; empty: none.
        orphan: Arc<str>,
    },
}

impl HostEvent {
    /// The word for the reason of the event.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Discovered => "Discovered",
            Self::Registered => "Registered",
            Self::BmcAccessValidated => "BMCAccessValidated",
            Self::BmcCredentialError { .. } => "BMCCredentialError",
            Self::ProfileSet { .. } => "ProfileSet",
            Self::UpdateHardwareDetails => "UpdateHardwareDetails",
            Self::RemoveAnnotation(_) => "RemoveAnnotation",
            Self::InvalidAnnotationValue => "InvalidAnnotationValue",
            Self::InspectionStarted => "InspectionStarted",
            Self::InspectionComplete => "InspectionComplete",
            Self::InspectionSkipped => "InspectionSkipped",
            Self::ProvisioningStarted => "ProvisioningStarted",
            Self::ProvisioningComplete => "ProvisioningComplete",
            Self::DeprovisioningStarted => "DeprovisioningStarted",
            Self::DeprovisioningComplete => "DeprovisioningComplete",
            Self::PowerOn => "PowerOn",
            Self::PowerOff => "PowerOff",
            Self::Failed { kind, .. } => failure(*kind),
            Self::ImageAuth(PullSecretProblem::Format) => "ImageAuthFormatUnsupported",
            Self::ImageAuth(PullSecretProblem::Content) => "ImageAuthParseError",
            Self::DeletionSkipped { .. } => "DeletionSkipped",
        }
    }

    /// Returns whether the event is shown as a warning. In the contract of Metal3, failures of a host are not.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::ImageAuth(_) | Self::DeletionSkipped { .. })
    }
}

fn failure(kind: HostErrorKind) -> &'static str {
    match kind {
        HostErrorKind::Registration => "RegistrationError",
        HostErrorKind::Inspection => "InspectionError",
        HostErrorKind::Preparation => "PreparationError",
        HostErrorKind::Provisioning => "ProvisioningError",
        HostErrorKind::ProvisionedRegistration => "ProvisionedRegistrationError",
        HostErrorKind::PowerManagement => "PowerManagementError",
        HostErrorKind::Servicing => "ServicingError",
        HostErrorKind::Detach => "DetachError",
    }
}

/// Counter to raise (host reference 1.21).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostMetric {
    /// A state was left for another.
    StateChange {
        /// State that was left.
        from: HostState,
        /// State that was entered.
        to: HostState,
    },
    /// An operation that fills a state ended.
    OperationEnded {
        /// Operation.
        operation: OperationKind,
        /// Its duration.
        took: Duration,
    },
    /// A failure was recorded.
    Error(HostErrorKind),
    /// A host was switched on or off.
    PowerChange {
        /// Whether it was switched on.
        on: bool,
    },
    /// A host that would enter this state waits for a slot.
    Delayed(HostState),
    /// A driver was told about a host.
    RegistrationRequired,
    /// A host without BMC was seen.
    Unmanaged,
    /// The secret of a host does not exist.
    CredentialsMissing,
    /// The login of a host is incomplete.
    CredentialsInvalid,
    /// The secret of a host could not be read.
    CredentialsUnhandled,
    /// A new login worked.
    CredentialsUpdated,
    /// A login did not give access.
    NoManagementAccess,
    /// A host waits for its ramdisk image.
    WaitingForRamdisk,
    /// Deploy data could not be read.
    DeployDataError,
    /// A host is deleted although deprovisioning failed.
    DeletedWithoutDeprovisioning,
    /// A host is deleted although its power-off failed.
    DeletedWithoutPowerOff,
    /// A backend was not ready for a host.
    DriverNotReady,
    /// A detached host holds its deletion.
    DeletionHeld,
}

/// Change of a companion record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompanionChange {
    /// Store the inventory, in place of an earlier one.
    StoreHardwareData(Arc<HostInventory>),
    /// Make the records for firmware wishes, and own the update policy, where they are missing.
    MakeFirmwareRecords,
    /// Record that the wished firmware versions were begun.
    FirmwareUpdatesBegun,
    /// Record that the wished firmware versions have to be begun anew.
    FirmwareUpdatesForgotten,
    /// Record the failure of the data image.
    DataImageFailed(Arc<str>),
    /// Claim the secret with network data.
    ClaimNetworkSecret(Arc<str>),
    /// Give up every claim of the host: its secrets, its ramdisk image, its inventory.
    ReleaseAll,
}
