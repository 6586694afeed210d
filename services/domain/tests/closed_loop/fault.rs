//! The faults of nodes and of the upstreams' answers about them.

/// Only fault of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    None,
    /// The node never boots.
    StuckOff,
    /// The node does not shut down when asked.
    IgnoresSoftOff,
    /// The node neither shuts down when asked, nor switches off at the first cut.
    IgnoresFirstForceOff,
    /// No action switches the node off.
    NeverOff,
    /// The node boots and does not report.
    NeverReports,
    /// The first boot hangs, the second is reported.
    ReportsSecondBoot,
    ConfigurationFails,
    ConfigurationOddWord,
    /// The power upstream does not answer for a while.
    PowerSilent,
    PowerUndefined,
    PowerMissing,
    ConfigurationSilent,
    ConfigurationMissing,
    /// Boot data are refused for a while.
    PreparationFails,
    /// The first power action is refused.
    PowerRefusesOnce,
    /// The power upstream takes an action, and its answer is lost.
    AnswerLost,
    /// A power action is lost on the way.
    RequestLost,
}

impl Fault {
    pub(crate) const ALL: [Self; 18] = [
        Self::None,
        Self::StuckOff,
        Self::IgnoresSoftOff,
        Self::IgnoresFirstForceOff,
        Self::NeverOff,
        Self::NeverReports,
        Self::ReportsSecondBoot,
        Self::ConfigurationFails,
        Self::ConfigurationOddWord,
        Self::PowerSilent,
        Self::PowerUndefined,
        Self::PowerMissing,
        Self::ConfigurationSilent,
        Self::ConfigurationMissing,
        Self::PreparationFails,
        Self::PowerRefusesOnce,
        Self::AnswerLost,
        Self::RequestLost,
    ];

    /// Returns whether every attempt fails.
    pub(crate) fn defeats(self) -> bool {
        matches!(
            self,
            Self::StuckOff
                | Self::NeverOff
                | Self::NeverReports
                | Self::ConfigurationFails
                | Self::ConfigurationOddWord
        )
    }

    /// Returns whether a node with this fault may fail when it is to be off (`off`) or to boot.
    pub(crate) fn warrants_failure(self, off: bool) -> bool {
        self == Self::NeverOff || (self.defeats() && !off)
    }
}
