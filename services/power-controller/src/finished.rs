//! Which finished transitions are kept for people to see.

use std::collections::{HashSet, VecDeque};

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
    ids: HashSet<String>,
    members: usize,
}

impl Finished {
    /// Adds a transition that was finished; false if that was known already.
    pub(crate) fn add(&mut self, transition: &Transition) -> bool {
        let new = self.ids.insert(transition.id.clone());
        if new {
            self.members += transition.members.len();
            self.kept.push_back((transition.id.clone(), transition.members.len()));
        }
        new
    }

    /// Another replica has taken it out.
    pub(crate) fn remove(&mut self, id: &str) {
        if self.ids.remove(id)
            && let Some(place) = self.kept.iter().position(|(kept, _)| kept == id)
            && let Some((_, members)) = self.kept.remove(place)
        {
            self.members -= members;
        }
    }

    /// Takes out the oldest ones that are too many.
    pub(crate) fn surplus(&mut self) -> Vec<String> {
        let mut surplus = Vec::new();
        while self.kept.len() > MOST_TRANSITIONS || self.members > MOST_MEMBERS {
            let Some((id, members)) = self.kept.pop_front() else { break };
            self.members -= members;
            self.ids.remove(&id);
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
            let transition =
                Transition { id: number.to_string(), members: members.clone(), ..Default::default() };
            assert!(finished.add(&transition) && !finished.add(&transition), "it is known then");
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

    #[test]
    fn what_another_has_taken_out_does_not_count() {
        let mut finished = Finished::default();
        let add = |finished: &mut Finished, n: usize| {
            finished.add(&Transition { id: n.to_string(), ..Default::default() })
        };
        (0..=MOST_TRANSITIONS).for_each(|n| assert!(add(&mut finished, n)));
        finished.remove("1");
        finished.remove("stranger");
        assert!(finished.surplus().is_empty());
        assert!(add(&mut finished, 1));
        assert_eq!(finished.surplus(), ["0"]);
    }
}
