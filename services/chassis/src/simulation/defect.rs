//! Defects that are planted on purpose, to see that what a simulation checks finds them.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
};

use domain::boot::power::PowerObservation;
use proto::power::{PowerReading, PowerState};

/// Something that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Disks let everybody write, also who was decided upon under leases that are over.
    UnfencedWrites,
    /// Nobody can take one of the shards once it was given back.
    LostShard,
    /// Disks say that commits that failed were kept.
    FalsePromises,
    /// Readings of any generation count for every other.
    OldReadings,
    /// A node whose power is not known counts as off.
    GuessedPower,
    /// The power service does by itself what nobody asked for.
    OwnInitiative,
    /// The power service takes every call twice.
    RepeatedCalls,
    /// The power service takes calls a minute after they were made.
    LateCalls,
    /// The boot script server forgets what it takes.
    LostBootData,
    /// The configuration service forgets what it takes.
    LostConfigurations,
    /// The configuration service is never done.
    EndlessConfigurations,
    /// The power service says of one node what failed on another.
    WrongNode,
    /// The power service says of every transition that it has ended.
    EarlyEnds,
    /// The power service does not tell what it has under an id, so that ids of others are believed.
    UnreadReplies,
    /// Nobody notes what the inventory leaves out, as if absences counted that it never showed.
    HalfLists,
    /// Reports count whatever boot they come from.
    OldReports,
    /// What was read of power before a start counts after it.
    InheritedReadings,
    /// Decisions of every version of the rules count alike.
    EqualRules,
}

impl Defect {
    /// Each with its name.
    pub const ALL: [(&'static str, Self); 18] = [
        ("unfenced-writes", Self::UnfencedWrites),
        ("lost-shard", Self::LostShard),
        ("false-promises", Self::FalsePromises),
        ("old-readings", Self::OldReadings),
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
    ];

    /// Whether it is planted in this thread.
    pub fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }
}

thread_local! {
    static PLANTED: Cell<Option<Defect>> = const { Cell::new(None) };
    /// The last reading of each node, which one of the defects remembers.
    static READ: RefCell<BTreeMap<String, PowerReading>> = const { RefCell::new(BTreeMap::new()) };
}

/// From now on, what runs in this thread has that defect, or none.
pub fn plant(defect: Option<Defect>) {
    PLANTED.set(defect);
}

/// What a state of power is wrongly taken for, if that is planted.
pub(crate) fn wrong_power(state: Option<&PowerState>) -> Option<PowerObservation> {
    let reading = state.map(PowerState::reading).unwrap_or_default();
    match PLANTED.get()? {
        Defect::InheritedReadings => inherited(state?),
        Defect::GuessedPower if !matches!(reading, PowerReading::On | PowerReading::Off) => {
            Some(PowerObservation::Off)
        }
        Defect::OldReadings if reading == PowerReading::On => Some(PowerObservation::On),
        Defect::OldReadings if reading == PowerReading::Off => Some(PowerObservation::Off),
        _ => None,
    }
}

/// The reading that a node had before it was withdrawn.
fn inherited(state: &PowerState) -> Option<PowerObservation> {
    let reading = state.reading();
    if reading != PowerReading::Unspecified {
        READ.with_borrow_mut(|read| read.insert(state.id.clone(), reading));
        return None;
    }
    match READ.with_borrow(|read| read.get(&state.id).copied())? {
        PowerReading::On => Some(PowerObservation::On),
        PowerReading::Off => Some(PowerObservation::Off),
        PowerReading::Unspecified | PowerReading::Undefined | PowerReading::Missing => None,
    }
}
