//! Defects that are planted on purpose, to show that the checks of a simulation find them.

use std::cell::Cell;

/// Defect that is planted on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedDefect {
    /// Disks take every write, including those decided under leases that are over.
    UnfencedWrites,
    /// No replica can acquire a role that another one has held.
    LostRole,
    /// A role is acquired under the epoch of its last holder, and only the epoch decides whether a write counts.
    SameEpochs,
    /// Disks report failed commits as kept.
    FalsePromises,
    /// Readings of any generation count for every other.
    OldReadings,
    /// Configurations that were read for any generation count for every other.
    OldConfigurations,
    /// A node with an unknown power counts as off.
    GuessedPower,
    /// The power service acts without a request.
    OwnInitiative,
    /// The power service takes every call twice.
    RepeatedCalls,
    /// The power service takes calls a minute after they were made.
    LateCalls,
    /// The boot script server forgets the data that it takes.
    LostBootData,
    /// The configuration service forgets the configurations that it takes.
    LostConfigurations,
    /// The configuration service never finishes.
    EndlessConfigurations,
    /// The power service reports the failure of one node for another.
    WrongNode,
    /// The power service reports every transition as ended.
    EarlyEnds,
    /// The power service does not report its record under an id, so that ids of other transitions are believed.
    UnreadReplies,
    /// Omissions of the inventory are not recorded, as if absences counted that it never showed.
    HalfLists,
    /// Reports count, whichever boot they come from.
    OldReports,
    /// Readings of power from before a start count after it.
    InheritedReadings,
    /// Decisions of every version of the rules count alike.
    EqualRules,
    /// The power service does not list the transitions of other clients, so that readings of their nodes count.
    HiddenTransitions,
    /// The power controller promises to abandon a transition, and forgets it.
    ForgottenAbandonments,
    /// A loss of commits begins no other incarnation, so that records of the lost history count beside those that are left.
    ContinuedHistories,
    /// A watch that fell behind goes on without the changes that it missed.
    MissedChanges,
    /// Memory that a node was off since it was asked to shut down is lost.
    ForgottenShutdowns,
}

impl PlantedDefect {
    /// All defects, each with its name.
    pub const ALL: [(&'static str, Self); 25] = [
        ("unfenced-writes", Self::UnfencedWrites),
        ("lost-role", Self::LostRole),
        ("same-epochs", Self::SameEpochs),
        ("false-promises", Self::FalsePromises),
        ("old-readings", Self::OldReadings),
        ("old-configurations", Self::OldConfigurations),
        ("guessed-power", Self::GuessedPower),
        ("own-initiative", Self::OwnInitiative),
        ("repeated-calls", Self::RepeatedCalls),
        ("late-calls", Self::LateCalls),
        ("lost-boot-data", Self::LostBootData),
        ("lost-configurations", Self::LostConfigurations),
        ("endless-configurations", Self::EndlessConfigurations),
        ("wrong-node", Self::WrongNode),
        ("early-ends", Self::EarlyEnds),
        ("unread-replies", Self::UnreadReplies),
        ("half-lists", Self::HalfLists),
        ("old-reports", Self::OldReports),
        ("inherited-readings", Self::InheritedReadings),
        ("equal-rules", Self::EqualRules),
        ("hidden-transitions", Self::HiddenTransitions),
        ("forgotten-abandonments", Self::ForgottenAbandonments),
        ("continued-histories", Self::ContinuedHistories),
        ("missed-changes", Self::MissedChanges),
        ("forgotten-shutdowns", Self::ForgottenShutdowns),
    ];

    /// Defect that is planted in this thread.
    pub(crate) fn planted() -> Option<Self> {
        PLANTED.get()
    }

    /// Returns whether the defect is planted in this thread.
    pub fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }
}

thread_local! {
    static PLANTED: Cell<Option<PlantedDefect>> = const { Cell::new(None) };
}

/// Plants a defect in this thread, or removes it.
pub fn plant(defect: Option<PlantedDefect>) {
    PLANTED.set(defect);
}
