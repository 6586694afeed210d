//! A watch on a ledger: what there is, then what changes.

use std::{collections::VecDeque, sync::Arc};

use futures_util::{Stream, stream};
use tokio::sync::broadcast::error::RecvError;

use super::view::{Feed, View};
use crate::{
    Fault,
    resource::{Batch, Resource},
};

/// Resources in one batch of the initial set: large enough to be cheap, small enough to be shown soon.
const INITIAL_BATCH: usize = 1000;

/// Resources in one batch of what changes: some ten megabytes on the wire. One transaction may change every
/// component of a machine, and each watch holds a message as a whole.
const LARGEST_BATCH: usize = 5000;

/// A watch that has been admitted.
pub struct LedgerWatch<R> {
    view: Arc<View<R>>,
    feed: Feed<R>,
    pending: VecDeque<Arc<Batch<R>>>,
    delivered: u64,
}

impl<R: Resource> LedgerWatch<R> {
    pub(super) fn start(view: Arc<View<R>>, resume: u64) -> Result<Self, Fault> {
        let (initial, feed) = view.subscribe(resume)?;
        let delivered = initial.revision;
        let pending = split(initial, INITIAL_BATCH, true);
        Ok(Self { view, feed, pending, delivered })
    }

    /// The batches, without end. [`Fault::ResumeExpired`] when the watch fell so far behind that deletions
    /// were forgotten.
    pub fn batches(self) -> impl Stream<Item = Result<Arc<Batch<R>>, Fault>> + Send {
        stream::try_unfold(self, |mut watch| async move {
            let batch = watch.next().await?;
            Ok(batch.map(|batch| (batch, watch)))
        })
    }

    async fn next(&mut self) -> Result<Option<Arc<Batch<R>>>, Fault> {
        loop {
            if let Some(batch) = self.pending.pop_front() {
                return Ok(Some(batch));
            }
            match self.feed.recv().await.map(|batch| batch.upgrade()) {
                Ok(Some(batch)) if batch.revision <= self.delivered => {}
                Ok(Some(batch)) => {
                    self.delivered = batch.revision;
                    if batch.changed.len() <= LARGEST_BATCH {
                        return Ok(Some(batch));
                    }
                    self.pending = split(Batch::clone(&batch), LARGEST_BATCH, false);
                }
                // Too slow for every step, or it is not known how the newest state came about.
                Ok(None) | Err(RecvError::Lagged(_) | RecvError::Closed) => self.skip_ahead()?,
            }
        }
    }

    /// The client was too slow for every step: it gets the newest state of what it missed.
    fn skip_ahead(&mut self) -> Result<(), Fault> {
        let (missed, feed) = self.view.subscribe(self.delivered)?;
        self.feed = feed;
        if missed.revision > self.delivered {
            self.delivered = missed.revision;
            self.pending = split(missed, INITIAL_BATCH, false);
        }
        Ok(())
    }
}

/// A watch that starts over instead of failing.
pub(super) fn follow<R: Resource>(view: Arc<View<R>>) -> impl Stream<Item = Arc<Batch<R>>> + Send {
    stream::unfold((view, None), |(view, watch)| async move {
        let mut watch = watch.or_else(|| LedgerWatch::start(Arc::clone(&view), 0).ok())?;
        loop {
            match watch.next().await {
                Ok(batch) => return batch.map(|batch| (batch, (view, Some(watch)))),
                // A watch from the beginning is always admitted.
                Err(_) => watch = LedgerWatch::start(Arc::clone(&view), 0).ok()?,
            }
        }
    })
}

/// Cuts a large batch, which is in the order of revisions, so that each part is a point to resume from: it has
/// everything up to its revision, and nothing beyond, which would be told again to who resumes there.
fn split<R: Resource>(batch: Batch<R>, most: usize, mark_end: bool) -> VecDeque<Arc<Batch<R>>> {
    let Batch { changed, deleted, revision, synced: _ } = batch;
    let mut parts = VecDeque::new();
    let mut rest = changed.into_iter();
    let mut gone = deleted.into_iter().peekable();
    while rest.len() > most {
        let changed: Vec<_> = rest.by_ref().take(most).collect();
        let revision = changed.last().map_or(0, |last: &Arc<R>| last.revision());
        let deleted = std::iter::from_fn(|| gone.next_if(|deletion| deletion.revision <= revision)).collect();
        parts.push_back(Arc::new(Batch { changed, deleted, revision, synced: false }));
    }
    parts.push_back(Arc::new(Batch {
        changed: rest.collect(),
        deleted: gone.collect(),
        revision,
        synced: mark_end,
    }));
    parts
}
