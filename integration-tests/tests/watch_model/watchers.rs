//! Watchers, each with habits of its own.

use std::{ops::Range, sync::Arc, time::Duration};

use futures_util::StreamExt;
use integration_tests::PATIENCE;
use proto::component::WatchComponentsResponse;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};
use tokio::{sync::watch, time::timeout};
use tonic::Status;

use crate::{
    faults::PlantedFault,
    history::{ComponentEvent, RunRecorder, WatcherEntry},
    wire::{Batches, RegistryClient, event, is_expired},
};

/// Bookmarks that a watcher may go back to.
const KEPT: usize = 8;

/// After a watch broke.
const PAUSE: Duration = Duration::from_millis(10);

/// Time for which a watcher with a planted fault waits for a change that never arrives.
const PATIENCE_WITH_LIES: Duration = Duration::from_secs(2);

/// Behaviour of a watcher besides reading.
#[derive(Debug, Clone, Default)]
pub struct WatcherHabits {
    /// Begins with a list rather than with a watch of everything.
    pub lists: bool,
    /// Numbers of batches after which the watcher leaves, to return later.
    pub leaves: Option<Range<u32>>,
    /// Point at which the watcher resumes.
    pub returns: ResumePoint,
    /// Stops reading now and then, until so many more writes are durable.
    pub pauses: Option<Range<u64>>,
    /// Does not read again after its first batch before writers are quiet.
    pub sleeps: bool,
    /// Fault planted into its watch.
    pub fault: Option<PlantedFault>,
}

/// Point at which a watcher resumes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResumePoint {
    /// The last bookmark.
    #[default]
    Last,
    /// One of the last bookmarks, as if the watcher had lost all later changes.
    Earlier,
    /// The very first bookmark.
    First,
    /// No bookmark: the watcher starts with nothing.
    Zero,
}

/// A watcher of the model.
pub struct ModelWatcher {
    rng: SmallRng,
    habits: WatcherHabits,
    clients: Vec<RegistryClient>,
    recorder: Arc<RunRecorder>,
    /// The revision to reach; 0 while unknown.
    last: watch::Receiver<u64>,
    entries: Vec<WatcherEntry>,
    bookmarks: Vec<u64>,
    first: u64,
}

/// Reason why a stream is not read any more.
enum StreamEnd {
    /// The last revision is reached, or never will be.
    Everything,
    /// The stream is to be opened again.
    Stream,
}

impl ModelWatcher {
    /// A watcher with these habits, and random choices from `seed`.
    pub fn new(
        seed: u64,
        habits: WatcherHabits,
        clients: Vec<RegistryClient>,
        recorder: Arc<RunRecorder>,
        last: watch::Receiver<u64>,
    ) -> Self {
        let rng = SmallRng::seed_from_u64(seed);
        Self { rng, habits, clients, recorder, last, entries: Vec::new(), bookmarks: Vec::new(), first: 0 }
    }

    /// Watches until the last revision arrives. Returns the events.
    pub async fn run(mut self) -> Vec<WatcherEntry> {
        loop {
            let client = self.clients.choose(&mut self.rng).unwrap().clone();
            let Some(from) = self.begin(&client).await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let at = self.recorder.now();
            self.entries.push(WatcherEntry::Opened { at, from });
            let over = match client.watch(from).await {
                Ok(batches) => self.read(self.spoil(batches, from)).await,
                Err(status) => self.broke(&status),
            };
            match over {
                StreamEnd::Everything => return self.entries,
                StreamEnd::Stream => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Returns the revision from which to watch; `None` when it cannot be found out now.
    async fn begin(&mut self, client: &RegistryClient) -> Option<u64> {
        if let Some(last) = self.bookmarks.last() {
            return Some(match self.habits.returns {
                ResumePoint::Last => *last,
                ResumePoint::Earlier => *self.bookmarks.choose(&mut self.rng)?,
                ResumePoint::First => self.first,
                ResumePoint::Zero => 0,
            });
        }
        if !self.habits.lists {
            return Some(0);
        }
        let asked = self.recorder.now();
        let (events, revision) = client.list().await.ok()??;
        self.entries.push(WatcherEntry::Listed { asked, at: self.recorder.now(), events, revision });
        Some(revision)
    }

    fn spoil(&self, batches: Batches, from: u64) -> Batches {
        match self.habits.fault {
            Some(fault) => fault.spoil(batches, from, self.recorder.now()),
            None => batches,
        }
    }

    async fn read(&mut self, mut batches: Batches) -> StreamEnd {
        let leaves = self.habits.leaves.clone().map(|range| self.rng.random_range(range));
        let mut read = 0;
        loop {
            if self.arrived() {
                return StreamEnd::Everything;
            }
            let quiet = *self.last.borrow() > 0;
            let patience = if self.habits.fault.is_some() { PATIENCE_WITH_LIES } else { PATIENCE };
            let next = async {
                if quiet { timeout(patience, batches.next()).await } else { Ok(batches.next().await) }
            };
            let next = tokio::select! {
                next = next => next,
                _ = self.last.changed(), if !quiet => continue,
            };
            let Ok(next) = next else {
                self.entries.push(WatcherEntry::Stuck);
                return StreamEnd::Everything;
            };
            match next {
                Some(Ok(batch)) => self.told(batch),
                Some(Err(status)) => return self.broke(&status),
                None => return self.broke(&Status::unavailable("the end")),
            }
            read += 1;
            if *self.last.borrow() == 0 {
                if self.habits.sleeps {
                    drop(batches);
                    let _told = self.last.wait_for(|last| *last > 0).await;
                    return StreamEnd::Stream;
                }
                if leaves.is_some_and(|leaves| read >= leaves) {
                    return StreamEnd::Stream;
                }
                self.pause().await;
            }
        }
    }

    /// Does not read for a while, if that is its habit.
    async fn pause(&mut self) {
        let Some(range) = self.habits.pauses.clone() else { return };
        if !self.rng.random_bool(0.02) {
            return;
        }
        let until = self.recorder.acknowledged() + self.rng.random_range(range);
        while self.recorder.acknowledged() < until && *self.last.borrow() == 0 {
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn arrived(&self) -> bool {
        let last = *self.last.borrow();
        let synced = matches!(self.entries.last(), Some(WatcherEntry::Told { .. }));
        last > 0 && synced && self.bookmarks.last().is_some_and(|reached| *reached >= last)
    }

    fn told(&mut self, batch: WatchComponentsResponse) {
        let WatchComponentsResponse { components, deletions, revision, synced } = batch;
        let deleted = deletions.into_iter().map(|deletion| ComponentEvent {
            key: deletion.key.into(),
            revision: deletion.revision,
            lanes: None,
        });
        self.entries.push(WatcherEntry::Told {
            at: self.recorder.now(),
            changed: components.into_iter().map(event).collect(),
            deleted: deleted.collect(),
            revision,
            synced,
        });
        if self.first == 0 {
            self.first = revision;
        }
        if self.bookmarks.len() == KEPT {
            self.bookmarks.remove(0);
        }
        self.bookmarks.push(revision);
    }

    fn broke(&mut self, status: &Status) -> StreamEnd {
        if is_expired(status) {
            self.entries.push(WatcherEntry::Expired);
            self.bookmarks.clear();
            self.first = 0;
        } else {
            self.entries
                .push(WatcherEntry::Broke { why: format!("{:?}: {}", status.code(), status.message()) });
        }
        StreamEnd::Stream
    }
}
