//! Kinds and reasons of the conditions of a host (host reference 1.9).

/// Statement about a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionKind {
    /// The BMC of the host is under control.
    Manageable,
    /// An image can be put on the host.
    AvailableForProvisioning,
    /// A system is installed.
    Provisioned,
    /// The host does its work.
    Ready,
    /// A step of the life of the host is under way.
    Progressing,
    /// The hardware is in order.
    Healthy,
}

impl ConditionKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Manageable,
        Self::AvailableForProvisioning,
        Self::Provisioned,
        Self::Ready,
        Self::Progressing,
        Self::Healthy,
    ];

    /// Returns the kind of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Manageable => "Manageable",
            Self::AvailableForProvisioning => "AvailableForProvisioning",
            Self::Provisioned => "Provisioned",
            Self::Ready => "Ready",
            Self::Progressing => "Progressing",
            Self::Healthy => "Healthy",
        }
    }
}

/// Reason of a condition of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the word of the contract")]
pub enum ConditionReason {
    NotManaged,
    Manageable,
    RegistrationFailed,
    PowerFailure,
    NotAvailable,
    Available,
    NotProvisioned,
    Provisioned,
    NotProgressing,
    Registering,
    Inspecting,
    Preparing,
    Provisioning,
    Deprovisioning,
    PoweringOffBeforeDelete,
    Deleting,
    Error,
    Servicing,
    Detached,
    Healthy,
    Warning,
    CriticalError,
    Unknown,
}

impl ConditionReason {
    /// Every reason.
    pub const ALL: [Self; 23] = [
        Self::NotManaged,
        Self::Manageable,
        Self::RegistrationFailed,
        Self::PowerFailure,
        Self::NotAvailable,
        Self::Available,
        Self::NotProvisioned,
        Self::Provisioned,
        Self::NotProgressing,
        Self::Registering,
        Self::Inspecting,
        Self::Preparing,
        Self::Provisioning,
        Self::Deprovisioning,
        Self::PoweringOffBeforeDelete,
        Self::Deleting,
        Self::Error,
        Self::Servicing,
        Self::Detached,
        Self::Healthy,
        Self::Warning,
        Self::CriticalError,
        Self::Unknown,
    ];

    /// Returns the reason of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    /// The word in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotManaged => "NotManaged",
            Self::Manageable => "Manageable",
            Self::RegistrationFailed => "RegistrationFailed",
            Self::PowerFailure => "PowerFailure",
            Self::NotAvailable => "NotAvailable",
            Self::Available => "Available",
            Self::NotProvisioned => "NotProvisioned",
            Self::Provisioned => "Provisioned",
            Self::NotProgressing => "NotProgressing",
            Self::Registering => "Registering",
            Self::Inspecting => "Inspecting",
            Self::Preparing => "Preparing",
            Self::Provisioning => "Provisioning",
            Self::Deprovisioning => "Deprovisioning",
            Self::PoweringOffBeforeDelete => "PoweringOffBeforeDelete",
            Self::Deleting => "Deleting",
            Self::Error => "Error",
            Self::Servicing => "Servicing",
            Self::Detached => "Detached",
            Self::Healthy => "OK",
            Self::Warning => "Warning",
            Self::CriticalError => "CriticalError",
            Self::Unknown => "Unknown",
        }
    }
}
