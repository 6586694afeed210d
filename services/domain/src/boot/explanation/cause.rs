//! Causes, their classes and outcomes. Class, outcome and texts of each cause are its row in [`super::table`].

/// Cause that keeps a node or a session from being as wanted. The word is the same in answers, logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CauseReason {
    /// The node is as wanted.
    AsWanted,
    /// No power reading of the current generation has arrived.
    PowerReadingAwaited,
    /// A power action is due and nothing stands in its way.
    PowerActionDue,
    /// The node was switched on, and its power is awaited.
    PowerOnAwaited,
    /// The node was asked to shut down, and is still on within its time.
    PowerOffAwaited,
    /// The node is on and has time left to report its boot; no source tells how far it is.
    BootAwaited,
    /// The node is on, has not asked for its boot script yet, and has time left.
    BootScriptAwaited,
    /// The node has fetched its boot script and has time left to report.
    BootReportAwaited,
    /// No configuration reading of the current generation has arrived.
    ConfigurationReadingAwaited,
    /// The configuration is under way.
    ConfigurationPending,
    /// A staged state waits to be applied.
    StageWaiting,
    /// The component is not enabled, and nothing had failed before.
    NotEnabled,
    /// The component is not enabled, and no session has set a state for it.
    NothingWanted,
    /// The inventory locks the node against power operations.
    NodeLocked,
    /// The power was turned more often than one desired state can explain.
    PowerContested,
    /// The power of a node that was as wanted changed without an action of Reveille.
    PowerChangedOutside,
    /// The inventory does not list the node.
    UnknownToInventory,
    /// The inventory does not allow the use of the node.
    DisabledInInventory,
    /// There is no component of that id.
    ComponentUnknown,
    /// The inventory has no group or role of that name.
    GroupUnknown,
    /// The limit of the session, or a later boot set, leaves the node out.
    NotSelected,
    /// The node belongs to another tenant than the session.
    ForeignTenant,
    /// The architecture of the node differs from that of its boot set.
    ArchitectureMismatch,
    /// A peer does not answer, or refuses this kind of call to everybody.
    UpstreamUnavailable,
    /// The power service knows the node and not its power.
    PowerStateUnknown,
    /// The power service shows the node as off although the node has just reported its boot.
    PowerStateMismatch,
    /// The power service leaves the node out of its answers.
    UnknownToPower,
    /// The configuration service leaves the node out of its answers.
    UnknownToConfiguration,
    /// The power service refused to switch the node on.
    PowerOnRefused,
    /// The power-on was accepted, and the node never came on.
    PowerOnTimedOut,
    /// The power service refused to switch the node off.
    PowerOffRefused,
    /// The node is still on after it was switched off.
    PowerOffTimedOut,
    /// Boot data or configuration of the power-on were refused.
    BootDataRefused,
    /// The node was on and never asked for its boot script: DHCP, TFTP, cabling or firmware.
    BootScriptNotRequested,
    /// The node asks for its boot script again and again: kernel or initrd do not arrive.
    ArtifactFetchFailing,
    /// The node fetched its boot script and never reported its boot.
    ReportMissing,
    /// The node was on and never reported its boot; no source tells whether it fetched its script.
    BootUnreported,
    /// The node reported another boot than the wanted one.
    OtherBootReported,
    /// The node reported an earlier boot: it booted from data of before.
    EarlierBootReported,
    /// The component was given up, and its history no longer tells why.
    RetriesExhausted,
    /// The node has booted, and the configuration service has not begun.
    ConfigurationNotStarted,
    /// The configuration service refuses the wanted configuration.
    ConfigurationRefused,
    /// The configuration service gave up on the node.
    ConfigurationFailed,
    /// The configuration service uses an unknown word for the progress.
    ConfigurationUnknown,
    /// The members of the session are about to be selected.
    SessionSetupDue,
    /// Members of the session are still at work.
    SessionUnderWay,
    /// The session could not do its work.
    SessionFailed,
    /// The session selected no node.
    NothingToActOn,
    /// The session is over and some of its nodes failed.
    MembersFailed,
    /// The session is over and its nodes are as wanted.
    SessionAsWanted,
    /// The session is over because others took over all of its nodes.
    SessionSuperseded,
    /// Another session or an operator took the node from its session.
    Superseded,
    /// The session of the node, or the session itself, is paused.
    SessionPaused,
    /// The session rolls out, and has not opened the batch of the node.
    BatchAwaited,
}

/// Kind of people or systems that a cause is a matter of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CauseClass {
    /// Nothing is wrong: time passes.
    Waiting,
    /// A person decided it, or has to.
    Operator,
    /// The node belongs to another tenant.
    Tenant,
    /// A system that Reveille calls.
    Upstream,
    /// The machine or its BMC.
    Hardware,
    /// The network of the node.
    Network,
    /// The service of boot scripts, or the reporter of the node.
    BootService,
    /// The image.
    Image,
    /// The configuration service.
    Configuration,
}

impl CauseClass {
    /// Returns the class as one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Operator => "operator",
            Self::Tenant => "tenant",
            Self::Upstream => "upstream",
            Self::Hardware => "hardware",
            Self::Network => "network",
            Self::BootService => "boot_service",
            Self::Image => "image",
            Self::Configuration => "configuration",
        }
    }
}

/// Outcome so far, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CauseOutcome {
    /// The node or the session is as wanted.
    AsWanted,
    /// Work is under way and within its time.
    Progressing,
    /// The session leaves the node out.
    LeftOut,
    /// The work waits and goes on by itself.
    Waiting,
    /// Nothing goes on until a person acts.
    Held,
    /// An attempt failed.
    Failed,
}

impl CauseOutcome {
    /// Returns the outcome as one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::AsWanted => "as_wanted",
            Self::Progressing => "progressing",
            Self::LeftOut => "left_out",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Failed => "failed",
        }
    }
}

impl CauseReason {
    /// Every cause, in the order of the table.
    pub const ALL: [Self; 54] = [
        Self::AsWanted,
        Self::PowerReadingAwaited,
        Self::PowerActionDue,
        Self::PowerOnAwaited,
        Self::PowerOffAwaited,
        Self::BootAwaited,
        Self::BootScriptAwaited,
        Self::BootReportAwaited,
        Self::ConfigurationReadingAwaited,
        Self::ConfigurationPending,
        Self::StageWaiting,
        Self::NotEnabled,
        Self::NothingWanted,
        Self::NodeLocked,
        Self::PowerContested,
        Self::PowerChangedOutside,
        Self::UnknownToInventory,
        Self::DisabledInInventory,
        Self::ComponentUnknown,
        Self::GroupUnknown,
        Self::NotSelected,
        Self::ForeignTenant,
        Self::ArchitectureMismatch,
        Self::UpstreamUnavailable,
        Self::PowerStateUnknown,
        Self::PowerStateMismatch,
        Self::UnknownToPower,
        Self::UnknownToConfiguration,
        Self::PowerOnRefused,
        Self::PowerOnTimedOut,
        Self::PowerOffRefused,
        Self::PowerOffTimedOut,
        Self::BootDataRefused,
        Self::BootScriptNotRequested,
        Self::ArtifactFetchFailing,
        Self::ReportMissing,
        Self::BootUnreported,
        Self::OtherBootReported,
        Self::EarlierBootReported,
        Self::RetriesExhausted,
        Self::ConfigurationNotStarted,
        Self::ConfigurationRefused,
        Self::ConfigurationFailed,
        Self::ConfigurationUnknown,
        Self::SessionSetupDue,
        Self::SessionUnderWay,
        Self::SessionFailed,
        Self::NothingToActOn,
        Self::MembersFailed,
        Self::SessionAsWanted,
        Self::SessionSuperseded,
        Self::Superseded,
        Self::SessionPaused,
        Self::BatchAwaited,
    ];

    /// Returns the cause as one word.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    /// Returns the class of the cause.
    pub fn class(self) -> CauseClass {
        self.row().class
    }

    /// Returns the outcome of a node or session with this cause.
    pub fn outcome(self) -> CauseOutcome {
        self.row().outcome
    }
}
