//! Record of a run: every write with its outcome, and every delivery to every watcher.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

/// A place in the order of the test's observations. An event that ended at an earlier moment than another began was
/// over before it; all other pairs may have overlapped.
pub type Moment = u64;

/// Id of a component.
pub type Key = Arc<str>;

/// Separately written parts of a component: the error text, the node's report, and the session. Each write uses a text
/// of its own.
pub const LANES: usize = 3;

/// Place of the error text among the lanes.
pub const ERROR: usize = 0;
/// Place of the report of the node.
pub const REPORT: usize = 1;
/// Place of the session.
pub const SESSION: usize = 2;

/// Lanes of a component; empty where nothing was written.
pub type Lanes = [Arc<str>; LANES];

/// A component as it is from a revision on, or that it was deleted at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentEvent {
    pub key: Key,
    pub revision: u64,
    /// Lanes of the component; `None`: it was deleted.
    pub lanes: Option<Lanes>,
}

/// Effect of a write on each of its components.
#[derive(Debug, Clone)]
pub enum WriteChange {
    /// Sets some lanes of a component that exists.
    Merge([Option<Arc<str>>; LANES]),
    /// Sets all lanes, and creates the component if need be.
    Replace(Lanes),
    Delete,
}

impl WriteChange {
    /// Returns the new value of a lane: `None` if the write leaves it, an inner `None` after a deletion.
    pub fn sets(&self, lane: usize) -> Option<Option<&str>> {
        match self {
            Self::Merge(lanes) => lanes[lane].as_deref().map(Some),
            Self::Replace(lanes) => Some(Some(&lanes[lane])),
            Self::Delete => Some(None),
        }
    }
}

/// Knowledge of a write's effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Durable, with the revision that includes it if the answer names one.
    Acknowledged { at: Moment, revision: Option<u64> },
    /// Without effect.
    Refused,
    /// In doubt, now or later: the answer was lost.
    Unknown,
}

/// A write.
#[derive(Debug, Clone)]
pub struct WriteRecord {
    /// The components that it was for; once it is acknowledged, those that it changed.
    pub keys: Vec<Key>,
    pub change: WriteChange,
    pub invoked: Moment,
    pub outcome: WriteOutcome,
}

impl WriteRecord {
    /// Returns when the write was over.
    pub fn ended(&self) -> Moment {
        match self.outcome {
            WriteOutcome::Acknowledged { at, .. } => at,
            WriteOutcome::Refused | WriteOutcome::Unknown => Moment::MAX,
        }
    }
}

/// An event of a watcher.
#[derive(Debug, Clone)]
pub enum WatcherEntry {
    /// A list was read, which becomes the watcher's copy.
    Listed { asked: Moment, at: Moment, events: Vec<ComponentEvent>, revision: u64 },
    /// A watch began at a revision up to which the copy was complete, or at 0 with an empty copy.
    Opened { at: Moment, from: u64 },
    /// A batch arrived.
    Told {
        at: Moment,
        changed: Vec<ComponentEvent>,
        deleted: Vec<ComponentEvent>,
        revision: u64,
        synced: bool,
    },
    /// The server asked to start over.
    Expired,
    /// The watch ended, in order or with these words.
    Broke { why: String },
    /// The last revision did not arrive in time.
    Stuck,
}

/// Everything about a run.
#[derive(Debug, Default)]
pub struct RunHistory {
    pub writes: Vec<WriteRecord>,
    /// The watchers by name.
    pub watchers: Vec<(String, Vec<WatcherEntry>)>,
    /// The revision that every watcher has to reach in the end.
    pub last: u64,
}

/// Records of writers and watchers. Clones of the `Arc` share them.
#[derive(Default)]
pub struct RunRecorder {
    clock: AtomicU64,
    writes: Mutex<Vec<WriteRecord>>,
    acknowledged: AtomicU64,
}

impl RunRecorder {
    /// The next moment.
    pub fn now(&self) -> Moment {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Notes a write that is about to be asked for; `change` makes it from a text that no other write has.
    pub fn begin(&self, keys: Vec<Key>, change: impl FnOnce(&str) -> WriteChange) -> (usize, WriteChange) {
        let mut writes = self.writes.lock().unwrap();
        let change = change(&format!("w{}", writes.len()));
        writes.push(WriteRecord {
            keys,
            change: change.clone(),
            invoked: self.now(),
            outcome: WriteOutcome::Unknown,
        });
        (writes.len() - 1, change)
    }

    /// Notes that a write is durable and which components it changed.
    pub fn acknowledge(&self, index: usize, changed: Vec<Key>, revision: Option<u64>) {
        let mut writes = self.writes.lock().unwrap();
        let write = &mut writes[index];
        write.keys = changed;
        write.outcome = WriteOutcome::Acknowledged { at: self.now(), revision };
        self.acknowledged.fetch_add(1, Ordering::SeqCst);
    }

    /// Notes that a write has no effect.
    pub fn refuse(&self, index: usize) {
        self.writes.lock().unwrap()[index].outcome = WriteOutcome::Refused;
    }

    /// Returns the number of durable writes.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// All writes.
    pub fn writes(&self) -> Vec<WriteRecord> {
        self.writes.lock().unwrap().clone()
    }
}
