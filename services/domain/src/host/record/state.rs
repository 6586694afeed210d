//! States of a host, with their exact words (host reference 1.1).

/// State of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostState {
    /// New record; a first decision leaves it.
    #[default]
    Unset,
    /// Neither a BMC address nor credentials are given.
    Unmanaged,
    /// The driver gets to know the host and proves the login at its BMC.
    Registering,
    /// Hardware inventory is collected.
    Inspecting,
    /// Legacy state in stored records; continues to `Preparing` at once.
    MatchProfile,
    /// RAID, firmware settings and firmware versions are applied.
    Preparing,
    /// The host can be provisioned.
    Available,
    /// Legacy name of `Available` in stored records.
    Ready,
    /// An image or a custom procedure is put on the host.
    Provisioning,
    /// The image runs.
    Provisioned,
    /// The host was installed by other means; only its power is managed.
    ExternallyProvisioned,
    /// The image is removed and the disks are cleaned.
    Deprovisioning,
    /// Last power-off before the driver forgets the host.
    PoweringOffBeforeDelete,
    /// The driver forgets the host, and claims on other records end.
    Deleting,
}

impl HostState {
    /// Every state.
    pub const ALL: [Self; 14] = [
        Self::Unset,
        Self::Unmanaged,
        Self::Registering,
        Self::Inspecting,
        Self::MatchProfile,
        Self::Preparing,
        Self::Available,
        Self::Ready,
        Self::Provisioning,
        Self::Provisioned,
        Self::ExternallyProvisioned,
        Self::Deprovisioning,
        Self::PoweringOffBeforeDelete,
        Self::Deleting,
    ];

    /// The word in records, events and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unset => "",
            Self::Unmanaged => "unmanaged",
            Self::Registering => "registering",
            Self::Inspecting => "inspecting",
            Self::MatchProfile => "match profile",
            Self::Preparing => "preparing",
            Self::Available => "available",
            Self::Ready => "ready",
            Self::Provisioning => "provisioning",
            Self::Provisioned => "provisioned",
            Self::ExternallyProvisioned => "externally provisioned",
            Self::Deprovisioning => "deprovisioning",
            Self::PoweringOffBeforeDelete => "powering off before delete",
            Self::Deleting => "deleting",
        }
    }

    /// Returns the state of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Returns whether a host needs a slot to be in this state or to enter it.
    pub fn needs_slot(self) -> bool {
        match self {
            Self::Inspecting | Self::Provisioning | Self::Deprovisioning => true,
            Self::Unset
            | Self::Unmanaged
            | Self::Registering
            | Self::MatchProfile
            | Self::Preparing
            | Self::Available
            | Self::Ready
            | Self::Provisioned
            | Self::ExternallyProvisioned
            | Self::PoweringOffBeforeDelete
            | Self::Deleting => false,
        }
    }

    /// Returns whether an installed system runs on a host in this state.
    pub fn runs_a_system(self) -> bool {
        matches!(self, Self::Provisioned | Self::ExternallyProvisioned)
    }

    /// Returns whether a host in this state can be provisioned.
    pub fn is_available(self) -> bool {
        matches!(self, Self::Available | Self::Ready)
    }

    /// Returns whether the BMC of a host in this state is not managed yet, so that nothing needs credentials.
    pub fn is_unmanaged(self) -> bool {
        matches!(self, Self::Unset | Self::Unmanaged)
    }

    /// Returns whether the driver has to know a host in this state.
    pub fn is_registered(self) -> bool {
        !matches!(self, Self::Unset | Self::Unmanaged | Self::MatchProfile | Self::Deleting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_can_be_read_again() {
        for state in HostState::ALL {
            assert_eq!(HostState::from_word(state.word()), Some(state));
        }
        assert_eq!(HostState::from_word("Available"), None);
    }
}
