//! Reads that are no older than the last write that any replica acknowledged.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Mutex, time::timeout};

use super::{LedgerStore, Table, view::LedgerView};
use crate::{
    Fault,
    store::{hints::HintHub, resource::Resource},
};

/// Longest delay of a read by the check for newer commits.
const PATIENCE: Duration = Duration::from_secs(5);

/// Pause before the database is asked again while a loss is being repaired.
const MEND: Duration = Duration::from_millis(200);

/// Asks the store for the position of the kind, and waits until the view shows it.
pub(super) enum FreshnessCheck<T: Table> {
    /// No other process writes: memory holds everything.
    Alone,
    Shared(PositionPolls<T>),
}

pub(super) struct PositionPolls<T: Table> {
    store: Arc<LedgerStore<T>>,
    hub: Arc<HintHub>,
    /// Number of polls begun.
    begun: AtomicU64,
    /// Number of the last poll that ended.
    ended: Mutex<u64>,
}

impl<T: Table> FreshnessCheck<T> {
    pub(super) fn new(store: &Arc<LedgerStore<T>>) -> Self {
        match store.others() {
            Some(hub) => Self::Shared(PositionPolls {
                store: Arc::clone(store),
                hub: Arc::clone(hub),
                begun: AtomicU64::new(0),
                ended: Mutex::new(0),
            }),
            None => Self::Alone,
        }
    }

    /// Ensures that `view` includes all writes acknowledged before this call.
    pub(super) async fn ensure(&self, view: &LedgerView<T::Kind>) -> Result<(), Fault> {
        let Self::Shared(polls) = self else { return Ok(()) };
        let in_time = timeout(PATIENCE, polls.poll(view)).await;
        in_time.unwrap_or_else(|_| Err(Fault::unavailable("database", "it does not answer")))
    }
}

impl<T: Table> FreshnessCheck<T> {
    /// Returns whether `view` includes all writes acknowledged until `age` ago, without a query.
    pub(super) fn is_within(&self, view: &LedgerView<T::Kind>, age: Duration) -> bool {
        match self {
            Self::Alone => true,
            Self::Shared(polls) => {
                let known = polls.hub.known_within(T::Kind::KIND, age);
                known.is_some_and(|revision| view.revision() >= revision)
            }
        }
    }
}

impl<T: Table> PositionPolls<T> {
    async fn poll(&self, view: &LedgerView<T::Kind>) -> Result<(), Fault> {
        let before = self.begun.load(Ordering::SeqCst);
        let mut ended = self.ended.lock().await;
        if *ended > before {
            // A poll that began after this call has ended.
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        loop {
            let shown = view.revision();
            let revision = self.store.position().await?.last.revision;
            if revision != shown {
                self.hub.tell(T::Kind::KIND, Some(revision));
            }
            if revision >= shown {
                view.reached(revision).await;
                break;
            }
            // The database has lost commits. A writer repairs this and continues above all shown revisions, which it
            // shows a moment before the commit.
            let _mended = timeout(MEND, view.reached(shown + 1)).await;
        }
        *ended = number;
        Ok(())
    }
}
