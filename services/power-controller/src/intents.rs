//! Attempts at power actions on components, and which of them are open.

use std::collections::HashMap;

use domain::{boot::component::Action, core::id::ComponentId};
use proto::power::Transition;

use crate::convert;

/// Single try at a power action on one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Attempt {
    pub(crate) generation: u64,
    pub(crate) action: Action,
    /// Counted from 1.
    pub(crate) number: u32,
}

/// Latest attempt on each component, so that no attempt is made twice, and none while another is open.
#[derive(Debug, Default)]
pub(crate) struct Intents {
    latest: HashMap<ComponentId, Intent>,
}

#[derive(Debug, Clone, Copy)]
struct Intent {
    attempt: Attempt,
    /// Whether its outcome is unknown.
    open: bool,
}

/// Answer to a request to open an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The attempt is open now.
    Opened,
    /// The attempt is open already, or was made before.
    Repeated,
    /// Another attempt is open.
    Blocked,
}

impl Intents {
    /// Opens an attempt, unless it was made before or another one is open.
    pub(crate) fn open(&mut self, id: &ComponentId, attempt: Attempt) -> Opening {
        match self.latest.get(id) {
            Some(latest) if latest.attempt == attempt => return Opening::Repeated,
            Some(latest) if latest.open => return Opening::Blocked,
            Some(_) | None => {}
        }
        self.latest.insert(id.clone(), Intent { attempt, open: true });
        Opening::Opened
    }

    /// Closes the attempt: its outcome is known.
    pub(crate) fn close(&mut self, id: &ComponentId, attempt: Attempt) {
        if let Some(latest) = self.latest.get_mut(id).filter(|latest| latest.attempt == attempt) {
            latest.open = false;
        }
    }

    /// Withdraws the open attempt, which may be made later.
    pub(crate) fn withdraw(&mut self, id: &ComponentId) {
        self.latest.remove(id);
    }

    /// Withdraws that attempt and no other. Returns whether it was the open one.
    pub(crate) fn withdraw_attempt(&mut self, id: &ComponentId, attempt: Attempt) -> bool {
        let is_open = self.latest.get(id).is_some_and(|latest| latest.open && latest.attempt == attempt);
        if is_open {
            self.latest.remove(id);
        }
        is_open
    }

    /// Returns whether every attempt of `transition` has a known outcome. A later attempt on the same node implies that
    /// the earlier one ended.
    pub(crate) fn are_over(&self, transition: &Transition) -> bool {
        let is_over = |(id, attempt): (ComponentId, Attempt)| {
            self.latest.get(&id).is_some_and(|latest| !latest.open || latest.attempt != attempt)
        };
        !transition.members.is_empty() && attempts(transition).all(is_over)
    }

    /// Forgets a component that is gone. An open attempt stays: it may still have its effect.
    pub(crate) fn forget(&mut self, id: &ComponentId) {
        if self.latest.get(id).is_some_and(|latest| !latest.open) {
            self.latest.remove(id);
        }
    }

    /// Recalls an attempt from the ledger. The open attempt of a component counts, or else the one recalled last.
    pub(crate) fn recall(&mut self, id: ComponentId, attempt: Attempt, open: bool) {
        if open || !self.latest.get(&id).is_some_and(|latest| latest.open) {
            self.latest.insert(id, Intent { attempt, open });
        }
    }
}

/// Returns the attempts that a transition consists of.
pub(crate) fn attempts(transition: &Transition) -> impl Iterator<Item = (ComponentId, Attempt)> {
    let action = convert::action(transition);
    transition.members.iter().filter_map(move |member| {
        let attempt = Attempt { generation: member.generation, action: action?, number: member.attempt };
        Some((ComponentId::parse(&member.id).ok()?, attempt))
    })
}

#[cfg(test)]
mod tests {
    use domain::{boot::bos::options::Options, core::time::Timestamp};

    use super::*;
    use crate::plan::batches;

    const ON: Action = Action::PoweringOn;
    const OFF: Action = Action::PoweringOffGracefully;

    fn id(text: &str) -> ComponentId {
        ComponentId::parse(text).unwrap()
    }

    fn attempt(generation: u64, action: Action, number: u32) -> Attempt {
        Attempt { generation, action, number }
    }

    #[test]
    fn an_attempt_is_opened_once_and_none_while_another_is_open() {
        use Opening::{Blocked, Opened, Repeated};
        let mut intents = Intents::default();
        let node = id("x1");
        let first = attempt(1, OFF, 1);
        assert_eq!(intents.open(&node, first), Opened);
        assert_eq!(intents.open(&node, first), Repeated);
        assert_eq!(intents.open(&node, attempt(2, ON, 1)), Blocked);
        intents.forget(&node);
        assert_eq!(intents.open(&node, attempt(2, ON, 1)), Blocked, "the component went and came back");
        intents.close(&node, attempt(2, ON, 1));
        assert_eq!(intents.open(&node, attempt(2, ON, 1)), Blocked, "that is not the one that is open");
        intents.close(&node, first);
        assert_eq!(intents.open(&node, first), Repeated, "it was made");
        assert_eq!(intents.open(&node, attempt(2, ON, 1)), Opened);
        intents.withdraw(&node);
        assert_eq!(intents.open(&node, attempt(2, ON, 1)), Opened, "it was not made");
        intents.withdraw_attempt(&node, first);
        assert_eq!(intents.open(&node, first), Blocked);
        intents.withdraw_attempt(&node, attempt(2, ON, 1));
        assert_eq!(intents.open(&node, first), Opened);
    }

    #[test]
    fn what_is_not_open_or_has_a_successor_is_over() {
        let (node, first) = (id("x1"), attempt(1, OFF, 1));
        let of = |attempt: Attempt| {
            let (_, members) = batches(vec![(node.clone(), attempt)], &Options::default(), 1).remove(0);
            convert::prepared(attempt.action, members, Timestamp(0))
        };
        let mut intents = Intents::default();
        assert!(!intents.are_over(&of(first)), "nothing is known of it");
        intents.open(&node, first);
        assert!(!intents.are_over(&of(first)));
        intents.close(&node, first);
        assert!(intents.are_over(&of(first)));
        intents.open(&node, attempt(2, ON, 1));
        assert!(intents.are_over(&of(first)), "another one came after it");
        assert!(!intents.are_over(&of(attempt(2, ON, 1))));
    }

    #[test]
    fn only_open_attempts_are_withdrawn() {
        use Opening::{Blocked, Opened, Repeated};
        let mut intents = Intents::default();
        for name in ["x1", "x2", "x3"] {
            intents.open(&id(name), attempt(1, ON, 1));
        }
        intents.close(&id("x1"), attempt(1, ON, 1));
        let withdrawn = ["x1", "x2"].map(|name| intents.withdraw_attempt(&id(name), attempt(1, ON, 1)));
        assert_eq!(withdrawn, [false, true]);
        assert_eq!(intents.open(&id("x1"), attempt(1, ON, 1)), Repeated, "it was made");
        assert_eq!(intents.open(&id("x2"), attempt(1, ON, 1)), Opened);
        assert_eq!(intents.open(&id("x3"), attempt(1, ON, 2)), Blocked);
    }

    #[test]
    fn the_open_attempt_is_recalled_whatever_the_order() {
        for open_first in [true, false] {
            let mut intents = Intents::default();
            let mut recalled = [(attempt(1, ON, 2), true), (attempt(1, ON, 1), false)];
            if !open_first {
                recalled.reverse();
            }
            recalled.into_iter().for_each(|(attempt, open)| intents.recall(id("x1"), attempt, open));
            assert_eq!(intents.open(&id("x1"), attempt(1, ON, 3)), Opening::Blocked);
            intents.close(&id("x1"), attempt(1, ON, 2));
            assert_eq!(intents.open(&id("x1"), attempt(1, ON, 2)), Opening::Repeated);
        }
    }
}
