//! Causes of boots and sessions. Class, outcome and texts of each cause are its row in [`super::table`].

use crate::core::explanation::{CauseClass, CauseOutcome};

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
    /// A power transition holds the node, and its time is not over.
    TransitionAwaited,
    /// A power transition holds the node, and the power service does not end it.
    TransitionOverdue,
    /// A power transition that an operator has given up still holds the node at the power service.
    ReservationKept,
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

impl CauseReason {
    /// Every cause, in the order of the table.
    pub const ALL: [Self; 57] = [
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
        Self::TransitionAwaited,
        Self::TransitionOverdue,
        Self::ReservationKept,
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
