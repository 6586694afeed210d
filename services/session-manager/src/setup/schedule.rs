//! Schedule of session setups and their retries.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chassis::{
    observe::work::WorkQueue,
    process::{clock, pause},
};
use domain::boot::session::lacking::InventoryDoubt;
use tokio::time::Instant;

use super::wait_notice::WaitNotice;

/// Result of a session setup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SetupOutcome {
    /// The session runs, is complete, or was deleted.
    Settled,
    /// The session is still pending.
    Waits(SetupWait),
}

/// State of a setup from one try to the next. A process that takes the session over begins without it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SetupWait {
    /// Notice in the record of the session, if there is one.
    pub(super) notice: Option<WaitNotice>,
    /// Belief that the inventory lacks names of the session.
    pub(super) doubt: InventoryDoubt,
}

impl SetupWait {
    /// Returns the pause before the next try after some failures in a row. A doubt that is not old enough to be confirmed
    /// needs one try only, and at that time.
    fn pause(&self, failures: u32) -> Duration {
        let confirmed_in = self.doubt.ask_in(clock::now()).filter(|wait| !wait.is_zero());
        confirmed_in.unwrap_or_else(|| pause::after(failures))
    }
}

/// Setups that are under way or wait for a retry. No session is set up twice at the same time.
pub(super) struct SetupSchedule {
    pub(super) queue: WorkQueue<Arc<str>>,
    /// Sessions that are being set up; true: marked meanwhile, and set up again afterwards.
    busy: HashMap<Arc<str>, bool>,
    /// Sessions that wait for a retry.
    waiting: HashMap<Arc<str>, WaitingSession>,
}

#[derive(Default)]
struct WaitingSession {
    /// Failures in a row.
    failures: u32,
    wait: SetupWait,
}

impl SetupSchedule {
    /// Creates a schedule that takes sessions from `queue` and returns retries to it.
    pub(super) fn new(queue: WorkQueue<Arc<str>>) -> Self {
        Self { queue, busy: HashMap::new(), waiting: HashMap::new() }
    }

    /// Begins the setup of a session. Returns false if the session is already being set up.
    pub(super) fn begin(&mut self, key: &Arc<str>) -> bool {
        if let Some(again) = self.busy.get_mut(key) {
            *again = true;
            return false;
        }
        self.busy.insert(Arc::clone(key), false);
        true
    }

    /// Returns the state that the last try of a setup left.
    pub(super) fn wait(&self, key: &str) -> SetupWait {
        self.waiting.get(key).map(|waiting| waiting.wait.clone()).unwrap_or_default()
    }

    pub(super) fn end(&mut self, key: Arc<str>, outcome: SetupOutcome) {
        let again = self.busy.remove(&key).unwrap_or_default();
        match outcome {
            SetupOutcome::Settled => drop(self.waiting.remove(&key)),
            SetupOutcome::Waits(wait) => {
                let waiting = self.waiting.entry(Arc::clone(&key)).or_default();
                waiting.failures = waiting.failures.saturating_add(1);
                let pause = wait.pause(waiting.failures);
                waiting.wait = wait;
                self.queue.mark_at(Arc::clone(&key), Instant::now() + pause);
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
    async fn only_waiting_sessions_are_retried() {
        let queue = WorkQueue::default();
        let mut schedule = SetupSchedule::new(queue.clone());
        let [waits, settles]: [Arc<str>; 2] = ["\twaits".into(), "\tsettles".into()];
        assert!(schedule.begin(&waits) && schedule.begin(&settles));
        schedule.end(Arc::clone(&settles), SetupOutcome::Settled);
        schedule.end(Arc::clone(&waits), SetupOutcome::Waits(SetupWait::default()));
        assert_eq!(queue.next(9).await, [Arc::clone(&waits)]);
    }

    #[tokio::test]
    async fn a_session_marked_during_its_setup_is_set_up_again() {
        let queue = WorkQueue::default();
        let mut schedule = SetupSchedule::new(queue.clone());
        let key: Arc<str> = "\ts".into();
        assert!(schedule.begin(&key));
        assert!(!schedule.begin(&key));
        schedule.end(Arc::clone(&key), SetupOutcome::Settled);
        assert_eq!(queue.next(9).await, [key]);
    }
}
