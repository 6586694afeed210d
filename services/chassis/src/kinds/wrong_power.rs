//! Defects of power readings that a simulation plants.

use std::{cell::RefCell, collections::BTreeMap};

use domain::boot::power::PowerObservation;
use proto::power::{PowerReading, PowerState};

use crate::simulation::PlantedDefect;

thread_local! {
    /// Last reading of each node, for one of the defects.
    static READ: RefCell<BTreeMap<String, PowerReading>> = const { RefCell::new(BTreeMap::new()) };
}

/// Returns the wrong observation of a power state, if such a defect is planted.
pub(super) fn wrong_power(state: Option<&PowerState>) -> Option<PowerObservation> {
    let reading = state.map(PowerState::reading).unwrap_or_default();
    match PlantedDefect::planted()? {
        PlantedDefect::InheritedReadings => inherited(state?),
        PlantedDefect::GuessedPower if !matches!(reading, PowerReading::On | PowerReading::Off) => {
            Some(PowerObservation::Off)
        }
        PlantedDefect::OldReadings if reading == PowerReading::On => Some(PowerObservation::On),
        PlantedDefect::OldReadings if reading == PowerReading::Off => Some(PowerObservation::Off),
        _ => None,
    }
}

/// Returns the reading of a node before it was withdrawn.
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
