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
