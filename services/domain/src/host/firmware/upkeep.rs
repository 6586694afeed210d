//! Times at which the firmware of a host is read again (host reference 1.22).

use std::time::Duration;

use crate::core::time::Timestamp;

/// Time between two readings at rest.
const AT_REST: Duration = Duration::from_secs(5 * 60);

/// Time between two readings while a wish is not fulfilled.
const WHILE_CHANGED: Duration = Duration::from_secs(60);

/// Time after a reading that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(30);

/// Shortest time between two readings: the records tell times in whole seconds.
const SHORTEST: Duration = Duration::from_secs(2);

/// Facts on which the time of the next reading depends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FirmwareUpkeep {
    /// Whether the wishes were judged in their present generation.
    pub is_judged: bool,
    /// Whether a valid wish differs from the present state.
    pub is_changed: bool,
    /// Time of the reading on record.
    pub recorded_at: Timestamp,
    /// Time of the last end of a preparation or servicing.
    pub changed_at: Option<Timestamp>,
    /// Time of the last attempt to read; `None`: none was made lately.
    pub tried_at: Option<Timestamp>,
    /// Whether that attempt failed.
    pub has_failed: bool,
}

/// Returns the time of the next reading; one that is not later than now is due.
pub fn next_reading(facts: FirmwareUpkeep) -> Timestamp {
    let is_outdated = facts.changed_at.is_some_and(|changed| facts.recorded_at <= changed);
    let pause = if facts.has_failed {
        AFTER_FAILURE
    } else if !facts.is_judged || is_outdated {
        SHORTEST
    } else if facts.is_changed {
        WHILE_CHANGED
    } else {
        AT_REST
    };
    let last = facts.tried_at.unwrap_or(if facts.is_judged { facts.recorded_at } else { Timestamp(0) });
    last.plus(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn firmware_is_read_the_sooner_the_more_depends_on_it() {
        let at = |seconds: i64| Timestamp(seconds * 1000);
        let rest = FirmwareUpkeep { is_judged: true, recorded_at: at(100), ..FirmwareUpkeep::default() };
        for (facts, expected) in [
            (FirmwareUpkeep { is_judged: false, ..rest }, 2),
            (rest, 400),
            (FirmwareUpkeep { tried_at: Some(at(300)), ..rest }, 600),
            (FirmwareUpkeep { is_changed: true, ..rest }, 160),
            (FirmwareUpkeep { changed_at: Some(at(100)), tried_at: Some(at(200)), ..rest }, 202),
            (FirmwareUpkeep { changed_at: Some(at(99)), ..rest }, 400),
            (FirmwareUpkeep { is_judged: false, tried_at: Some(at(200)), has_failed: true, ..rest }, 230),
        ] {
            assert_eq!(next_reading(facts), at(expected), "{facts:?}");
        }
    }
}
