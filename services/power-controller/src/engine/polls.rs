//! Decides when each transition that the upstream works on is polled.
//!
//! Large power operations are many transitions sent at the same time, and nodes with the same action at the same time
//! are ready at about the same time. So these transitions are polled in turn, which finds the first results as soon as
//! polling each of them all the time, at the cost of polling one. When one transition reports its first result, or has
//! ended, the transitions sent with it are polled too.

use std::time::{Duration, Instant};

use domain::{
    boot::power::transition::PowerTransition,
    core::{looks, time::Timestamp},
};

use crate::{convert, engine::PointInTime};

/// Most time between polls of a transition that was withdrawn and has not ended. Its nodes continue within seconds
/// after its end.
const LEISURE: Duration = Duration::from_secs(20);

/// Pace of the polls of transitions.
#[derive(Debug)]
pub(crate) struct PollSchedule {
    /// Least time between polls, where a poll is a call.
    least: Duration,
    /// Most time until each transition is polled again.
    most: Duration,
    /// Length of the steps in which the upstream works, if it does.
    step: Option<Duration>,
    /// Time of the last poll that was scheduled in turn.
    last: Option<Instant>,
}

impl PollSchedule {
    pub(crate) fn new(least: Duration, most: Duration, step: Option<Duration>) -> Self {
        Self { least, most, step, last: None }
    }

    /// Returns the time of the next poll of a transition that was just polled, or has just begun.
    pub(crate) fn turn(&mut self, transition: &PowerTransition, now: PointInTime) -> Instant {
        let from = now.instant + self.pause(transition, now.at);
        // Only transitions whose polls fall together take turns.
        let before = self.last.filter(|last| *last < from + self.most);
        let turn = looks::in_turn(before, from, self.least, self.most);
        self.last = Some(turn);
        turn
    }

    /// Returns the time during which a transition will have no news.
    fn pause(&self, transition: &PowerTransition, now: Timestamp) -> Duration {
        if let Some(since) = transition.withdrawn_at {
            let withdrawn = now.since(since);
            return looks::at_leisure(withdrawn, self.most, LEISURE.max(self.most));
        }
        let Some(step) = self.step else { return Duration::ZERO };
        let age = now.since(convert::begun_at(transition));
        looks::in_steps(age, step, self.least).saturating_sub(age).saturating_sub(self.least)
    }

    /// Returns how long an answer may wait to be processed together with others: no transition is polled more often.
    pub(crate) fn patience(&self) -> Duration {
        self.least
    }
}
