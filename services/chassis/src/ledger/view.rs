//! What is committed, in memory: for readers, and as the source of watches.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use parking_lot::RwLock;
use tokio::sync::broadcast;

use crate::{
    Fault,
    resource::{Batch, Deletion, Resource},
};

/// Batches that a watch may be behind before it is brought up to date from the view. Each is an `Arc`, so
/// this bounds what slow watches can keep alive.
const FEED: usize = 256;

/// Deletions that are remembered for watches that resume. Twice as many are kept before the older half goes.
pub(super) const DELETIONS: usize = 10_000;

/// What is committed from now on.
pub(super) type Feed<R> = broadcast::Receiver<Arc<Batch<R>>>;

/// The committed state of a ledger.
pub struct View<R> {
    state: RwLock<State<R>>,
    feed: broadcast::Sender<Arc<Batch<R>>>,
}

/// The committed state, as the writer and watches handle it.
pub(super) struct State<R> {
    pub(super) resources: BTreeMap<Arc<str>, Arc<R>>,
    pub(super) deletions: Vec<Deletion>,
    pub(super) revision: u64,
    pub(super) compacted: u64,
}

impl<R: Resource> View<R> {
    pub(super) fn new(state: State<R>) -> Self {
        Self { state: RwLock::new(state), feed: broadcast::Sender::new(FEED) }
    }

    /// The resource of that key.
    pub fn get(&self, key: &str) -> Option<Arc<R>> {
        self.state.read().resources.get(key).cloned()
    }

    /// How many resources there are.
    pub fn len(&self) -> usize {
        self.state.read().resources.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Revision of the last commit.
    pub fn revision(&self) -> u64 {
        self.state.read().revision
    }

    /// Every resource, ordered by key.
    pub fn all(&self) -> Vec<Arc<R>> {
        self.state.read().resources.values().cloned().collect()
    }

    /// Up to `most` resources that `wanted` picks, among the `scanned` that follow `after` in the order of
    /// keys. Gives them, and the last key that was looked at if more follow. Reading in steps keeps writers from
    /// waiting for long lists.
    pub(super) fn page(
        &self,
        after: &str,
        scanned: usize,
        most: usize,
        wanted: impl Fn(&R) -> bool,
    ) -> (Vec<Arc<R>>, Option<Arc<str>>) {
        let state = self.state.read();
        let mut range = state.resources.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let (mut found, mut last) = (Vec::new(), None);
        for (key, resource) in range.by_ref().take(scanned) {
            last = Some(key);
            if wanted(resource) {
                found.push(Arc::clone(resource));
            }
            if found.len() >= most {
                break;
            }
        }
        let more = range.next().is_some();
        (found, last.filter(|_| more).cloned())
    }

    /// Reads the committed state in one piece.
    pub(super) fn read<T>(&self, read: impl FnOnce(&State<R>) -> T) -> T {
        read(&self.state.read())
    }

    /// Replaces the committed state and tells every watch, in one step.
    pub(super) fn publish(&self, batch: Batch<R>, change: impl FnOnce(&mut State<R>)) {
        let mut state = self.state.write();
        change(&mut state);
        state.revision = batch.revision;
        // Nobody may be watching.
        let _watchers = self.feed.send(Arc::new(batch));
    }

    /// Everything that changed after `resume`, and the feed of what changes from then on.
    pub(super) fn subscribe(&self, resume: u64) -> Result<(Batch<R>, Feed<R>), Fault> {
        let state = self.state.read();
        if resume > state.revision || (resume > 0 && resume < state.compacted) {
            return Err(Fault::ResumeExpired(resume));
        }
        Ok((state.since(resume), self.feed.subscribe()))
    }
}

impl<R: Resource> State<R> {
    fn since(&self, resume: u64) -> Batch<R> {
        let mut changed: Vec<_> =
            self.resources.values().filter(|one| one.revision() > resume).cloned().collect();
        changed.sort_unstable_by_key(|one| one.revision());
        let deleted = match resume {
            0 => Vec::new(),
            _ => self.deletions.iter().filter(|one| one.revision > resume).cloned().collect(),
        };
        Batch { changed, deleted, revision: self.revision, synced: false }
    }
}
