//! In which order answers were asked for, so that an older one never replaces a newer one.

use std::collections::HashMap;

use domain::core::id::ComponentId;

/// A clock that only counts, and when the newest answer about each component was asked for.
#[derive(Default)]
pub(crate) struct Order {
    now: u64,
    /// What was asked for before does not count: changes after it may have been missed.
    missed_before: u64,
    newest: HashMap<ComponentId, Newest>,
}

#[derive(Clone, Copy, Default)]
struct Newest {
    asked: u64,
    /// Generation that was current when the component was last asked about; none: it never was.
    generation: Option<u64>,
}

impl Order {
    /// The time of something that happens now.
    pub(crate) fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Whether an answer about `generation` that was asked for at `asked` may be kept; then it is the newest.
    pub(crate) fn admits_answer(&mut self, id: &ComponentId, asked: u64, generation: u64) -> bool {
        let newest = self.newest.entry(id.clone()).or_default();
        let admitted = newest.asked <= asked;
        if admitted {
            *newest = Newest { asked, generation: Some(generation) };
        }
        admitted
    }

    /// Whether what the upstream confirmed at `told`, of what it was asked to do, may be kept; then it is the newest.
    ///
    /// An answer that came before may describe what was so before it was done, also one that was asked for meanwhile.
    /// What is known in a newer generation is not replaced.
    pub(crate) fn admits_confirmation(&mut self, id: &ComponentId, told: u64, generation: u64) -> bool {
        let newest = self.newest.entry(id.clone()).or_default();
        let admitted = newest.asked <= told && newest.generation.is_none_or(|newest| newest <= generation);
        if admitted {
            *newest = Newest { asked: told, generation: Some(generation) };
        }
        admitted
    }

    /// The generation about which something counts that was told without being asked; none: about none.
    ///
    /// It may have been on its way since before the newest generation began, so it says nothing about that one
    /// until the component was asked about in it.
    pub(crate) fn admits_news(&mut self, id: &ComponentId, told: u64) -> Option<u64> {
        let newest = self.newest.get_mut(id)?;
        let generation = newest.generation?;
        newest.asked = newest.asked.max(told);
        Some(generation)
    }

    /// Whether nothing was learnt about a component since `asked`.
    pub(crate) fn is_newest(&self, id: &ComponentId, asked: u64) -> bool {
        self.newest.get(id).is_none_or(|newest| newest.asked <= asked)
    }

    /// What was said of any component until now may be out of date.
    pub(crate) fn may_have_missed(&mut self) {
        self.missed_before = self.tick();
    }

    /// Whether nothing can have changed since the newest answer without being heard of.
    pub(crate) fn is_fresh(&self, id: &ComponentId) -> bool {
        self.newest.get(id).map_or(0, |newest| newest.asked) >= self.missed_before
    }

    /// Forgets when these were asked about.
    pub(crate) fn forget(&mut self, ids: &[ComponentId]) {
        for id in ids {
            self.newest.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> ComponentId {
        ComponentId::parse("x1").unwrap()
    }

    #[test]
    fn an_answer_never_replaces_one_that_was_asked_for_later() {
        let mut order = Order::default();
        let (first, second) = (order.tick(), order.tick());
        assert!(order.admits_answer(&id(), second, 1));
        assert!(!order.admits_answer(&id(), first, 1));
        assert!(order.admits_answer(&id(), second, 1), "one answer may describe a node twice");
        order.forget(&[id()]);
        assert!(order.admits_answer(&id(), first, 1));
    }

    #[test]
    fn news_count_for_the_generation_that_was_asked_about() {
        let mut order = Order::default();
        let told = order.tick();
        assert_eq!(order.admits_news(&id(), told), None, "never asked about");
        let asked = order.tick();
        assert!(order.admits_answer(&id(), asked, 5));
        // Generation 6 begins and is being asked about.
        let asked = order.tick();
        let told = order.tick();
        assert_eq!(order.admits_news(&id(), told), Some(5));
        assert!(!order.admits_answer(&id(), asked, 6), "nobody knows which of the two is true now");
        let asked = order.tick();
        assert!(order.admits_answer(&id(), asked, 6));
        let told = order.tick();
        assert_eq!(order.admits_news(&id(), told), Some(6));
    }

    #[test]
    fn a_confirmation_replaces_answers_that_were_asked_for_before_it_came() {
        let mut order = Order::default();
        let asked = order.tick();
        assert!(order.admits_answer(&id(), asked, 5));
        let (late, told) = (order.tick(), order.tick());
        assert!(order.admits_confirmation(&id(), told, 5));
        assert!(!order.admits_answer(&id(), late, 5), "it may say what was so before");
        let asked = order.tick();
        assert!(order.admits_answer(&id(), asked, 6));
        let told = order.tick();
        assert!(!order.admits_confirmation(&id(), told, 5), "of an older generation");
    }

    #[test]
    fn what_was_said_before_a_gap_is_not_fresh() {
        let mut order = Order::default();
        let asked = order.tick();
        order.admits_answer(&id(), asked, 1);
        assert!(order.is_fresh(&id()));
        order.may_have_missed();
        assert!(!order.is_fresh(&id()));
        let asked = order.tick();
        order.admits_answer(&id(), asked, 1);
        assert!(order.is_fresh(&id()));
    }
}
