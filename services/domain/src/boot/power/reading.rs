//! Meaning of a power reading for a node, and the time in which newer evidence outweighs it: results of actions, and
//! reports of the node itself.

use std::time::Duration;

use crate::boot::component::{Action, Component};
use crate::core::{
    clock_offset::ClockOffset,
    time::{SKEW, Timestamp},
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
    /// The node has power, and was without it at some time after its last shutdown had begun: somebody else switched it on.
    OnAgain,
    /// The node has no power.
    Off,
    /// The node had no power at a moment that may be earlier than its last report, which shows that it ran.
    OffInDoubt,
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

    /// Returns the observation of a node that has `reported` a boot which no power-off has ended since. `newer_than`: the
    /// report that the reading is known to be [newer than](doubt_ends).
    #[must_use]
    pub fn against_report(self, reported: Option<Timestamp>, newer_than: Option<Timestamp>) -> Self {
        match self {
            Self::Off if reported > newer_than => Self::OffInDoubt,
            Self::Unknown
            | Self::Missing
            | Self::Undefined { .. }
            | Self::On
            | Self::OnAgain
            | Self::Off
            | Self::OffInDoubt => self,
        }
    }

    /// Returns the observation of `component`, which was last `seen_off` then.
    #[must_use]
    pub fn after_shutdown(self, component: &Component, seen_off: Option<SeenOff>) -> Self {
        match self {
            Self::On if seen_off.is_some_and(|seen| seen.is_since_shutdown(component)) => Self::OnAgain,
            Self::Unknown
            | Self::Missing
            | Self::Undefined { .. }
            | Self::On
            | Self::OnAgain
            | Self::Off
            | Self::OffInDoubt => self,
        }
    }

    /// Returns whether the node has power.
    pub fn is_on(&self) -> bool {
        match self {
            Self::On | Self::OnAgain => true,
            Self::Unknown | Self::Missing | Self::Undefined { .. } | Self::Off | Self::OffInDoubt => false,
        }
    }
}

/// Moment at which a node was last seen without power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenOff {
    /// Generation of the component.
    pub generation: u64,
    /// Number of power actions of that generation that had begun.
    pub begun_actions: u32,
}

impl SeenOff {
    /// Returns whether the last action on the component is a shutdown of its generation, and the node was off since that began.
    fn is_since_shutdown(self, component: &Component) -> bool {
        let is_shutdown = matches!(
            component.last_action(),
            Some(Action::PoweringOffGracefully | Action::PoweringOffForcefully)
        );
        is_shutdown
            && self.generation == component.generation
            && self.begun_actions > 0
            && self.begun_actions >= component.begun_actions()
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

/// Way in which an upstream reads the power of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadingSource {
    /// A request reads the hardware.
    Live,
    /// A request returns the last sample of the hardware.
    Sampled,
}

/// Returns whether a reading is known to be newer than a report of its node, so that "off" counts: nodes do lose power.
/// The reading was requested at `asked_at`, by our clock. `as_of`: beginning of this state by the `clock` of the
/// upstream; `None`: not said. The clock of the registry dates the report; where it is far ahead, it says nothing.
pub fn is_after_report(
    reported: Timestamp,
    asked_at: Timestamp,
    as_of: Option<Timestamp>,
    source: ReadingSource,
    clock: Option<ClockOffset>,
) -> bool {
    let began_after = as_of.is_some_and(|as_of| match clock {
        Some(clock) => clock.is_after(as_of, reported),
        None => as_of >= reported.plus(SKEW),
    });
    let longest_request = SKEW.saturating_add(SAMPLED);
    began_after || asked_at >= doubt_ends(reported, source) || reported > asked_at.plus(longest_request)
}

/// Returns the first moment at which every new reading is newer than a report. A power service shows its last sample,
/// sometimes without the time, and a power-on of a running node would prepare it for a boot that never comes.
pub fn doubt_ends(reported: Timestamp, source: ReadingSource) -> Timestamp {
    reported.plus(match source {
        ReadingSource::Live => SKEW,
        ReadingSource::Sampled => CATCH_UP,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::component::{EventStats, LastAction, view::bare};

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
    fn node_is_on_again_if_it_was_off_since_its_last_shutdown_began() {
        use PowerObservation::{Off, On, OnAgain};
        let of = |last: Action, tries: [u32; 3]| {
            let [on, asked, forced] = tries.map(Some);
            let stats = EventStats {
                power_on_attempts: on,
                power_off_graceful_attempts: asked,
                power_off_forceful_attempts: forced,
            };
            bare().with(|one| {
                one.generation = 7;
                one.power.event_stats = Some(stats);
                one.power.last_action = Some(LastAction { action: Some(last), ..LastAction::default() });
            })
        };
        let asked = || of(Action::PoweringOffGracefully, [1, 1, 0]);
        let seen = |generation, begun_actions| Some(SeenOff { generation, begun_actions });
        let rows = [
            ("never seen off", asked(), None, On, On),
            ("seen off since it was asked", asked(), seen(7, 2), On, OnAgain),
            ("seen off before it was asked", asked(), seen(7, 1), On, On),
            ("seen off in an earlier generation", asked(), seen(6, 9), On, On),
            ("forced since", of(Action::PoweringOffForcefully, [1, 1, 1]), seen(7, 2), On, On),
            (
                "seen off since it was forced",
                of(Action::PoweringOffForcefully, [1, 1, 1]),
                seen(7, 3),
                On,
                OnAgain,
            ),
            ("switched on by us", of(Action::PoweringOn, [1, 1, 0]), seen(7, 2), On, On),
            ("no action", of(Action::PoweringOffGracefully, [0, 0, 0]), seen(7, 0), On, On),
            ("off", asked(), seen(7, 2), Off, Off),
        ];
        for (name, component, seen_off, power, expected) in rows {
            assert_eq!(power.after_shutdown(&component, seen_off), expected, "{name}");
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

    #[test]
    fn off_counts_only_by_a_reading_from_after_the_report() {
        use ReadingSource::{Live, Sampled};
        let at = |ms: i64| Timestamp(NOW.0 + ms);
        let clock =
            |ahead: i64| ClockOffset::measure(NOW, NOW, Timestamp(NOW.0 + ahead), Duration::from_secs(1));
        let rows = [
            ("asked for before", -1_000, None, Live, None, false),
            ("asked for in the same moment, or so the clocks allow", 4_999, None, Live, None, false),
            ("hardware that was read later", 5_000, None, Live, None, true),
            ("sample without a time", 119_999, None, Sampled, None, false),
            ("no service samples that rarely", 120_000, None, Sampled, None, true),
            ("off since before", 60_000, Some(at(-1)), Sampled, clock(0), false),
            ("off since before, and sampled again by now", 120_000, Some(at(-1)), Sampled, clock(0), true),
            ("off since later", 3_000, Some(at(2_000)), Sampled, clock(0), true),
            (
                "off since later, by a clock that is ahead",
                3_000,
                Some(at(590_000)),
                Sampled,
                clock(600_000),
                false,
            ),
            ("off since later, or so the clocks allow", 3_000, Some(at(4_999)), Sampled, None, false),
            ("off since later, whatever the clocks", 6_000, Some(at(5_000)), Sampled, None, true),
            ("the report came while the answer was under way", -40_000, None, Sampled, None, false),
            ("the report is dated by a clock far ahead", -40_001, None, Sampled, None, true),
        ];
        for (name, asked_at, as_of, source, clock, expected) in rows {
            assert_eq!(is_after_report(NOW, at(asked_at), as_of, source, clock), expected, "{name}");
        }
    }

    #[test]
    fn only_off_is_doubted_against_a_report() {
        use PowerObservation::{Missing, Off, OffInDoubt, On, Unknown};
        let (earlier, report) = (Some(Timestamp(NOW.0 - 1)), Some(NOW));
        let rows = [
            (Off, None, None, Off),
            (Off, report, None, OffInDoubt),
            (Off, report, earlier, OffInDoubt),
            (Off, report, report, Off),
            (Off, earlier, report, Off),
            (Off, None, report, Off),
            (On, report, None, On),
            (Missing, report, None, Missing),
            (Unknown, report, None, Unknown),
        ];
        for (power, reported, newer_than, expected) in rows {
            let doubted = power.clone().against_report(reported, newer_than);
            assert_eq!(doubted, expected, "{power:?} {reported:?} {newer_than:?}");
        }
    }
}
