//! Which finished transitions are kept for people to see.

use std::collections::VecDeque;

use proto::power::Transition;

/// Finished transitions that are kept.
const MOST_TRANSITIONS: usize = 1000;

/// Members that all of them may have together, about ten megabytes. The registry counts attempts, so what is
/// forgotten here is not done again.
const MOST_MEMBERS: usize = 100_000;

/// The finished transitions, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    kept: VecDeque<(String, usize)>,
    members: usize,
}

impl Finished {
    /// Adds a transition that was finished.
    pub(crate) fn add(&mut self, transition: &Transition) {
        self.members += transition.members.len();
        self.kept.push_back((transition.id.clone(), transition.members.len()));
    }

    /// Takes out the oldest ones that are too many.
    pub(crate) fn surplus(&mut self) -> Vec<String> {
        let mut surplus = Vec::new();
        while self.kept.len() > MOST_TRANSITIONS || self.members > MOST_MEMBERS {
            let Some((id, members)) = self.kept.pop_front() else { break };
            self.members -= members;
            surplus.push(id);
        }
        surplus
    }
}

#[cfg(test)]
mod tests {
    use proto::power::TransitionMember;

    use super::*;

    fn surplus_of(transitions: usize, members: usize) -> usize {
        let mut finished = Finished::default();
        let members = vec![TransitionMember::default(); members];
        for number in 0..transitions {
            finished.add(&Transition {
                id: number.to_string(),
                members: members.clone(),
                ..Default::default()
            });
        }
        let surplus = finished.surplus();
        assert_eq!(surplus, (0..surplus.len()).map(|number| number.to_string()).collect::<Vec<_>>());
        surplus.len()
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let rows = [((1000, 1), 0), ((1003, 1), 3), ((40, 2500), 0), ((41, 2500), 1)];
        for ((transitions, members), surplus) in rows {
            assert_eq!(surplus_of(transitions, members), surplus, "{transitions} of {members}");
        }
    }
}
