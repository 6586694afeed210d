//! The order of requests, so that the answer to an older one never replaces that to a newer one.

use std::collections::HashMap;

use domain::core::id::ComponentId;

/// Logical clock, and the time of the request behind the newest answer about each component.
#[derive(Default)]
pub(crate) struct RequestClock {
    now: u64,
    /// Time before which requests do not count: later changes may have been missed.
    missed_before: u64,
    newest: HashMap<ComponentId, NewestAnswer>,
}

#[derive(Clone, Copy, Default)]
struct NewestAnswer {
    asked: u64,
    /// Generation that was current at the last request about the component; `None`: there was none.
    generation: Option<u64>,
}

impl RequestClock {
    /// Returns the time of an event that happens now.
    pub(crate) fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Returns whether an answer about `generation` to a request at `asked` may be stored; it then is the newest.
    pub(crate) fn admits_answer(&mut self, id: &ComponentId, asked: u64, generation: u64) -> bool {
        let newest = self.newest.entry(id.clone()).or_default();
        let admitted = newest.asked <= asked;
        if admitted {
            *newest = NewestAnswer { asked, generation: Some(generation) };
        }
        admitted
    }

    /// Returns whether the upstream's confirmation, at `told`, of a call may be stored; it then is the newest.
    ///
    /// An earlier answer may predate the call, even if it was requested while the call was in flight. The known state
    /// of a newer generation is not replaced.
    pub(crate) fn admits_confirmation(&mut self, id: &ComponentId, told: u64, generation: u64) -> bool {
        let newest = self.newest.entry(id.clone()).or_default();
        let admitted = newest.asked <= told && newest.generation.is_none_or(|newest| newest <= generation);
        if admitted {
            *newest = NewestAnswer { asked: told, generation: Some(generation) };
        }
        admitted
    }

    /// Returns the generation for which a push is evidence; `None`: for none.
    ///
    /// A push may have been on its way since before the newest generation began, so it says nothing about that
    /// generation until the component was requested in it.
    pub(crate) fn admits_news(&mut self, id: &ComponentId, told: u64) -> Option<u64> {
        let newest = self.newest.get_mut(id)?;
        let generation = newest.generation?;
        newest.asked = newest.asked.max(told);
        Some(generation)
    }

    /// Returns whether there is no newer observation of a component than `asked`.
    pub(crate) fn is_newest(&self, id: &ComponentId, asked: u64) -> bool {
        self.newest.get(id).is_none_or(|newest| newest.asked <= asked)
    }

    /// Marks all earlier answers about all components as possibly out of date.
    pub(crate) fn may_have_missed(&mut self) {
        self.missed_before = self.tick();
    }

    /// Returns whether every change since the newest answer would have been noticed.
    pub(crate) fn is_fresh(&self, id: &ComponentId) -> bool {
        self.newest.get(id).map_or(0, |newest| newest.asked) >= self.missed_before
    }

    /// Forgets when these components were requested.
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
        let mut order = RequestClock::default();
        let (first, second) = (order.tick(), order.tick());
        assert!(order.admits_answer(&id(), second, 1));
        assert!(!order.admits_answer(&id(), first, 1));
        assert!(order.admits_answer(&id(), second, 1), "one answer may describe a node twice");
        order.forget(&[id()]);
        assert!(order.admits_answer(&id(), first, 1));
    }

    #[test]
    fn news_count_for_the_generation_that_was_asked_about() {
        let mut order = RequestClock::default();
        let told = order.tick();
        assert_eq!(order.admits_news(&id(), told), None, "never asked about");
        let asked = order.tick();
        assert!(order.admits_answer(&id(), asked, 5));
        // Generation 6 begins and is being requested.
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
        let mut order = RequestClock::default();
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
        let mut order = RequestClock::default();
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
