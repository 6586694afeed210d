//! Sets up pending sessions: finds their members and gives them what they are to run (BOS reference 5.4).
//!
//! Nothing about a setup under way is remembered. After a crash it is done again from the start: assigning
//! under the same session id what is assigned already changes nothing, and the session's own record is what
//! changes last.

mod attempt;

use std::{collections::HashMap, sync::Arc};

use anyhow::Context as _;
use chassis::{Fault, pause, work::WorkQueue};
use domain::session::{self, Progress, Session};
use tokio::{task::JoinSet, time::Instant};
use tracing::Instrument;

pub(crate) use attempt::Peers;

use crate::{
    record::SessionRecord,
    setback::Setback,
    setup::attempt::{Assigned, attempt},
    shared::Shared,
};

/// Sessions that are set up at the same time, so that one with a slow upstream holds up nobody. Each may need
/// some ten megabytes on a large machine.
const AT_ONCE: usize = 8;

/// Sets up the sessions in `queue`, for ever.
pub(crate) async fn run(shared: Shared, peers: Peers, queue: WorkQueue<Arc<str>>) -> anyhow::Result<()> {
    let setup = Setup { shared, peers };
    let mut schedule = Schedule { queue, busy: HashMap::new(), failures: HashMap::new() };
    let mut under_way = JoinSet::new();
    loop {
        let free = AT_ONCE - under_way.len();
        tokio::select! {
            keys = schedule.queue.next(free), if free > 0 => {
                for key in keys.into_iter().filter(|key| schedule.begin(key)) {
                    let setup = setup.clone();
                    under_way.spawn(async move {
                        let outcome = setup.set_up(&key).await;
                        (key, outcome)
                    }.in_current_span());
                }
            }
            Some(ended) = under_way.join_next() => {
                let (key, outcome) = ended.context("the setup of a session")?;
                schedule.end(key, outcome);
            }
        }
    }
}

/// What became of setting a session up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It runs, or it is complete, or it is gone.
    Settled,
    /// It is still pending.
    Waits,
}

/// When each session is looked at next. No session is set up twice at the same time.
struct Schedule {
    queue: WorkQueue<Arc<str>>,
    /// Sessions that are being set up; true: one that was marked meanwhile and comes again afterwards.
    busy: HashMap<Arc<str>, bool>,
    /// How often in a row a session could not be set up.
    failures: HashMap<Arc<str>, u32>,
}

impl Schedule {
    /// Whether the session is to be set up now.
    fn begin(&mut self, key: &Arc<str>) -> bool {
        if let Some(again) = self.busy.get_mut(key) {
            *again = true;
            return false;
        }
        self.busy.insert(Arc::clone(key), false);
        true
    }

    fn end(&mut self, key: Arc<str>, outcome: Outcome) {
        let again = self.busy.remove(&key).unwrap_or_default();
        match outcome {
            Outcome::Settled => drop(self.failures.remove(&key)),
            Outcome::Waits => {
                let failures = self.failures.entry(Arc::clone(&key)).or_default();
                *failures = failures.saturating_add(1);
                self.queue.mark_at(Arc::clone(&key), Instant::now() + pause::after(*failures));
            }
        }
        if again {
            self.queue.mark([key]);
        }
    }
}

#[derive(Clone)]
struct Setup {
    shared: Shared,
    peers: Peers,
}

impl Setup {
    async fn set_up(&self, key: &Arc<str>) -> Outcome {
        let Some(record) = self.shared.sessions.view().get(key) else { return Outcome::Settled };
        let session = &record.session;
        if session.progress != Progress::Pending {
            return Outcome::Settled;
        }
        let (written, outcome) = match attempt(&self.shared, &self.peers, session).await {
            Ok(assigned) => (self.start(&record, assigned).await, Outcome::Settled),
            Err(Setback::Fail(error)) => {
                let complete =
                    self.shared.complete(Arc::clone(key), session.id.clone(), Progress::Pending, Some(error));
                (complete.await, Outcome::Settled)
            }
            Err(Setback::Wait(reason)) => (self.tell(&record, reason).await, Outcome::Waits),
        };
        match written {
            Ok(()) => outcome,
            Err(fault) => {
                tracing::warn!(session = session.name, %fault, "a session could not be written, trying again");
                Outcome::Waits
            }
        }
    }

    /// Lets the session run with its members.
    async fn start(&self, seen: &SessionRecord, assigned: Assigned) -> Result<(), Fault> {
        let Assigned { members, revision } = assigned;
        tracing::info!(session = seen.session.name, members = members.len(), "session runs");
        self.change(seen, move |pending| session::run(pending, members, revision)).await
    }

    /// Tells people what the session waits for, unless its record says so already.
    async fn tell(&self, seen: &SessionRecord, waiting_for: String) -> Result<(), Fault> {
        if seen.session.waiting_for == waiting_for {
            return Ok(());
        }
        tracing::warn!(session = seen.session.name, waiting_for, "a session has to wait");
        self.change(seen, |pending| Session { waiting_for, ..pending }).await
    }

    /// Changes the session that was seen if it is still there and pending.
    async fn change(
        &self,
        seen: &SessionRecord,
        change: impl FnOnce(Session) -> Session + Send + 'static,
    ) -> Result<(), Fault> {
        let (key, id) = (Arc::clone(&seen.key), seen.session.id.clone());
        let write = self.shared.sessions.write(move |draft| {
            let newest = draft.get(&key).filter(|newest| newest.is_still(&id, Progress::Pending));
            if let Some(newest) = newest.map(Arc::unwrap_or_clone) {
                draft.put(SessionRecord { session: change(newest.session), ..newest });
            }
            Ok(())
        });
        write.await.map(|((), _revision)| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_session_that_waits_comes_back_and_one_that_settled_does_not() {
        let queue = WorkQueue::default();
        let mut schedule = Schedule { queue: queue.clone(), busy: HashMap::new(), failures: HashMap::new() };
        let [waits, settles]: [Arc<str>; 2] = ["\twaits".into(), "\tsettles".into()];
        assert!(schedule.begin(&waits) && schedule.begin(&settles));
        schedule.end(Arc::clone(&settles), Outcome::Settled);
        schedule.end(Arc::clone(&waits), Outcome::Waits);
        assert_eq!(queue.next(9).await, [Arc::clone(&waits)]);
    }

    #[tokio::test]
    async fn a_session_that_is_marked_while_it_is_set_up_comes_again_afterwards() {
        let queue = WorkQueue::default();
        let mut schedule = Schedule { queue: queue.clone(), busy: HashMap::new(), failures: HashMap::new() };
        let key: Arc<str> = "\ts".into();
        assert!(schedule.begin(&key));
        assert!(!schedule.begin(&key));
        schedule.end(Arc::clone(&key), Outcome::Settled);
        assert_eq!(queue.next(9).await, [key]);
    }
}
