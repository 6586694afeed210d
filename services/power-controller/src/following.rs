//! Keeps the transitions that the upstream works on, and the time of the next poll of each.
//!
//! Large power operations are many transitions sent at the same time, and nodes with the same action at the same time
//! are ready at about the same time. So these transitions are polled in turn, which finds the first results as soon as
//! polling each of them all the time, at the cost of polling one. When one transition reports its first result, or has
//! ended, the transitions sent with it are polled too.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chassis::mesh::time;
use domain::{
    boot::component::Action,
    core::{looks, time::Timestamp},
};
use parking_lot::Mutex;
use proto::power::Transition;
use tokio::time::Instant;

use crate::convert;

/// Most time between polls of a transition that was withdrawn and has not ended. Its nodes continue within seconds
/// after its end.
const LEISURE: Duration = Duration::from_secs(20);

/// Followed transitions and the pace of polling them.
pub(crate) struct Following {
    /// Least time between polls, where a poll is a call.
    least: Duration,
    /// Most time until each transition is polled again.
    most: Duration,
    /// Length of the steps in which the upstream works, if it does.
    step: Option<Duration>,
    open: Mutex<HashMap<Arc<str>, Sent>>,
    /// Time of the last poll that was scheduled in turn.
    last: Mutex<Option<std::time::Instant>>,
}

/// Action of a transition, and the time at which it was sent.
struct Sent {
    action: Option<Action>,
    at: Timestamp,
}

impl Following {
    pub(crate) fn new(least: Duration, most: Duration, step: Option<Duration>) -> Self {
        Self { least, most, step, open: Mutex::default(), last: Mutex::default() }
    }

    /// Begins to follow a transition that the upstream works on.
    pub(crate) fn begin(&self, transition: &Transition) {
        self.open.lock().insert(transition.id.as_str().into(), sent(transition));
    }

    /// Stops following a transition that is over or is left to another owner.
    pub(crate) fn end(&self, id: &str) {
        self.open.lock().remove(id);
    }

    /// Returns the time of the next poll of a transition that was just polled, or has just begun.
    pub(crate) fn turn(&self, transition: &Transition, now: Timestamp) -> Instant {
        let pause = self.pause(transition, now);
        let from = Instant::now().into_std() + pause;
        let mut last = self.last.lock();
        // Only transitions whose polls fall together take turns.
        let before = last.filter(|last| *last < from + self.most);
        let turn = looks::in_turn(before, from, self.least, self.most);
        *last = Some(turn);
        turn.into()
    }

    /// Returns the time during which a transition will have no news.
    fn pause(&self, transition: &Transition, now: Timestamp) -> Duration {
        if let Some(since) = transition.withdrawn_at {
            let withdrawn = now.since(time::from_wire(since));
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

    /// Returns the transitions sent together with `transition`, and itself: they have the same action, and were sent so
    /// shortly after one another that none was polled in between.
    pub(crate) fn sent_with(&self, transition: &Transition) -> Vec<Arc<str>> {
        let Sent { action, at } = sent(transition);
        let is_together =
            |other: &Sent| other.action == action && at.since(other.at).max(other.at.since(at)) < self.least;
        let open = self.open.lock();
        open.iter().filter(|(_, other)| is_together(other)).map(|(id, _)| Arc::clone(id)).collect()
    }
}

fn sent(transition: &Transition) -> Sent {
    Sent { action: convert::action(transition), at: convert::sent_at(transition) }
}

#[cfg(test)]
mod tests {
    use proto::component::Action as Wire;

    use super::*;

    fn transition(id: &str, action: Wire, at: i64) -> Transition {
        let sent_at = Some(time::to_wire(Timestamp(at)));
        Transition { id: id.to_owned(), action: action.into(), sent_at, ..Transition::default() }
    }

    #[test]
    fn those_that_were_sent_together_belong_together_until_they_end() {
        let following = Following::new(Duration::from_secs(1), Duration::from_secs(5), None);
        let off = transition("off-1", Wire::PoweringOffGracefully, 1_000);
        for transition in [
            off.clone(),
            transition("off-2", Wire::PoweringOffGracefully, 1_999),
            transition("on", Wire::PoweringOn, 1_000),
            transition("late", Wire::PoweringOffGracefully, 2_000),
        ] {
            following.begin(&transition);
        }
        let with_off = || {
            let mut ids = following.sent_with(&off);
            ids.sort_unstable();
            ids
        };
        assert_eq!(with_off(), ["off-1", "off-2"].map(Arc::from));
        following.end("off-1");
        assert_eq!(with_off(), ["off-2"].map(Arc::from));
    }
}
