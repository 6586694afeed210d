//! The power transitions that were accepted, so that a caller whose answer got lost can find out.

use std::{collections::VecDeque, sync::Arc, time::SystemTime};

use crate::node::PowerCommand;

/// How many members all kept transitions may have together. Ten transitions of the largest fleets, or a day of small
/// ones: whoever lost an answer asks within seconds.
const MOST_MEMBERS: usize = 1_000_000;

/// A transition that was accepted.
#[derive(Clone, Debug)]
pub(crate) struct Transition {
    pub(crate) id: String,
    pub(crate) command: PowerCommand,
    pub(crate) members: Vec<Arc<str>>,
    pub(crate) created_at: SystemTime,
}

/// The latest transitions, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Transitions {
    kept: VecDeque<Transition>,
    members: usize,
}

impl Transitions {
    /// Keeps a transition and forgets the oldest that are one too many.
    pub(crate) fn push(&mut self, transition: Transition) {
        self.members += transition.members.len();
        self.kept.push_back(transition);
        while self.members > MOST_MEMBERS && self.kept.len() > 1 {
            let oldest = self.kept.pop_front();
            self.members -= oldest.map_or(0, |oldest| oldest.members.len());
        }
    }

    /// Those accepted at `since` or later, oldest first.
    pub(crate) fn since(&self, since: SystemTime) -> Vec<Transition> {
        self.kept.iter().filter(|transition| transition.created_at >= since).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn transition(second: u64, members: usize) -> Transition {
        Transition {
            id: format!("t{second}"),
            command: PowerCommand::On,
            members: vec!["x1000c0s0b0n0".into(); members],
            created_at: SystemTime::UNIX_EPOCH + Duration::from_secs(second),
        }
    }

    fn ids(transitions: &Transitions, since: u64) -> String {
        let found = transitions.since(SystemTime::UNIX_EPOCH + Duration::from_secs(since));
        found.into_iter().map(|transition| transition.id).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn finds_what_was_accepted_since_a_time() {
        let mut transitions = Transitions::default();
        (1..=4).for_each(|second| transitions.push(transition(second, 2)));
        assert_eq!([0, 3, 5].map(|since| ids(&transitions, since)), ["t1 t2 t3 t4", "t3 t4", ""]);
    }

    #[test]
    fn forgets_the_oldest_but_never_the_latest() {
        let mut transitions = Transitions::default();
        (1..=3).for_each(|second| transitions.push(transition(second, MOST_MEMBERS / 2)));
        assert_eq!(ids(&transitions, 0), "t2 t3");
        transitions.push(transition(4, MOST_MEMBERS + 1));
        assert_eq!(ids(&transitions, 0), "t4");
    }
}
