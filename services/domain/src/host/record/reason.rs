//! Reasons for which a host waits: one word each for records, events, metrics and logs.

/// Reason for which a host waits, or needs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitReason {
    /// The decision is followed by another one at once.
    Continuing,
    /// Everything is as wished.
    Settled,
    /// No BMC is given.
    Unmanaged,
    /// An annotation pauses the host.
    Paused,
    /// A session acts on the node that the host is.
    NodeInUse,
    /// The driver has let go of the host.
    Detached,
    /// A detached host holds its deletion.
    DeletionHeld,
    /// The host is gone.
    Gone,
    /// A request holds the power off.
    HeldOff,
    /// The secret with the login does not exist.
    CredentialsMissing,
    /// The login is incomplete, or the BMC address or the name of the secret is missing.
    CredentialsIncomplete,
    /// The secret with the login could not be read.
    CredentialsUnreadable,
    /// The backend of the host is not ready.
    DriverNotReady,
    /// A call is on its way, or its answer is.
    AwaitingAnswer,
    /// The power controller has to take the power call, or its answer is on its way.
    AwaitingPowerController,
    /// The driver works on the operation.
    DriverWorking,
    /// The driver could not be asked.
    DriverUnreachable,
    /// The backend is busy with the host.
    DriverBusy,
    /// The driver's answer lacks what belongs to it.
    AnswerIncomplete,
    /// A failed operation is tried again later.
    BackingOff,
    /// The host waits for its turn among those that the backends can work on at once.
    AwaitingSlot,
    /// The driver needs a ramdisk image that is not built.
    AwaitingRamdisk,
    /// The power was not read since the last change.
    AwaitingPowerReading,
    /// The firmware settings have not been read, so that a wish cannot be compared.
    AwaitingFirmwareReading,
    /// The firmware wishes have not been judged in their present generation.
    FirmwareUnjudged,
    /// The data image could not be inserted or ejected.
    DataImageFailed,
    /// User data, network data or metadata cannot be read.
    DeployDataUnreadable,
    /// The supplied inventory cannot be read.
    HardwareDetailsUnreadable,
    /// Provisioning failed as often as it may.
    RetriesExhausted,
}

impl WaitReason {
    /// Every reason.
    pub const ALL: [Self; 29] = [
        Self::Continuing,
        Self::Settled,
        Self::Unmanaged,
        Self::Paused,
        Self::NodeInUse,
        Self::Detached,
        Self::DeletionHeld,
        Self::Gone,
        Self::HeldOff,
        Self::CredentialsMissing,
        Self::CredentialsIncomplete,
        Self::CredentialsUnreadable,
        Self::DriverNotReady,
        Self::AwaitingAnswer,
        Self::AwaitingPowerController,
        Self::DriverWorking,
        Self::DriverUnreachable,
        Self::DriverBusy,
        Self::AnswerIncomplete,
        Self::BackingOff,
        Self::AwaitingSlot,
        Self::AwaitingRamdisk,
        Self::AwaitingPowerReading,
        Self::AwaitingFirmwareReading,
        Self::FirmwareUnjudged,
        Self::DataImageFailed,
        Self::DeployDataUnreadable,
        Self::HardwareDetailsUnreadable,
        Self::RetriesExhausted,
    ];

    /// Returns the reason of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    /// The word in records, events, metrics and logs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Continuing => "Continuing",
            Self::Settled => "Settled",
            Self::Unmanaged => "Unmanaged",
            Self::Paused => "Paused",
            Self::NodeInUse => "NodeInUse",
            Self::Detached => "Detached",
            Self::DeletionHeld => "DeletionHeld",
            Self::Gone => "Gone",
            Self::HeldOff => "HeldOff",
            Self::CredentialsMissing => "CredentialsMissing",
            Self::CredentialsIncomplete => "CredentialsIncomplete",
            Self::CredentialsUnreadable => "CredentialsUnreadable",
            Self::DriverNotReady => "DriverNotReady",
            Self::AwaitingAnswer => "AwaitingAnswer",
            Self::AwaitingPowerController => "AwaitingPowerController",
            Self::DriverWorking => "DriverWorking",
            Self::DriverUnreachable => "DriverUnreachable",
            Self::DriverBusy => "DriverBusy",
            Self::AnswerIncomplete => "AnswerIncomplete",
            Self::BackingOff => "BackingOff",
            Self::AwaitingSlot => "AwaitingSlot",
            Self::AwaitingRamdisk => "AwaitingRamdisk",
            Self::AwaitingPowerReading => "AwaitingPowerReading",
            Self::AwaitingFirmwareReading => "AwaitingFirmwareReading",
            Self::FirmwareUnjudged => "FirmwareUnjudged",
            Self::DataImageFailed => "DataImageFailed",
            Self::DeployDataUnreadable => "DeployDataUnreadable",
            Self::HardwareDetailsUnreadable => "HardwareDetailsUnreadable",
            Self::RetriesExhausted => "RetriesExhausted",
        }
    }
}
