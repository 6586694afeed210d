//! Stages of a network boot, as far as a service of the mesh can prove them.

/// Stage of a network boot, in the order in which a boot passes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BootStage {
    /// Boot data and configuration were accepted.
    Prepared,
    /// The power-on was accepted.
    PowerAccepted,
    /// The node is on.
    PowerOn,
    /// The node asked for its boot script. Firmware, DHCP and TFTP lie before it.
    ScriptRequested,
    /// The node reported the wanted boot. Kernel, root file system and identity lie before it.
    Reported,
    /// The node is configured.
    Configured,
}

impl BootStage {
    /// Returns the stage as one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::PowerAccepted => "power_accepted",
            Self::PowerOn => "power_on",
            Self::ScriptRequested => "script_requested",
            Self::Reported => "reported",
            Self::Configured => "configured",
        }
    }

    /// Returns the stage that was passed before this one is missing; `None`: this is the first one. Without a source of
    /// boot scripts their stage cannot be proved, and the one before it counts.
    pub(super) fn before(self, scripts_are_known: bool) -> Option<Self> {
        match self {
            Self::Prepared => None,
            Self::PowerAccepted => Some(Self::Prepared),
            Self::PowerOn => Some(Self::PowerAccepted),
            Self::ScriptRequested => Some(Self::PowerOn),
            Self::Reported if scripts_are_known => Some(Self::ScriptRequested),
            Self::Reported => Some(Self::PowerOn),
            Self::Configured => Some(Self::Reported),
        }
    }
}
