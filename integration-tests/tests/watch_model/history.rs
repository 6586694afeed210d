//! What happened in a run: every write with what became of it, and everything that every watcher was told.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

/// A place in the order in which the test saw things happen. What ended at an earlier moment than something else
/// began was over before it; all else may have overlapped.
pub type Moment = u64;

/// Id of a component.
pub type Key = Arc<str>;

/// The parts of a component that writers set apart from one another: the error text, what the node reports, and the
/// session. Each write that sets one to a text sets it to a text of its own.
pub const LANES: usize = 3;

/// Place of the error text among the lanes.
pub const ERROR: usize = 0;
/// Place of the report of the node.
pub const REPORT: usize = 1;
/// Place of the session.
pub const SESSION: usize = 2;

/// What a component holds in each lane; empty where nothing was written.
pub type Lanes = [Arc<str>; LANES];

/// A component as it is from a revision on, or that it was deleted at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub key: Key,
    pub revision: u64,
    /// None: it was deleted.
    pub lanes: Option<Lanes>,
}

/// What a write does to each of its components.
#[derive(Debug, Clone)]
pub enum Change {
    /// Sets some lanes of a component that exists.
    Merge([Option<Arc<str>>; LANES]),
    /// Sets all lanes, and creates the component if need be.
    Replace(Lanes),
    Delete,
}

impl Change {
    /// What becomes of a lane: nothing, or what it holds afterwards, which is none after a deletion.
    pub fn sets(&self, lane: usize) -> Option<Option<&str>> {
        match self {
            Self::Merge(lanes) => lanes[lane].as_deref().map(Some),
            Self::Replace(lanes) => Some(Some(&lanes[lane])),
            Self::Delete => Some(None),
        }
    }
}

/// What is known about the effect of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is durable, with the revision that includes it where the answer tells.
    Acknowledged { at: Moment, revision: Option<u64> },
    /// It has no effect.
    Refused,
    /// It may have an effect, now or later: the answer was lost.
    Unknown,
}

/// A write.
#[derive(Debug, Clone)]
pub struct Write {
    /// The components that it was for; once it is acknowledged, those that it changed.
    pub keys: Vec<Key>,
    pub change: Change,
    pub invoked: Moment,
    pub outcome: Outcome,
}

impl Write {
    /// When it was over.
    pub fn ended(&self) -> Moment {
        match self.outcome {
            Outcome::Acknowledged { at, .. } => at,
            Outcome::Refused | Outcome::Unknown => Moment::MAX,
        }
    }
}

/// One thing that happened to a watcher.
#[derive(Debug, Clone)]
pub enum Entry {
    /// It read a list, which it begins its copy with.
    Listed { asked: Moment, at: Moment, events: Vec<Event>, revision: u64 },
    /// It asked for a watch from a revision up to which it had everything, or from 0 with nothing.
    Opened { at: Moment, from: u64 },
    /// It was told a batch.
    Told { at: Moment, changed: Vec<Event>, deleted: Vec<Event>, revision: u64, synced: bool },
    /// It was told to start over.
    Expired,
    /// The watch ended, in order or with these words.
    Broke { why: String },
    /// It waited in vain for the last revision.
    Stuck,
}

/// Everything about a run.
#[derive(Debug, Default)]
pub struct History {
    pub writes: Vec<Write>,
    /// The watchers by name.
    pub watchers: Vec<(String, Vec<Entry>)>,
    /// The revision that every watcher has to reach in the end.
    pub last: u64,
}

/// Where writers and watchers note what they do. Clones of the `Arc` share it.
#[derive(Default)]
pub struct Recorder {
    clock: AtomicU64,
    writes: Mutex<Vec<Write>>,
    acknowledged: AtomicU64,
}

impl Recorder {
    /// The next moment.
    pub fn now(&self) -> Moment {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Notes a write that is about to be asked for; `change` makes it from a text that no other write has.
    pub fn begin(&self, keys: Vec<Key>, change: impl FnOnce(&str) -> Change) -> (usize, Change) {
        let mut writes = self.writes.lock().unwrap();
        let change = change(&format!("w{}", writes.len()));
        writes.push(Write { keys, change: change.clone(), invoked: self.now(), outcome: Outcome::Unknown });
        (writes.len() - 1, change)
    }

    /// Notes that a write is durable and which components it changed.
    pub fn acknowledge(&self, index: usize, changed: Vec<Key>, revision: Option<u64>) {
        let mut writes = self.writes.lock().unwrap();
        let write = &mut writes[index];
        write.keys = changed;
        write.outcome = Outcome::Acknowledged { at: self.now(), revision };
        self.acknowledged.fetch_add(1, Ordering::SeqCst);
    }

    /// Notes that a write has no effect.
    pub fn refuse(&self, index: usize) {
        self.writes.lock().unwrap()[index].outcome = Outcome::Refused;
    }

    /// How many writes are durable.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// All writes.
    pub fn writes(&self) -> Vec<Write> {
        self.writes.lock().unwrap().clone()
    }
}
