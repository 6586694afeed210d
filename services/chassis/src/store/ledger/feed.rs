//! Commits on their way to the watches: in parts of bounded size, shared by all.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::encoding::BatchEncoding;
use crate::{
    mesh::buffers,
    store::resource::{Batch, Resource},
};

/// Batches that a watch may be behind before it is brought up to date from the view.
const FEED: usize = 256;

/// Approximate bytes of batches that a watch may be behind, which bounds the cost of all slow and unread watches
/// together.
const FEED_BYTES: usize = 32 << 20;

/// Resources in one batch of changes: some megabytes on the wire. One transaction may change every component of a
/// machine, and each watch holds a message as a whole; clients work on the first parts while the rest is in flight.
const LARGEST_BATCH: usize = 2500;

/// Bytes of the resources of one batch, about, after which it ends however few they are.
const LARGEST_BYTES: usize = 4 << 20;

/// A batch for watches.
pub(super) struct FeedPart<R> {
    pub(super) batch: Arc<Batch<R>>,
    /// Shared encoding of the batch; `None` where one watch alone gets it.
    pub(super) encoding: Option<Arc<BatchEncoding>>,
}

/// Future commits.
pub(super) type Feed<R> = broadcast::Receiver<Arc<FeedSlot<R>>>;

/// A part on its way to the watches. The last watch that reads the part drops it, unless it was dropped earlier to make
/// room.
pub(super) struct FeedSlot<R>(Mutex<Option<Arc<FeedPart<R>>>>);

impl<R> FeedSlot<R> {
    fn of(batch: Batch<R>) -> Self {
        let part = FeedPart { batch: Arc::new(batch), encoding: Some(Arc::default()) };
        Self(Mutex::new(Some(Arc::new(part))))
    }

    /// Returns the part; `None`: it was dropped to make room.
    pub(super) fn part(&self) -> Option<Arc<FeedPart<R>>> {
        self.0.lock().clone()
    }

    fn clear(&self) {
        *self.0.lock() = None;
    }
}

/// Sender of the feeds of all watches.
pub(super) struct FeedSender<R> {
    sender: broadcast::Sender<Arc<FeedSlot<R>>>,
    /// The last commits, each in parts, and about how many bytes each takes. Watches that are yet to take them keep them.
    waiting: VecDeque<(Vec<Weak<FeedSlot<R>>>, usize)>,
    bytes: usize,
}

impl<R: Resource> FeedSender<R> {
    pub(super) fn new() -> Self {
        Self { sender: broadcast::Sender::new(buffers::size(FEED)), waiting: VecDeque::new(), bytes: 0 }
    }

    /// Subscribes to future commits.
    pub(super) fn subscribe(&self) -> Feed<R> {
        self.sender.subscribe()
    }

    /// Sends a commit to all watches. The oldest unread commits make room, but the newest never does.
    pub(super) fn send(&mut self, batch: Batch<R>) {
        let bytes = batch.changed.iter().map(|resource| resource.weight()).sum();
        let mut places = Vec::new();
        for part in split(batch, LARGEST_BATCH) {
            let place = Arc::new(FeedSlot::of(part));
            places.push(Arc::downgrade(&place));
            // Fails only without watches.
            let _watchers = self.sender.send(place);
        }
        self.waiting.push_back((places, bytes));
        self.bytes += bytes;
        while self.waiting.len() > 1 && (self.bytes > FEED_BYTES || self.oldest_is_taken()) {
            let Some((places, bytes)) = self.waiting.pop_front() else { break };
            places.iter().filter_map(Weak::upgrade).for_each(|place| place.clear());
            self.bytes -= bytes;
        }
    }

    /// Returns whether every watch has taken the oldest commit.
    fn oldest_is_taken(&self) -> bool {
        let taken = |places: &[Weak<_>]| places.iter().all(|place| place.strong_count() == 0);
        self.waiting.front().is_some_and(|(places, _)| taken(places))
    }
}

/// Cuts a large batch, which is in the order of revisions, so that each part is a point to resume from: it has
/// everything up to its revision, and nothing beyond, which a client that resumes there would get twice. The last part
/// is marked as the batch is.
pub(super) fn split<R: Resource>(batch: Batch<R>, most: usize) -> VecDeque<Batch<R>> {
    let Batch { changed, deleted, revision, synced } = batch;
    let mut parts = VecDeque::new();
    let mut rest = changed.into_iter();
    let mut gone = deleted.into_iter().peekable();
    let (mut changed, mut bytes) = (Vec::with_capacity(rest.len().min(most)), 0);
    while let Some(resource) = rest.next() {
        let last = resource.revision();
        bytes += resource.weight();
        changed.push(resource);
        if rest.len() > 0 && (changed.len() >= most || bytes >= LARGEST_BYTES) {
            let changed = mem::replace(&mut changed, Vec::with_capacity(rest.len().min(most)));
            let deleted = std::iter::from_fn(|| gone.next_if(|deletion| deletion.revision <= last)).collect();
            parts.push_back(Batch { changed, deleted, revision: last, synced: false });
            bytes = 0;
        }
    }
    parts.push_back(Batch { changed, deleted: gone.collect(), revision, synced });
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct Heavy {
        revision: u64,
        weight: usize,
    }

    impl Resource for Heavy {
        const KIND: &'static str = "heavy";

        fn key(&self) -> &str {
            "key"
        }

        fn revision(&self) -> u64 {
            self.revision
        }

        fn set_revision(&mut self, revision: u64) {
            self.revision = revision;
        }

        fn weight(&self) -> usize {
            self.weight
        }
    }

    fn batch(revisions: impl Iterator<Item = u64>) -> Batch<Heavy> {
        of_weight(FEED_BYTES / 3, revisions)
    }

    fn of_weight(weight: usize, revisions: impl Iterator<Item = u64>) -> Batch<Heavy> {
        let changed: Vec<_> = revisions.map(|revision| Arc::new(Heavy { revision, weight })).collect();
        let revision = changed.last().map_or(0, |last| last.revision());
        Batch { changed, deleted: Vec::new(), revision, synced: false }
    }

    /// Returns the revisions of the feed; `None` for a dropped part.
    fn read(feed: &mut Feed<Heavy>) -> Vec<Option<u64>> {
        let read = std::iter::from_fn(|| feed.try_recv().ok());
        read.map(|place| place.part().map(|part| part.batch.revision)).collect()
    }

    #[test]
    fn what_nobody_reads_is_kept_only_while_there_is_room() {
        let mut feeds = FeedSender::new();
        let mut feed = feeds.subscribe();
        for revision in 1..=5 {
            feeds.send(batch(revision..=revision));
        }
        assert_eq!(read(&mut feed), [None, None, Some(3), Some(4), Some(5)]);
    }

    #[test]
    fn what_every_watch_has_taken_is_gone() {
        let mut feeds = FeedSender::new();
        let mut watches = [feeds.subscribe(), feeds.subscribe()];
        let sent = batch(1..=1);
        let record = Arc::downgrade(&sent.changed[0]);
        feeds.send(sent);
        assert_eq!(read(&mut watches[0]), [Some(1)]);
        assert!(record.upgrade().is_some(), "the other one is yet to take it");
        assert_eq!(read(&mut watches[1]), [Some(1)]);
        assert!(record.upgrade().is_none());
        feeds.send(batch(2..=2));
        assert_eq!((feeds.waiting.len(), feeds.bytes), (1, FEED_BYTES / 3));
    }

    #[test]
    fn the_newest_commit_is_kept_however_large() {
        let mut feeds = FeedSender::new();
        let mut feed = feeds.subscribe();
        let most = LARGEST_BATCH as u64;
        feeds.send(batch(1..=1));
        // Just so heavy that it leaves no room for the one before.
        feeds.send(of_weight(FEED_BYTES / (2 * LARGEST_BATCH), 2..=2 * most + 2));
        let read = read(&mut feed);
        assert_eq!((read[0], *read.last().unwrap()), (None, Some(2 * most + 2)), "{read:?}");
        assert!(read[1..].is_sorted() && !read[1..].contains(&None), "{read:?}");
    }

    #[test]
    fn batches_are_cut_by_number_and_by_bytes() {
        for (weight, resources, most, ends) in [
            (1, 0, 2, vec![0]),
            (1, 2, 2, vec![2]),
            (1, 5, 2, vec![2, 4, 5]),
            (LARGEST_BYTES / 2, 5, 100, vec![2, 4, 5]),
            (2 * LARGEST_BYTES, 3, 100, vec![1, 2, 3]),
        ] {
            let parts = split(of_weight(weight, 1..=resources), most);
            let revisions: Vec<_> = parts.iter().map(|part| part.revision).collect();
            assert_eq!(revisions, ends, "{resources} of {weight}");
        }
    }
}
