//! Accepted power transitions, so that a caller can look up a transition after a lost answer.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::node::PowerCommand;

/// Most members of all kept transitions together. This is ten transitions of the largest fleets, or a day of small
/// ones: a caller looks up a lost answer within seconds.
const MOST_MEMBERS: usize = 1_000_000;

/// Deadline for a node's reaction to a command.
const PATIENCE: Duration = Duration::from_secs(60);

/// Transition that was accepted.
#[derive(Clone, Debug)]
pub(crate) struct RecordedTransition {
    pub(crate) id: String,
    pub(crate) command: PowerCommand,
    pub(crate) members: Vec<Arc<str>>,
    /// Members that did not receive the command.
    pub(crate) unreached: Vec<Arc<str>>,
    pub(crate) created_at: SystemTime,
    /// The age of the fleet at that time, which a wall clock that is set does not change.
    pub(crate) began: Duration,
}

/// Result of a transition on one of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemberResult {
    Pending,
    Succeeded,
    /// Failure at the BMC, with its reason.
    Failed(String),
    /// Failure of a node that was asked, with its reason.
    TimedOut(String),
}

impl RecordedTransition {
    /// Returns the result on a node that `is_on` or not, at an age of the fleet.
    pub(crate) fn task(&self, node: &str, is_on: bool, age: Duration) -> MemberResult {
        if self.unreached.iter().any(|one| **one == *node) {
            return MemberResult::Failed(format!("no route to the BMC of {node}"));
        }
        if is_on == (self.command == PowerCommand::On) {
            return MemberResult::Succeeded;
        }
        if age.saturating_sub(self.began) >= PATIENCE {
            MemberResult::TimedOut(format!("{node} did not react in time"))
        } else {
            MemberResult::Pending
        }
    }
}

/// The latest transitions, oldest first.
#[derive(Debug, Default)]
pub(crate) struct TransitionLog {
    kept: VecDeque<RecordedTransition>,
    members: usize,
}

impl TransitionLog {
    /// Adds a transition and drops the oldest ones beyond the limit.
    pub(crate) fn push(&mut self, transition: RecordedTransition) {
        self.members += transition.members.len();
        self.kept.push_back(transition);
        while self.members > MOST_MEMBERS && self.kept.len() > 1 {
            let oldest = self.kept.pop_front();
            self.members -= oldest.map_or(0, |oldest| oldest.members.len());
        }
    }

    /// Returns the transition of that id, if it was not dropped.
    pub(crate) fn get(&self, id: &str) -> Option<&RecordedTransition> {
        self.kept.iter().rev().find(|transition| transition.id == id)
    }

    /// Returns the transitions accepted at `since` or later, oldest first.
    pub(crate) fn since(&self, since: SystemTime) -> Vec<RecordedTransition> {
        self.kept.iter().filter(|transition| transition.created_at >= since).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn transition(second: u64, members: usize) -> RecordedTransition {
        RecordedTransition {
            id: format!("t{second}"),
            command: PowerCommand::On,
            members: vec!["x1000c0s0b0n0".into(); members],
            unreached: Vec::new(),
            created_at: SystemTime::UNIX_EPOCH + Duration::from_secs(second),
            began: Duration::from_secs(second),
        }
    }

    fn ids(transitions: &TransitionLog, since: u64) -> String {
        let found = transitions.since(SystemTime::UNIX_EPOCH + Duration::from_secs(since));
        found.into_iter().map(|transition| transition.id).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn finds_what_was_accepted_since_a_time() {
        let mut transitions = TransitionLog::default();
        (1..=4).for_each(|second| transitions.push(transition(second, 2)));
        assert_eq!([0, 3, 5].map(|since| ids(&transitions, since)), ["t1 t2 t3 t4", "t3 t4", ""]);
    }

    #[test]
    fn each_node_has_a_result_of_its_own() {
        let on = RecordedTransition { unreached: vec!["x9".into()], ..transition(10, 1) };
        let off = RecordedTransition { command: PowerCommand::SoftOff, ..transition(10, 1) };
        let failed = |why: &str| MemberResult::Failed(why.to_owned());
        for (transition, node, is_on, now, expected) in [
            (&on, "x1", true, 11, MemberResult::Succeeded),
            (&on, "x1", false, 69, MemberResult::Pending),
            (&on, "x1", false, 70, MemberResult::TimedOut("x1 did not react in time".into())),
            (&on, "x1", false, 9, MemberResult::Pending),
            (&on, "x9", false, 11, failed("no route to the BMC of x9")),
            (&on, "x9", true, 11, failed("no route to the BMC of x9")),
            (&off, "x1", false, 11, MemberResult::Succeeded),
            (&off, "x1", true, 11, MemberResult::Pending),
        ] {
            assert_eq!(
                transition.task(node, is_on, Duration::from_secs(now)),
                expected,
                "{node} {is_on} {now}"
            );
        }
    }

    #[test]
    fn forgets_the_oldest_but_never_the_latest() {
        let mut transitions = TransitionLog::default();
        (1..=3).for_each(|second| transitions.push(transition(second, MOST_MEMBERS / 2)));
        assert_eq!(ids(&transitions, 0), "t2 t3");
        transitions.push(transition(4, MOST_MEMBERS + 1));
        assert_eq!(ids(&transitions, 0), "t4");
    }
}
