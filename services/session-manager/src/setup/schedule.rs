//! When each session is looked at next.

use std::{collections::HashMap, sync::Arc};

use chassis::{pause, work::WorkQueue};
use tokio::time::Instant;

use super::told::Told;

/// What became of setting a session up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It runs, or it is complete, or it is gone.
    Settled,
    /// It is still pending; what people were told about why, if they were.
    Waits(Option<Told>),
}

/// When each session is looked at next. No session is set up twice at the same time.
pub(super) struct Schedule {
    pub(super) queue: WorkQueue<Arc<str>>,
    /// Sessions that are being set up; true: one that was marked meanwhile and comes again afterwards.
    busy: HashMap<Arc<str>, bool>,
    /// Sessions that could not be set up.
    waiting: HashMap<Arc<str>, Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// How often in a row.
    failures: u32,
    told: Option<Told>,
}

impl Schedule {
    /// Sessions come from `queue`, and those that have to wait go back to it.
    pub(super) fn new(queue: WorkQueue<Arc<str>>) -> Self {
        Self { queue, busy: HashMap::new(), waiting: HashMap::new() }
    }

    /// Whether the session is to be set up now.
    pub(super) fn begin(&mut self, key: &Arc<str>) -> bool {
        if let Some(again) = self.busy.get_mut(key) {
            *again = true;
            return false;
        }
        self.busy.insert(Arc::clone(key), false);
        true
    }

    /// What people were told last about why the session waits.
    pub(super) fn told(&self, key: &str) -> Option<Told> {
        self.waiting.get(key)?.told.clone()
    }

    /// How often in a row the session could not be set up.
    pub(super) fn failures(&self, key: &str) -> u32 {
        self.waiting.get(key).map_or(0, |waiting| waiting.failures)
    }

    pub(super) fn end(&mut self, key: Arc<str>, outcome: Outcome) {
        let again = self.busy.remove(&key).unwrap_or_default();
        match outcome {
            Outcome::Settled => drop(self.waiting.remove(&key)),
            Outcome::Waits(told) => {
                let waiting = self.waiting.entry(Arc::clone(&key)).or_default();
                waiting.failures = waiting.failures.saturating_add(1);
                waiting.told = told;
                self.queue.mark_at(Arc::clone(&key), Instant::now() + pause::after(waiting.failures));
            }
        }
        if again {
            self.queue.mark([key]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_session_that_waits_comes_back_and_one_that_settled_does_not() {
        let queue = WorkQueue::default();
        let mut schedule = Schedule::new(queue.clone());
        let [waits, settles]: [Arc<str>; 2] = ["\twaits".into(), "\tsettles".into()];
        assert!(schedule.begin(&waits) && schedule.begin(&settles));
        schedule.end(Arc::clone(&settles), Outcome::Settled);
        schedule.end(Arc::clone(&waits), Outcome::Waits(None));
        assert_eq!(queue.next(9).await, [Arc::clone(&waits)]);
    }

    #[tokio::test]
    async fn a_session_that_is_marked_while_it_is_set_up_comes_again_afterwards() {
        let queue = WorkQueue::default();
        let mut schedule = Schedule::new(queue.clone());
        let key: Arc<str> = "\ts".into();
        assert!(schedule.begin(&key));
        assert!(!schedule.begin(&key));
        schedule.end(Arc::clone(&key), Outcome::Settled);
        assert_eq!(queue.next(9).await, [key]);
    }
}
