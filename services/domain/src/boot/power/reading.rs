//! Meaning of a power reading for a node, and the time in which newer evidence outweighs it: results of actions, and
//! reports of the node itself.

use std::time::Duration;

use crate::{
    boot::component::{Action, Component},
    core::{
        clock_offset::ClockOffset,
        time::{SKEW, Timestamp},
    },
};

/// An answer of the power upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PowerReading {
    /// The upstream does not answer: its earlier readings may no longer be true.
    Unknown,
    /// The node has power.
    On,
    /// The node has no power.
    Off,
    /// The node is known but its power state is not.
    Undefined,
    /// The answer left the node out.
    Missing,
}

/// Knowledge about the power of a node now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PowerObservation {
    /// No reading yet, or none since the current generation began.
    Unknown,
    /// The upstream answered and left the node out.
    Missing,
    /// The upstream has no power state for the node.
    Undefined {
        /// Explanation of the upstream; may be empty.
        error: String,
    },
    /// The node has power.
    On,
    /// The node has no power.
    Off,
}

impl PowerObservation {
    /// Returns the observation of a component by a reading: `Unknown` when the reading belongs to another generation
    /// than the component's. An error beside the reading makes it undefined.
    pub fn of(
        reading: PowerReading,
        error: &str,
        observed_generation: u64,
        component_generation: u64,
    ) -> Self {
        if observed_generation != component_generation {
            return Self::Unknown;
        }
        match reading {
            PowerReading::Unknown => Self::Unknown,
            PowerReading::Missing => Self::Missing,
            PowerReading::On if error.is_empty() => Self::On,
            PowerReading::Off if error.is_empty() => Self::Off,
            PowerReading::On | PowerReading::Off | PowerReading::Undefined => {
                Self::Undefined { error: error.to_owned() }
            }
        }
    }
}

/// The power of a node as the result of an action showed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// On or off.
    pub power: PowerReading,
    /// Time of the result.
    pub at: Timestamp,
}

/// Time for which readings may lag behind results of actions and reports of nodes. Upstreams sample hardware every half
/// minute or so. After this time readings are believed again: an upstream that only notes changes never notes a node
/// that went back between two samples.
const CATCH_UP: Duration = Duration::from_secs(120);

/// Age that readings of an upstream may have that samples its hardware: half a minute, and the difference of clocks.
pub const SAMPLED: Duration = Duration::from_secs(35);

/// Returns whether a reading is newer than the end of an action whose result the upstream did not report. The reading
/// was requested so long `after` the end; `None`: before it. `as_of`: beginning of this state by the `clock` of the
/// upstream; `None`: now.
pub fn is_newer(
    after: Option<Duration>,
    as_of: Option<Timestamp>,
    ended_at: Timestamp,
    clock: Option<ClockOffset>,
) -> bool {
    let was_later = |as_of| match clock {
        Some(clock) => clock.is_after(as_of, ended_at),
        None => as_of >= ended_at.plus(SKEW),
    };
    after.is_some_and(|after| after >= SAMPLED || as_of.is_none_or(was_later))
}

/// Returns whether a reading is older than the result of an action that was `shown`, and so says nothing about the
/// current power. `as_of`: beginning of this state by the upstream; `None`: now.
pub fn is_outdated(reading: PowerReading, as_of: Option<Timestamp>, shown: Shown, now: Timestamp) -> bool {
    let contradicts = match reading {
        PowerReading::On | PowerReading::Off => reading != shown.power,
        PowerReading::Unknown | PowerReading::Undefined | PowerReading::Missing => false,
    };
    contradicts && as_of.is_some_and(|as_of| as_of.plus(SKEW) < shown.at) && now.since(shown.at) < CATCH_UP
}

/// Time until which "off" is not believed of a node that has reported the boot that began last. A power service shows
/// its last sample, sometimes without the time, and a power-on of a running node would prepare it for a boot that never
/// comes. A sample that is taken after the report is right: nodes do lose power.
///
/// A clock of the registry that is far ahead of ours says nothing about the age of the report.
pub(crate) fn off_is_doubted_until(component: &Component, now: Timestamp) -> Option<Timestamp> {
    match component.last_action() {
        Some(Action::PoweringOffGracefully | Action::PoweringOffForcefully) => None,
        Some(_) | None => {
            let reported = component.boot_reported_at()?;
            let until = reported.plus(CATCH_UP);
            (reported <= now.plus(SKEW) && now < until).then_some(until)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    #[test]
    fn readings_count_for_their_generation_only() {
        use PowerReading::{Missing, Off, On, Undefined, Unknown};
        let undefined = |error: &str| PowerObservation::Undefined { error: error.to_owned() };
        let rows = [
            (On, "", 7, PowerObservation::On),
            (Off, "", 7, PowerObservation::Off),
            (On, "BMC timeout", 7, undefined("BMC timeout")),
            (Off, "BMC timeout", 7, undefined("BMC timeout")),
            (Undefined, "", 7, undefined("")),
            (Missing, "", 7, PowerObservation::Missing),
            (Unknown, "connection refused", 7, PowerObservation::Unknown),
            (On, "", 6, PowerObservation::Unknown),
            (Missing, "", 6, PowerObservation::Unknown),
            (Off, "", 8, PowerObservation::Unknown),
        ];
        for (reading, error, observed, expected) in rows {
            assert_eq!(PowerObservation::of(reading, error, observed, 7), expected, "{reading:?} {observed}");
        }
    }

    #[test]
    fn a_reading_counts_after_an_unknown_end_when_it_was_made_after_it() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let at = |ms: i64| Some(Timestamp(NOW.0 + ms));
        let clock =
            |ahead: i64| ClockOffset::measure(NOW, NOW, Timestamp(NOW.0 + ahead), Duration::from_secs(1));
        let rows = [
            ("asked for before", None, None, None, false),
            ("asked for after, and made now", seconds(0), None, None, true),
            ("asked for after, and sampled before", seconds(1), at(-1_000), None, false),
            ("sampled after, or so the clocks allow", seconds(9), at(4_999), None, false),
            ("sampled after", seconds(9), at(5_000), None, true),
            ("sampled after by a clock that is known", seconds(2), at(2_000), clock(0), true),
            ("sampled in the second of the end", seconds(2), at(0), clock(0), false),
            ("sampled before by a clock that is ahead", seconds(9), at(590_000), clock(600_000), false),
            ("sampled after by a clock that is behind", seconds(9), at(-590_000), clock(-600_000), true),
            ("only changes are dated", seconds(35), at(-900_000), None, true),
        ];
        for (name, after, as_of, clock, expected) in rows {
            assert_eq!(is_newer(after, as_of, NOW, clock), expected, "{name}");
        }
    }

    #[test]
    fn a_reading_from_before_a_result_is_outdated_for_a_while() {
        use PowerReading::{Missing, Off, On, Undefined};
        let shown = |age| Shown { power: On, at: Timestamp(NOW.0 - age) };
        let as_of = |age: i64| Some(Timestamp(NOW.0 - age));
        let rows = [
            ("it says the same", On, as_of(90_000), 1_000, false),
            ("it is older", Off, as_of(90_000), 1_000, true),
            ("it is older by no more than clocks differ", Off, as_of(6_000), 1_000, false),
            ("it is older by more", Off, as_of(6_001), 1_000, true),
            ("it is newer", Off, as_of(500), 1_000, false),
            ("it has no time", Off, None, 1_000, false),
            ("it is older, and should have been overtaken", Off, as_of(900_000), 119_999, true),
            ("it is older, and is all that comes", Off, as_of(900_000), 120_000, false),
            ("it says nothing", Undefined, as_of(90_000), 1_000, false),
            ("the node is left out", Missing, as_of(90_000), 1_000, false),
        ];
        for (name, reading, as_of, age, expected) in rows {
            assert_eq!(is_outdated(reading, as_of, shown(age), NOW), expected, "{name}");
        }
    }
}
