//! Those who watch, each with habits of its own.

use std::{ops::Range, sync::Arc, time::Duration};

use futures_util::StreamExt;
use integration_tests::PATIENCE;
use proto::component::WatchComponentsResponse;
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IndexedRandom};
use tokio::{sync::watch, time::timeout};
use tonic::Status;

use crate::{
    faults::Fault,
    history::{Entry, Event, Recorder},
    wire::{Batches, Client, event, is_expired},
};

/// Bookmarks that a watcher may go back to.
const KEPT: usize = 8;

/// After a watch broke.
const PAUSE: Duration = Duration::from_millis(10);

/// How long somebody who is lied to waits for what never comes.
const PATIENCE_WITH_LIES: Duration = Duration::from_secs(2);

/// What a watcher does besides reading.
#[derive(Debug, Clone, Default)]
pub struct Habits {
    /// Begins with a list rather than with a watch of everything.
    pub lists: bool,
    /// Leaves after so many batches and comes back.
    pub leaves: Option<Range<u32>>,
    /// Where it goes on then.
    pub returns: Return,
    /// Stops reading now and then, until so many more writes are durable.
    pub pauses: Option<Range<u64>>,
    /// Does not read again after its first batch before writers are quiet.
    pub sleeps: bool,
    /// What is done to its watch on the way.
    pub fault: Option<Fault>,
}

/// Where a watcher goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Return {
    /// Where it left.
    #[default]
    Last,
    /// At one of the last bookmarks, as if it had lost what came after.
    Earlier,
    /// At its very first bookmark.
    First,
    /// With nothing.
    Zero,
}

/// One of those who watch.
pub struct Watcher {
    rng: SmallRng,
    habits: Habits,
    clients: Vec<Client>,
    recorder: Arc<Recorder>,
    /// The revision to reach; 0 while nobody knows.
    last: watch::Receiver<u64>,
    entries: Vec<Entry>,
    bookmarks: Vec<u64>,
    first: u64,
}

/// Why a stream is not read any more.
enum Over {
    /// The last revision is reached, or never will be.
    Everything,
    /// It is to be opened again.
    Stream,
}

impl Watcher {
    /// A watcher with these habits, that does what `seed` says.
    pub fn new(
        seed: u64,
        habits: Habits,
        clients: Vec<Client>,
        recorder: Arc<Recorder>,
        last: watch::Receiver<u64>,
    ) -> Self {
        let rng = SmallRng::seed_from_u64(seed);
        Self { rng, habits, clients, recorder, last, entries: Vec::new(), bookmarks: Vec::new(), first: 0 }
    }

    /// Watches until it has the last revision. Gives what happened to it.
    pub async fn run(mut self) -> Vec<Entry> {
        loop {
            let client = self.clients.choose(&mut self.rng).unwrap().clone();
            let Some(from) = self.begin(&client).await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let at = self.recorder.now();
            self.entries.push(Entry::Opened { at, from });
            let over = match client.watch(from).await {
                Ok(batches) => self.read(self.spoil(batches, from)).await,
                Err(status) => self.broke(&status),
            };
            match over {
                Over::Everything => return self.entries,
                Over::Stream => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// From where to watch; none when that cannot be found out now.
    async fn begin(&mut self, client: &Client) -> Option<u64> {
        if let Some(last) = self.bookmarks.last() {
            return Some(match self.habits.returns {
                Return::Last => *last,
                Return::Earlier => *self.bookmarks.choose(&mut self.rng)?,
                Return::First => self.first,
                Return::Zero => 0,
            });
        }
        if !self.habits.lists {
            return Some(0);
        }
        let asked = self.recorder.now();
        let (events, revision) = client.list().await.ok()??;
        self.entries.push(Entry::Listed { asked, at: self.recorder.now(), events, revision });
        Some(revision)
    }

    fn spoil(&self, batches: Batches, from: u64) -> Batches {
        match self.habits.fault {
            Some(fault) => fault.spoil(batches, from, self.recorder.now()),
            None => batches,
        }
    }

    async fn read(&mut self, mut batches: Batches) -> Over {
        let leaves = self.habits.leaves.clone().map(|range| self.rng.random_range(range));
        let mut read = 0;
        loop {
            if self.arrived() {
                return Over::Everything;
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
                self.entries.push(Entry::Stuck);
                return Over::Everything;
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
                    return Over::Stream;
                }
                if leaves.is_some_and(|leaves| read >= leaves) {
                    return Over::Stream;
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
        let synced = matches!(self.entries.last(), Some(Entry::Told { .. }));
        last > 0 && synced && self.bookmarks.last().is_some_and(|reached| *reached >= last)
    }

    fn told(&mut self, batch: WatchComponentsResponse) {
        let WatchComponentsResponse { components, deletions, revision, synced } = batch;
        let deleted = deletions.into_iter().map(|deletion| Event {
            key: deletion.key.into(),
            revision: deletion.revision,
            lanes: None,
        });
        self.entries.push(Entry::Told {
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

    fn broke(&mut self, status: &Status) -> Over {
        if is_expired(status) {
            self.entries.push(Entry::Expired);
            self.bookmarks.clear();
            self.first = 0;
        } else {
            self.entries.push(Entry::Broke { why: format!("{:?}: {}", status.code(), status.message()) });
        }
        Over::Stream
    }
}
