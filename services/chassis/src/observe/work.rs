//! Which items need a decision, and when.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use crate::process::memory::leave_room;

/// A set of keys to process, now or at a time. Clones share it.
///
/// The queue of an engine that does not always run is [closed](Self::closed) at first, and takes marks while it is
/// [open](Self::open): an engine that begins marks everything.
///
/// It holds state and not a queue: a key that is marked ten times is processed once, so memory is bounded by the number
/// of keys. A key that is marked during its processing is handed out again.
pub struct WorkQueue<K> {
    shared: Arc<WorkQueueInner<K>>,
}

struct WorkQueueInner<K> {
    marks: Mutex<QueueMarks<K>>,
    changed: Notify,
}

/// Keys to process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkBatch<K> {
    /// The keys, in order.
    pub keys: Vec<K>,
    /// Earliest time at which one of them can have been due.
    pub since: Instant,
}

/// Keeps a queue open, which is closed and forgets its marks when this is dropped.
#[must_use]
pub struct OpenQueue<K: Ord + Hash + Clone>(WorkQueue<K>);

impl<K: Ord + Hash + Clone> Drop for OpenQueue<K> {
    fn drop(&mut self) {
        *self.0.shared.marks.lock() = QueueMarks::new(false);
    }
}

struct QueueMarks<K> {
    is_open: bool,
    now: BTreeSet<K>,
    /// Time since which keys wait in `now`; `None`: there are none.
    waiting_since: Option<Instant>,
    /// Keys by the time they are due; `due` is the same the other way round.
    later: BTreeSet<(Instant, K)>,
    due: HashMap<K, Instant>,
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K> Default for WorkQueue<K> {
    fn default() -> Self {
        Self::holding(QueueMarks::new(true))
    }
}

impl<K> WorkQueue<K> {
    /// A queue that takes no marks before it is [opened](Self::open).
    pub fn closed() -> Self {
        Self::holding(QueueMarks::new(false))
    }

    fn holding(marks: QueueMarks<K>) -> Self {
        Self { shared: Arc::new(WorkQueueInner { marks: Mutex::new(marks), changed: Notify::new() }) }
    }
}

impl<K> QueueMarks<K> {
    fn new(is_open: bool) -> Self {
        Self {
            is_open,
            now: BTreeSet::new(),
            waiting_since: None,
            later: BTreeSet::new(),
            due: HashMap::new(),
        }
    }
}

impl<K: Ord + Hash + Clone> WorkQueue<K> {
    /// Takes marks until the result is dropped.
    pub fn open(&self) -> OpenQueue<K> {
        self.shared.marks.lock().is_open = true;
        OpenQueue(self.clone())
    }

    /// Marks keys to be processed as soon as possible.
    pub fn mark(&self, keys: impl IntoIterator<Item = K>) {
        {
            let mut marks = self.shared.marks.lock();
            if !marks.is_open {
                return;
            }
            marks.now.extend(keys);
            marks.note_waiting(Instant::now());
        }
        self.shared.changed.notify_one();
    }

    /// Marks `key` to be processed at `at`, in place of any other time.
    pub fn mark_at(&self, key: K, at: Instant) {
        self.shared.marks.lock().put_off(key, at);
        self.shared.changed.notify_one();
    }

    /// Forgets the time that was asked for, if any.
    pub fn unmark(&self, key: &K) {
        self.shared.marks.lock().forget(key);
    }

    /// Waits for keys that are due and hands out at most `most` of them, in order.
    pub async fn next(&self, most: usize) -> Vec<K> {
        self.next_batch(most).await.keys
    }

    /// Waits for keys that are due as [`Self::next`] does, and returns since when they have waited.
    pub async fn next_batch(&self, most: usize) -> WorkBatch<K> {
        loop {
            let (ready, wake) = self.shared.marks.lock().take(Instant::now(), most);
            if let Some(ready) = ready {
                return ready;
            }
            match wake {
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = self.shared.changed.notified() => {}
                },
                None => self.shared.changed.notified().await,
            }
        }
    }
}

impl<K: Ord + Hash + Clone> QueueMarks<K> {
    fn put_off(&mut self, key: K, at: Instant) {
        if !self.is_open {
            return;
        }
        self.forget(&key);
        self.later.insert((at, key.clone()));
        self.due.insert(key, at);
    }

    fn forget(&mut self, key: &K) {
        if let Some((key, at)) = self.due.remove_entry(key) {
            self.later.remove(&(at, key));
            leave_room(&mut self.due);
        }
    }

    /// Notes that keys have waited since `at`, unless they do for longer.
    fn note_waiting(&mut self, at: Instant) {
        if !self.now.is_empty() {
            self.waiting_since.get_or_insert(at);
        }
    }

    /// Keys that are ready, if there are any, and when the next one will be.
    fn take(&mut self, now: Instant, most: usize) -> (Option<WorkBatch<K>>, Option<Instant>) {
        while self.later.first().is_some_and(|(at, _)| *at <= now) {
            let Some((at, key)) = self.later.pop_first() else { break };
            self.due.remove(&key);
            self.now.insert(key);
            self.note_waiting(at);
        }
        leave_room(&mut self.due);
        let since = self.waiting_since.unwrap_or(now);
        let keys: Vec<_> = std::iter::from_fn(|| self.now.pop_first()).take(most).collect();
        // Keys that are left may have waited for as long.
        if self.now.is_empty() {
            self.waiting_since = None;
        }
        let ready = (!keys.is_empty()).then_some(WorkBatch { keys, since });
        (ready, self.later.first().map(|(at, _)| *at))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_key_marked_twice_is_handed_out_once() {
        let queue = WorkQueue::default();
        queue.mark(["b", "a", "b"]);
        assert_eq!(queue.next(10).await, ["a", "b"]);
    }

    #[tokio::test]
    async fn a_batch_has_at_most_the_size_asked_for() {
        let queue = WorkQueue::default();
        queue.mark([1, 2, 3]);
        assert_eq!(queue.next(2).await, [1, 2]);
        assert_eq!(queue.next(2).await, [3]);
    }

    #[tokio::test]
    async fn closed_queue_takes_no_marks_and_keeps_none() {
        let queue = WorkQueue::closed();
        queue.mark(["before"]);
        let open = queue.open();
        queue.mark(["a", "b"]);
        assert_eq!(queue.next(1).await, ["a"]);
        drop(open);
        queue.mark_at("after", Instant::now());
        let _open = queue.open();
        queue.mark(["c"]);
        assert_eq!(queue.next(10).await, ["c"]);
    }

    #[test]
    fn keys_come_at_their_time_and_a_new_time_replaces_the_old() {
        let mut marks = QueueMarks::new(true);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        marks.put_off("late", at(9));
        marks.put_off("soon", at(1));
        marks.put_off("late", at(3));
        marks.put_off("never", at(2));
        marks.forget(&"never");
        let batch = |key, since| Some(WorkBatch { keys: vec![key], since: at(since) });
        assert_eq!(marks.take(at(0), 9), (None, Some(at(1))));
        assert_eq!(marks.take(at(1), 9), (batch("soon", 1), Some(at(3))));
        assert_eq!(marks.take(at(9), 9), (batch("late", 3), None));
    }

    #[tokio::test]
    async fn waiting_ends_when_a_key_is_due() {
        let queue = WorkQueue::default();
        queue.mark_at("soon", Instant::now() + Duration::from_millis(5));
        assert_eq!(queue.next(9).await, ["soon"]);
    }
}
