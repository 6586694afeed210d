/// Rule that decided where a component stands. The word is the same in logs, metrics and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The component is not enabled, so nothing is decided about it.
    NotEnabled,
    /// No power reading of this generation yet.
    AwaitingPower,
    /// The answer depends on the configuration and there is no reading of this generation yet.
    AwaitingConfiguration,
    /// The power upstream does not know the node's power state: nothing changes but the error text.
    PowerUndefined,
    /// The power upstream left the node out: held until the upstream lists it again.
    PowerMissing,
    /// The configuration upstream left the node out: held until the upstream lists it again.
    ConfigurationMissing,
    /// Off, although the node has just reported the boot of its last power-on: judged again later.
    OffAgainstReport,
    /// Off and no kernel wanted: finished (row 1).
    OffAsWanted,
    /// Still off although it was switched on long enough ago: to be switched on again (row 2).
    PowerOnWithoutEffect,
    /// Off, switched on a moment ago: its power is awaited (row 3).
    PowerOnAwaited,
    /// Off and a kernel wanted: to be switched on (row 3).
    PowerOnNeeded,
    /// On and no kernel wanted: to be switched off (row 4).
    PowerOffNeeded,
    /// Booted as wanted, but the upstream works towards another configuration (row 5).
    ConfigurationDiffers,
    /// Booted as wanted and no configuration wanted: finished (row 6).
    Booted,
    /// Booted and configured as wanted: finished (row 7).
    Configured,
    /// Booted as wanted, configuration under way (row 8).
    ConfigurationPending,
    /// Booted as wanted, and the upstream gives no status of the configuration yet: awaited.
    ConfigurationSilent,
    /// Booted as wanted, but the configuration failed: given up (row 9).
    ConfigurationFailed,
    /// Booted as wanted, but the upstream uses an unknown word for the configuration: given up (row 10).
    ConfigurationUnknown,
    /// On, switched on a moment ago: its report is awaited (row 11).
    BootAwaited,
    /// On, but not booted as wanted: to be switched off first (row 12).
    RebootNeeded,
    /// The power was switched off and on in turn too often for one wish: held until there is a new one.
    TurnedTooOften,
    /// No attempt is left for the action that would come next: given up.
    RetriesExhausted,
    /// Failed before: stays so until an operator or a session enables the component again.
    AlreadyFailed,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 24] = [
        Self::NotEnabled,
        Self::AwaitingPower,
        Self::AwaitingConfiguration,
        Self::PowerUndefined,
        Self::PowerMissing,
        Self::ConfigurationMissing,
        Self::OffAgainstReport,
        Self::OffAsWanted,
        Self::PowerOnWithoutEffect,
        Self::PowerOnAwaited,
        Self::PowerOnNeeded,
        Self::PowerOffNeeded,
        Self::ConfigurationDiffers,
        Self::Booted,
        Self::Configured,
        Self::ConfigurationPending,
        Self::ConfigurationSilent,
        Self::ConfigurationFailed,
        Self::ConfigurationUnknown,
        Self::BootAwaited,
        Self::RebootNeeded,
        Self::TurnedTooOften,
        Self::RetriesExhausted,
        Self::AlreadyFailed,
    ];

    /// Returns the reason with that word; `None`: there is none in this version.
    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }

    /// Returns the reason as one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotEnabled => "not_enabled",
            Self::AwaitingPower => "awaiting_power",
            Self::AwaitingConfiguration => "awaiting_configuration",
            Self::PowerUndefined => "power_undefined",
            Self::PowerMissing => "power_missing",
            Self::ConfigurationMissing => "configuration_missing",
            Self::OffAgainstReport => "off_against_report",
            Self::OffAsWanted => "off_as_wanted",
            Self::PowerOnWithoutEffect => "power_on_without_effect",
            Self::PowerOnAwaited => "power_on_awaited",
            Self::PowerOnNeeded => "power_on_needed",
            Self::PowerOffNeeded => "power_off_needed",
            Self::ConfigurationDiffers => "configuration_differs",
            Self::Booted => "booted",
            Self::Configured => "configured",
            Self::ConfigurationPending => "configuration_pending",
            Self::ConfigurationSilent => "configuration_silent",
            Self::ConfigurationFailed => "configuration_failed",
            Self::ConfigurationUnknown => "configuration_unknown",
            Self::BootAwaited => "boot_awaited",
            Self::RebootNeeded => "reboot_needed",
            Self::TurnedTooOften => "turned_too_often",
            Self::RetriesExhausted => "retries_exhausted",
            Self::AlreadyFailed => "already_failed",
        }
    }

    /// Returns whether the node is as wanted.
    pub(crate) fn is_success(self) -> bool {
        matches!(self, Self::OffAsWanted | Self::Booted | Self::Configured)
    }

    /// Returns whether a believable reading is missing, so that nothing can be decided.
    pub(crate) fn is_waiting(self) -> bool {
        matches!(
            self,
            Self::NotEnabled
                | Self::AwaitingPower
                | Self::AwaitingConfiguration
                | Self::PowerUndefined
                | Self::OffAgainstReport
        )
    }

    /// Returns whether evidence is missing, so that nothing but the wait for it was decided.
    pub(super) fn awaits_evidence(self) -> bool {
        self.is_waiting() || self.is_held()
    }

    /// Returns whether the component is held because an upstream left it out.
    pub(crate) fn is_held(self) -> bool {
        matches!(self, Self::PowerMissing | Self::ConfigurationMissing)
    }
}
