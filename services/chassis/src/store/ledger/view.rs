//! The committed state in memory, for readers, and as the source of watches.

use std::{sync::Arc, time::Duration};

use futures_util::{Stream, stream};
use parking_lot::RwLock;
use proto::{Encoded, Message};
use tokio::{sync::watch, time::Instant};
use uuid::Uuid;

use super::{
    encoding::EncodingCache,
    facets::OneOf,
    feed::{Feed, FeedPart, FeedSender},
    incarnation::ResumeToken,
    state::{LedgerState, LoadedState},
};
use crate::{
    Fault,
    store::resource::{Batch, Resource},
};

/// Bytes of the resources of a page, about, after which it is full however few they are: every list under way holds some
/// pages on its way to the client.
const PAGE_BYTES: usize = 512 << 10;

/// Resources that go into one message of a list.
pub(super) struct ListPage<R> {
    pub(super) found: Vec<Arc<R>>,
    most: usize,
    bytes: usize,
}

impl<R: Resource> ListPage<R> {
    pub(super) fn of(most: usize) -> Self {
        Self { found: Vec::new(), most, bytes: 0 }
    }

    /// Adds a resource, and reports whether the page is full.
    pub(super) fn add(&mut self, resource: Arc<R>) -> bool {
        self.bytes += resource.weight();
        self.found.push(resource);
        self.is_full()
    }

    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= self.most || self.bytes >= PAGE_BYTES
    }
}

/// The committed state of a ledger.
pub struct LedgerView<R> {
    state: RwLock<LedgerState<R>>,
    /// Locked only under `state`, so that feeds and state agree.
    feeds: RwLock<FeedSender<R>>,
    encodings: EncodingCache,
    /// The revision that is shown.
    shown: watch::Sender<u64>,
    /// Time at which the incarnation replaced another one that was shown.
    lost_at: watch::Sender<Option<Instant>>,
}

impl<R: Resource> LedgerView<R> {
    pub(super) fn new(everything: LoadedState<R>) -> Self {
        let mut state = everything.state;
        state.put_aside(everything.unreadable);
        let shown = watch::Sender::new(state.revision);
        let (state, feeds) = (RwLock::new(state), RwLock::new(FeedSender::new()));
        Self { state, feeds, encodings: EncodingCache::default(), shown, lost_at: watch::Sender::default() }
    }

    /// A ledger's state of nothing but these resources.
    #[cfg(test)]
    pub(crate) fn of(resources: Vec<Arc<R>>) -> Self {
        Self::new(LoadedState::of(resources))
    }

    /// Waits until the visible state includes `revision`.
    pub(super) async fn reached(&self, revision: u64) {
        let mut shown = self.shown.subscribe();
        // The sender lives as long as the view.
        let _reached = shown.wait_for(|shown| *shown >= revision).await;
    }

    /// The resource of that key.
    pub fn get(&self, key: &str) -> Option<Arc<R>> {
        self.state.read().resources.get(key).map(|held| Arc::clone(&held.0))
    }

    /// Returns how long ago another incarnation replaced the one that was shown; `None`: the store has lost nothing
    /// since it was opened.
    pub fn since_loss(&self) -> Option<Duration> {
        self.lost_at.borrow().map(|at| at.elapsed())
    }

    /// Yields once for each later loss of commits, or for several losses in quick succession.
    pub fn losses(&self) -> impl Stream<Item = ()> + Send + use<R> {
        stream::unfold(self.lost_at.subscribe(), async |mut lost_at| {
            lost_at.changed().await.ok()?;
            Some(((), lost_at))
        })
    }

    /// Returns the number of resources.
    pub fn len(&self) -> usize {
        self.state.read().resources.len()
    }

    /// Returns whether there are no resources.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Revision of the last commit.
    pub fn revision(&self) -> u64 {
        self.state.read().revision
    }

    /// Every resource, ordered by key.
    pub fn all(&self) -> Vec<Arc<R>> {
        self.state.read().all().cloned().collect()
    }

    /// Up to `most` resources that `wanted` selects, among the first `scanned` that follow `after` in the order of keys
    /// and may meet all `conditions`, as every selected one has to. Returns them, and the last examined key if more
    /// follow. Reading in steps keeps writers from waiting for long lists.
    pub(super) fn page(
        &self,
        after: &str,
        scanned: usize,
        most: usize,
        conditions: &[OneOf],
        wanted: impl Fn(&R) -> bool,
    ) -> (Vec<Arc<R>>, Option<Arc<str>>) {
        let state = self.state.read();
        let mut range = state.candidates(conditions, after);
        let (mut page, mut last) = (ListPage::of(most), None);
        for resource in range.by_ref().take(scanned) {
            last = Some(resource);
            if wanted(resource) && page.add(Arc::clone(resource)) {
                break;
            }
        }
        let more = range.next().is_some();
        (page.found, last.filter(|_| more).map(|last| last.shared_key()))
    }

    /// Reads the committed state in one piece.
    pub(super) fn read<T>(&self, read: impl FnOnce(&LedgerState<R>) -> T) -> T {
        read(&self.state.read())
    }

    /// Replaces the committed state and informs every watch, in one step.
    pub(super) fn publish(&self, batch: Batch<R>, change: impl FnOnce(&mut LedgerState<R>)) {
        let mut state = self.state.write();
        change(&mut state);
        state.revision = batch.revision;
        self.shown.send_replace(batch.revision);
        self.feeds.write().send(batch);
    }

    /// Replaces the state with a snapshot; the individual changes are unknown, so every watch restarts.
    pub(super) fn start_over(&self, everything: LoadedState<R>) {
        let mut state = self.state.write();
        if everything.state.incarnation.id != state.incarnation.id {
            self.lost_at.send_replace(Some(Instant::now()));
        }
        *state = everything.state;
        state.put_aside(everything.unreadable);
        self.shown.send_replace(state.revision);
        *self.feeds.write() = FeedSender::new();
    }

    /// All changes after `resume`, the feed of later changes, and the incarnation of both.
    pub(super) fn subscribe(&self, resume: ResumeToken) -> Result<(Batch<R>, Feed<R>, Uuid), Fault> {
        let (state, revision) = (self.state.read(), resume.revision);
        let is_remembered = revision == 0 || (state.compacted..=state.revision).contains(&revision);
        if !is_remembered || !state.incarnation.includes(resume) {
            return Err(Fault::ResumeExpired(revision));
        }
        Ok((state.since(revision), self.feeds.read().subscribe(), state.incarnation.id))
    }

    /// The encoded form of a batch. A batch of several watches is encoded once.
    pub(super) fn encoded<M: Message>(
        &self,
        part: &FeedPart<R>,
        message: impl FnOnce(&Batch<R>) -> M,
    ) -> Encoded<M> {
        let message = || message(&part.batch);
        match &part.encoding {
            Some(encoding) => {
                Encoded::from_bytes(self.encodings.get(encoding, || message().encode_to_vec().into()))
            }
            None => message().into(),
        }
    }
}
