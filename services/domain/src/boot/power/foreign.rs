//! Transitions of the upstream that are not on record: those of other clients, and those that a database has lost.

use std::time::Duration;

use crate::{
    boot::bos::options::Options,
    core::{clock_offset::ClockOffset, time::Timestamp},
};

/// Longest time that a transition of another client is expected to take. Power services work on a node for five minutes
/// unless the client asks for another time, and prepare and clean up around that.
const EXPECTED: Duration = Duration::from_secs(5 * 60 + 30);

/// Returns the time since which a transition that has ended was created if its effect may still come. Upstreams do not
/// report when a transition ended, so it may have ended as late as it can have, and the effect has the longest time of all
/// actions (BOS reference 4, `max_power_off_wait_time`).
pub fn effect_may_come_since(options: &Options, now: Timestamp) -> Timestamp {
    now.minus(EXPECTED + options.power_off_wait())
}

/// Returns whether a transition may have been created at `since` of our clock or later. `at`: its time of creation by the
/// `clock` of the upstream, cut to `resolution`. While that clock is unknown, every transition may be as recent.
pub fn may_be_since(
    at: Timestamp,
    resolution: Duration,
    clock: Option<ClockOffset>,
    since: Timestamp,
) -> bool {
    clock.is_none_or(|clock| clock.may_be_within(at, resolution, since, Timestamp(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_732_119_000_000);

    #[test]
    fn effect_may_come_while_transition_and_shutdown_may_last() {
        for (wait, age) in [(0, 330), (300, 630), (7_200, 7_530)] {
            let options = Options { max_power_off_wait_time: wait, ..Options::default() };
            let since = effect_may_come_since(&options, NOW);
            assert_eq!(NOW.since(since), Duration::from_secs(age), "{wait} s to shut down");
        }
    }

    #[test]
    fn the_clock_of_the_upstream_says_which_transitions_are_recent() {
        let second = Duration::from_secs(1);
        let ahead = |seconds: i64| ClockOffset::measure(NOW, NOW, Timestamp(NOW.0 + seconds * 1000), second);
        let since = NOW.minus(Duration::from_secs(60));
        for (name, age, clock, expected) in [
            ("recent", 59, ahead(0), true),
            ("older", 63, ahead(0), false),
            ("cut to a second", 61, ahead(0), true),
            ("an hour ahead, recent", 59 - 3600, ahead(3600), true),
            ("an hour ahead, older", 63 - 3600, ahead(3600), false),
            ("by an unknown clock", 3600, None, true),
        ] {
            let at = Timestamp(NOW.0 - age * 1000);
            assert_eq!(may_be_since(at, second, clock, since), expected, "{name}");
        }
        let unknown = Timestamp(i64::MAX);
        assert!(may_be_since(unknown, second, ahead(0), since), "without a time of creation");
    }
}
