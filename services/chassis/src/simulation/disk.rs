//! A database in memory: a disk that survives the death of its host. One that is shared has several hosts at a time,
//! which are told of each other's commits.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use sea_orm::{DbErr, RuntimeErr, sqlx};
use tokio::{
    sync::{Notify, broadcast},
    time::Instant,
};

use super::{
    leases::LeaseRows,
    locks::Open,
    shelf::{Earlier, Kept, Shelf},
};
use crate::{fence::Shard, resource::Resource};

/// Hints that a host may be behind.
const HINTS: usize = 256;

/// What becomes of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is kept, and the answer says so.
    Kept,
    /// It is not kept, and the answer says so.
    Failed,
    /// It is kept, and there is no answer.
    Unheard,
    /// The host dies, and nothing is kept.
    DiesBefore,
    /// It is kept, and the host dies before it learns of that.
    DiesAfter,
    /// The host is stopped for a while with the commit in its hands.
    PausesBefore,
    /// It is kept, and the host is stopped for a while before it learns of that.
    PausesAfter,
}

/// A commit that was kept.
pub struct Commit<'a> {
    /// The start that made it.
    pub start: u64,
    /// The kind of what was changed.
    pub kind: &'static str,
    /// A [`crate::resource::Batch`] of its resources.
    pub batch: &'a dyn Any,
    /// The keys of those that were written and not deleted, the shard of which another start has taken.
    pub foreign: Vec<String>,
}

/// Says what happens to a disk, and is told.
pub trait Custodian: Send + Sync {
    /// How long the next commit of `kind` takes, and what becomes of it.
    fn fate(&self, kind: &'static str) -> (Duration, Fate);

    /// A commit was kept.
    fn kept(&self, commit: &Commit<'_>);

    /// The host dies, now, that `start` is of.
    fn dies(&self, start: u64);

    /// The host is stopped for a while, from now on, that `start` is of.
    fn pauses(&self, start: u64);
}

/// What the hosts of one part keep, by kind. Clones share it, as starts of the hosts do. Only those that run have access.
#[derive(Clone)]
pub struct Disk {
    pub(super) shared: Arc<Shared>,
    start: u64,
}

pub(super) struct Shared {
    pub(super) custodian: Box<dyn Custodian>,
    pub(super) state: Mutex<Contents>,
    /// Something has changed for which somebody may be waiting.
    pub(super) changed: Notify,
    /// What has changed, for the other hosts: a kind and its revision, or some other topic.
    pub(super) hints: broadcast::Sender<(String, Option<u64>)>,
    is_shared: bool,
}

#[derive(Default)]
pub(super) struct Contents {
    kinds: BTreeMap<&'static str, Box<dyn Kept>>,
    pub(super) leases: LeaseRows,
    earlier_leases: Earlier<LeaseRows>,
    pub(super) transactions: BTreeMap<u64, Open>,
    /// The last number that was given to a transaction.
    pub(super) last_transaction: u64,
    last_start: u64,
    /// The starts that have access.
    mounted: BTreeSet<u64>,
    /// Those of them that are stopped.
    paused: BTreeSet<u64>,
    /// Nothing can be read or written: the database is away.
    away: bool,
    /// Deletions that ledgers remember; none: as many as with a database.
    remembers: Option<usize>,
}

impl Disk {
    /// An empty disk of one host, as SQLite is.
    #[must_use]
    pub fn new(custodian: impl Custodian + 'static) -> Self {
        Self::of(custodian, false)
    }

    /// An empty disk that several hosts may have at a time, as PostgreSQL is.
    #[must_use]
    pub fn shared(custodian: impl Custodian + 'static) -> Self {
        Self::of(custodian, true)
    }

    fn of(custodian: impl Custodian + 'static, is_shared: bool) -> Self {
        let shared = Shared {
            custodian: Box::new(custodian),
            state: Mutex::default(),
            changed: Notify::new(),
            hints: broadcast::Sender::new(HINTS),
            is_shared,
        };
        Self { shared: Arc::new(shared), start: 0 }
    }

    /// Whether several hosts may have it.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_shared
    }

    /// From now on ledgers remember so few deletions. To be set before anything is kept.
    pub fn remember(&self, deletions: usize) {
        self.shared.state.lock().remembers = Some(deletions);
    }

    /// How many deletions ledgers remember, where that is not as many as with a database.
    pub(crate) fn remembers(&self) -> Option<usize> {
        self.shared.state.lock().remembers
    }

    /// Access for a new start of a host. Where the disk is not shared, all earlier ones have none any more.
    #[must_use]
    pub fn mount(&self) -> Self {
        let mut contents = self.shared.state.lock();
        contents.last_start += 1;
        if !self.is_shared() {
            contents.mounted.clear();
        }
        let start = contents.last_start;
        contents.mounted.insert(start);
        Self { shared: Arc::clone(&self.shared), start }
    }

    /// Tells this start from all others.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Takes the access away from this start.
    pub fn unmount(&self) {
        let mut contents = self.shared.state.lock();
        contents.mounted.remove(&self.start);
        contents.paused.remove(&self.start);
        contents.transactions.retain(|_, open| open.start != self.start);
        self.shared.changed.notify_waiters();
    }

    /// Lets this start wait for whatever it asks, until [`Self::go_on`].
    pub fn pause(&self) {
        self.shared.state.lock().paused.insert(self.start);
    }

    /// Ends [`Self::pause`].
    pub fn go_on(&self) {
        self.shared.state.lock().paused.remove(&self.start);
        self.shared.changed.notify_waiters();
    }

    /// Lets every read and write fail, or no more.
    pub fn set_away(&self, away: bool) {
        let mut contents = self.shared.state.lock();
        contents.away = away;
        contents.transactions.clear();
        self.shared.changed.notify_waiters();
    }

    /// Whether every read and write fails.
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.shared.state.lock().away
    }

    /// Loses what was committed in the last `lost`, at most a minute, as a failover or a restored backup does.
    pub fn set_back(&self, lost: Duration) {
        let to = Instant::now().checked_sub(lost).unwrap_or_else(Instant::now);
        let mut contents = self.shared.state.lock();
        contents.kinds.values_mut().for_each(|shelf| shelf.set_back(to));
        if let Some(leases) = contents.earlier_leases.take_back(to) {
            contents.leases = leases;
        }
        contents.transactions.clear();
        self.shared.changed.notify_waiters();
    }

    /// Looks at what is kept of one kind.
    pub fn look<R: Resource, T>(&self, look: impl FnOnce(&BTreeMap<Arc<str>, Arc<R>>) -> T) -> T {
        look(&self.shared.state.lock().shelf::<R>().resources)
    }

    /// The newest revision of one kind.
    pub fn revision<R: Resource>(&self) -> u64 {
        self.shared.state.lock().shelf::<R>().revision
    }

    /// The kinds that are kept.
    pub fn kinds(&self) -> Vec<&'static str> {
        self.shared.state.lock().kinds.keys().copied().collect()
    }

    /// The keys of what is kept of one kind.
    pub fn keys(&self, kind: &str) -> Vec<Arc<str>> {
        self.shared.state.lock().kinds.get(kind).map(|shelf| shelf.keys()).unwrap_or_default()
    }

    /// Spoils the row of that key: who reads it from now on cannot, until it is written anew or deleted.
    pub fn spoil(&self, kind: &str, key: Arc<str>) {
        if let Some(shelf) = self.shared.state.lock().kinds.get_mut(kind) {
            shelf.spoil(key);
        }
    }

    /// The keys of the rows of one kind that cannot be read.
    pub fn spoilt(&self, kind: &str) -> BTreeSet<Arc<str>> {
        self.shared.state.lock().kinds.get(kind).map(|shelf| shelf.spoilt().clone()).unwrap_or_default()
    }

    /// How many shards each start holds now, as the rows of leases say.
    pub fn held(&self) -> BTreeMap<u64, usize> {
        let held = self.shared.state.lock().leases.held(Instant::now());
        held.into_iter().map(|(start, shards)| (start, shards.len())).collect()
    }

    /// Which start took the shard of `key` last.
    pub fn holder(&self, key: &str) -> Option<u64> {
        self.shared.state.lock().leases.start_of(Shard::of(key))
    }

    /// Reads what is kept of one kind.
    pub(crate) async fn read<R: Resource, T>(&self, read: impl FnOnce(&Shelf<R>) -> T) -> Result<T, DbErr> {
        self.access().await?;
        Ok(read(self.shared.state.lock().shelf()))
    }

    /// Hints of all hosts from now on: a kind and its revision, or some other topic.
    pub(crate) fn hints(&self) -> broadcast::Receiver<(String, Option<u64>)> {
        self.shared.hints.subscribe()
    }

    /// Where every kind stands.
    pub(crate) async fn positions(&self) -> Result<Vec<(&'static str, u64)>, DbErr> {
        self.access().await?;
        let contents = self.shared.state.lock();
        Ok(contents.kinds.iter().map(|(kind, shelf)| (*kind, shelf.revision())).collect())
    }

    /// A start that is over learns nothing any more, and one that is stopped nothing now.
    pub(super) async fn access(&self) -> Result<(), DbErr> {
        loop {
            let changed = self.shared.changed.notified();
            let (over, paused, away) = {
                let contents = self.shared.state.lock();
                let (mounted, paused) = (&contents.mounted, &contents.paused);
                (!mounted.contains(&self.start), paused.contains(&self.start), contents.away)
            };
            match (over, paused) {
                (true, _) => return self.never().await,
                (false, true) => changed.await,
                (false, false) if away => return Err(self.broken("connection refused")),
                (false, false) => return Ok(()),
            }
        }
    }

    pub(super) async fn never<T>(&self) -> T {
        std::future::pending().await
    }

    /// A connection to a server may be made anew, which a ledger does by itself.
    pub(super) fn broken(&self, reason: &'static str) -> DbErr {
        DbErr::Conn(match self.is_shared() {
            true => RuntimeErr::SqlxError(Arc::new(sqlx::Error::Io(std::io::Error::other(reason)))),
            false => RuntimeErr::Internal(reason.to_owned()),
        })
    }
}

impl Contents {
    pub(super) fn shelf<R: Resource>(&mut self) -> &mut Shelf<R> {
        let shelf = self.kinds.entry(R::KIND).or_insert_with(|| Box::new(Shelf::<R>::default()));
        let shelf: &mut dyn Any = shelf.as_mut();
        shelf.downcast_mut().expect("kinds have names of their own")
    }

    /// Replaces the rows of leases by those of a commit.
    pub(super) fn keep_leases(&mut self, rows: LeaseRows) {
        let before = std::mem::replace(&mut self.leases, rows);
        self.earlier_leases.remember(before);
    }
}
