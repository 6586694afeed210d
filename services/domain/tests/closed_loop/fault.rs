//! What can be wrong with a node or with what the upstreams say about it.

/// The one thing that is wrong with a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    None,
    /// Never comes up.
    StuckOff,
    /// Does not shut down when asked.
    IgnoresSoftOff,
    /// Neither that, nor at the first cut.
    IgnoresFirstForceOff,
    /// Nothing takes its power away.
    NeverOff,
    /// Boots and says nothing.
    NeverReports,
    /// The first boot hangs.
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

    /// Whether no number of attempts helps.
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

    /// Whether a node with this fault may fail when it is to be off (`off`) or to run something.
    pub(crate) fn warrants_failure(self, off: bool) -> bool {
        self == Self::NeverOff || (self.defeats() && !off)
    }
}
