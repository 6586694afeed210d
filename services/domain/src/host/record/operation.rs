//! Kinds of operations that a driver carries out.

/// Kind of an operation of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// Gets to know the host and its login.
    Register,
    /// Collects the inventory.
    Inspect,
    /// Applies RAID and firmware settings.
    Prepare,
    /// Changes firmware of a running host.
    Service,
    /// Puts an image on the host.
    Provision,
    /// Takes an installed host over.
    Adopt,
    /// Removes the image.
    Deprovision,
    /// Switches the power on.
    PowerOn,
    /// Switches the power off, or reboots a host that may never be off.
    PowerOff,
    /// Lets go of the host and leaves it running.
    Detach,
    /// Forgets the host.
    Delete,
    /// Inserts a data image.
    AttachDataImage,
    /// Ejects the data image.
    DetachDataImage,
}

impl OperationKind {
    /// Every operation.
    pub const ALL: [Self; 13] = [
        Self::Register,
        Self::Inspect,
        Self::Prepare,
        Self::Service,
        Self::Provision,
        Self::Adopt,
        Self::Deprovision,
        Self::PowerOn,
        Self::PowerOff,
        Self::Detach,
        Self::Delete,
        Self::AttachDataImage,
        Self::DetachDataImage,
    ];

    /// Returns the operation of that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    /// Returns whether the backend works on the host meanwhile, so that it needs a slot.
    pub fn needs_slot(self) -> bool {
        matches!(self, Self::Inspect | Self::Provision | Self::Deprovision)
    }

    /// Returns whether the operation began because of a look at the power of the host.
    pub(crate) fn follows_power(self) -> bool {
        matches!(
            self,
            Self::PowerOn | Self::PowerOff | Self::Service | Self::AttachDataImage | Self::DetachDataImage
        )
    }

    /// The word in histories, metrics and logs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Inspect => "inspect",
            Self::Prepare => "prepare",
            Self::Service => "service",
            Self::Provision => "provision",
            Self::Adopt => "adopt",
            Self::Deprovision => "deprovision",
            Self::PowerOn => "power_on",
            Self::PowerOff => "power_off",
            Self::Detach => "detach",
            Self::Delete => "delete",
            Self::AttachDataImage => "attach_data_image",
            Self::DetachDataImage => "detach_data_image",
        }
    }
}
