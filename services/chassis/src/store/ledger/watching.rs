//! A watch on a ledger: first the present state, then changes.

use std::{collections::VecDeque, sync::Arc};

use futures_util::{Stream, TryStreamExt, stream};
use tokio::sync::broadcast::error::RecvError;
use uuid::Uuid;

use super::{
    feed::{Feed, FeedPart, split},
    incarnation::ResumeToken,
    view::LedgerView,
};
use crate::{
    Fault,
    mesh::streams::{self, StreamCharge},
    store::resource::{Batch, Resource, ResourceDeletion},
};

/// Resources in one batch of the initial set: large enough to be cheap, small enough to be shown soon.
const INITIAL_BATCH: usize = 1000;

/// A watch that has been admitted.
pub struct LedgerWatch<R> {
    view: Arc<LedgerView<R>>,
    feed: Feed<R>,
    /// Batches of this watch alone.
    pending: VecDeque<Batch<R>>,
    /// The bytes of that which count for the stream of the watch.
    charge: Option<StreamCharge>,
    delivered: u64,
    incarnation: Uuid,
}

impl<R: Resource> LedgerWatch<R> {
    pub(super) fn start(view: Arc<LedgerView<R>>, resume: ResumeToken) -> Result<Self, Fault> {
        let (initial, feed, incarnation) = view.subscribe(resume)?;
        let delivered = initial.revision;
        let mut watch = Self { view, feed, pending: VecDeque::new(), charge: None, delivered, incarnation };
        watch.gather(Batch { synced: true, ..initial });
        Ok(watch)
    }

    /// The incarnation of all batches.
    pub(super) fn incarnation(&self) -> Uuid {
        self.incarnation
    }

    /// The batches, without end. [`Fault::ResumeExpired`] when the watch fell so far behind that deletions
    /// were forgotten.
    pub fn batches(self) -> impl Stream<Item = Result<Arc<Batch<R>>, Fault>> + Send {
        self.parts().map_ok(|part| Arc::clone(&part.batch))
    }

    /// The batches, each with its place for the encoded form.
    pub(super) fn parts(self) -> impl Stream<Item = Result<Arc<FeedPart<R>>, Fault>> + Send {
        stream::try_unfold(self, |mut watch| async move {
            let part = watch.next().await?;
            Ok(Some((part, watch)))
        })
    }

    async fn next(&mut self) -> Result<Arc<FeedPart<R>>, Fault> {
        loop {
            if let Some(batch) = self.pending.pop_front() {
                if self.pending.is_empty() {
                    self.charge = None;
                }
                return Ok(Arc::new(FeedPart { batch: Arc::new(batch), encoding: None }));
            }
            match self.feed.recv().await.map(|place| place.part()) {
                Ok(Some(part)) if part.batch.revision <= self.delivered => {}
                Ok(Some(part)) => {
                    self.delivered = part.batch.revision;
                    return Ok(part);
                }
                // Too slow for every step, or a snapshot without its individual changes.
                Ok(None) | Err(RecvError::Lagged(_) | RecvError::Closed) => self.skip_ahead()?,
            }
        }
    }

    fn gather(&mut self, batch: Batch<R>) {
        let bytes =
            batch.changed.len() * size_of::<Arc<R>>() + batch.deleted.len() * size_of::<ResourceDeletion>();
        self.charge = streams::charge_current(bytes);
        self.pending = split(batch, INITIAL_BATCH);
    }

    /// Skips steps that the client was too slow for: it gets the newest state of the missed resources.
    fn skip_ahead(&mut self) -> Result<(), Fault> {
        let resume = ResumeToken { incarnation: Some(self.incarnation), revision: self.delivered };
        let (missed, feed, incarnation) = self.view.subscribe(resume)?;
        if incarnation != self.incarnation {
            return Err(Fault::ResumeExpired(self.delivered));
        }
        self.feed = feed;
        if missed.revision > self.delivered {
            self.delivered = missed.revision;
            if !forgets_missed() {
                self.gather(missed);
            }
        }
        Ok(())
    }
}

#[cfg(feature = "simulation")]
fn forgets_missed() -> bool {
    crate::simulation::PlantedDefect::MissedChanges.is_planted()
}

#[cfg(not(feature = "simulation"))]
fn forgets_missed() -> bool {
    false
}

/// A watch that starts over instead of failing.
pub(super) fn follow<R: Resource>(view: Arc<LedgerView<R>>) -> impl Stream<Item = Arc<Batch<R>>> + Send {
    stream::unfold((view, None), |(view, watch)| async move {
        let mut watch =
            watch.or_else(|| LedgerWatch::start(Arc::clone(&view), ResumeToken::default()).ok())?;
        loop {
            match watch.next().await {
                Ok(part) => return Some((Arc::clone(&part.batch), (view, Some(watch)))),
                // A watch from the beginning is always admitted.
                Err(_) => watch = LedgerWatch::start(Arc::clone(&view), ResumeToken::default()).ok()?,
            }
        }
    })
}
