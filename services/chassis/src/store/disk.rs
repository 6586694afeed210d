//! A database in memory: a disk that survives the death of its host. A shared disk has several hosts at a time, which
//! get hints of each other's commits.

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

use self::{
    leases::RoleRow,
    locks::OpenTransaction,
    table::{AnyDiskTable, EarlierStates},
};
use crate::{Context, store::resource::Resource};

mod leases;
mod locks;
mod table;
mod transaction;

pub(crate) use leases::LeaseHolder;
pub(crate) use locks::TransactionLock;
pub(crate) use table::DiskTable;
pub(crate) use transaction::{DiskTransaction, LeaseTransaction};

/// Most pending hints of a host.
const HINTS: usize = 256;

/// Outcome of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitOutcome {
    /// The commit is kept, and confirmed.
    Kept,
    /// The commit fails, with an error.
    Failed,
    /// The commit is kept, without an answer.
    Unheard,
    /// The host dies, and the commit is not kept.
    DiesBefore,
    /// The commit is kept, and the host dies before the answer.
    DiesAfter,
    /// The host is paused for a while before the commit arrives.
    PausesBefore,
    /// The commit is kept, and the host is paused for a while before the answer.
    PausesAfter,
}

/// Commit that was kept.
pub struct KeptCommit<'a> {
    /// Start that made the commit.
    pub start: u64,
    /// Kind of the changed resources.
    pub kind: &'static str,
    /// Batch of its resources, a [`crate::store::resource::Batch`].
    pub batch: &'a dyn Any,
    /// Keys of the resources that were written and not deleted, if another start has acquired the role.
    pub foreign: Vec<String>,
}

/// Decides the outcome of a disk's commits, and receives them.
pub trait DiskController: Send + Sync {
    /// Returns the duration and the outcome of the next commit of `kind`.
    fn outcome(&self, kind: &'static str) -> (Duration, CommitOutcome);

    /// Receives a commit that was kept.
    fn kept(&self, commit: &KeptCommit<'_>);

    /// Lets the host of `start` die now.
    fn dies(&self, start: u64);

    /// Pauses the host of `start` for a while from now on.
    fn pauses(&self, start: u64);
}

/// Storage of the hosts of one part, by kind. Clones share it, as starts of the hosts do. Only running hosts have
/// access.
#[derive(Clone)]
pub struct SimulatedDisk {
    shared: Arc<DiskInner>,
    start: u64,
}

/// Disk of the host that a context is of; none: it has a database.
#[derive(Clone, Default)]
struct AttachedDisk(Arc<Mutex<Option<SimulatedDisk>>>);

struct DiskInner {
    controller: Box<dyn DiskController>,
    state: Mutex<DiskContents>,
    /// Notifies tasks that wait for a change.
    changed: Notify,
    /// Changes for the other hosts: a kind and its revision, or some other topic.
    hints: broadcast::Sender<(String, Option<u64>)>,
    is_shared: bool,
}

#[derive(Default)]
struct DiskContents {
    kinds: BTreeMap<&'static str, Box<dyn AnyDiskTable>>,
    role: RoleRow,
    earlier_roles: EarlierStates<RoleRow>,
    transactions: BTreeMap<u64, OpenTransaction>,
    /// Number of the last transaction.
    last_transaction: u64,
    last_start: u64,
    /// Starts that have access.
    mounted: BTreeSet<u64>,
    /// Starts with access that are paused.
    paused: BTreeSet<u64>,
    /// Whether every read and write fails: the database is unreachable.
    away: bool,
    /// Number of deletions that ledgers remember; `None`: as many as with a database.
    remembers: Option<usize>,
}

impl SimulatedDisk {
    /// Puts the disk in place of every database of `context`.
    pub fn attach(self, context: &Context) {
        *context.shared.of::<AttachedDisk>().0.lock() = Some(self);
    }

    /// Disk in place of every database of `context`; none: it has databases.
    pub fn attached_to(context: &Context) -> Option<Self> {
        context.shared.of::<AttachedDisk>().0.lock().clone()
    }

    /// Creates an empty disk of one host, as SQLite is.
    #[must_use]
    pub fn new(controller: impl DiskController + 'static) -> Self {
        Self::of(controller, false)
    }

    /// Creates an empty disk that several hosts may use at a time, as PostgreSQL is.
    #[must_use]
    pub fn shared(controller: impl DiskController + 'static) -> Self {
        Self::of(controller, true)
    }

    fn of(controller: impl DiskController + 'static, is_shared: bool) -> Self {
        let shared = DiskInner {
            controller: Box::new(controller),
            state: Mutex::default(),
            changed: Notify::new(),
            hints: broadcast::Sender::new(HINTS),
            is_shared,
        };
        Self { shared: Arc::new(shared), start: 0 }
    }

    /// Returns whether several hosts may use the disk.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_shared
    }

    /// Sets the number of deletions that ledgers remember. To be set before the first commit.
    pub fn remember(&self, deletions: usize) {
        self.shared.state.lock().remembers = Some(deletions);
    }

    /// Returns the number of deletions that ledgers remember, if it is not that of a database.
    pub(crate) fn remembers(&self) -> Option<usize> {
        self.shared.state.lock().remembers
    }

    /// Mounts the disk for a new start of a host. If the disk is not shared, all earlier starts lose their access.
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

    /// Returns the number of this start, which identifies it.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Removes the access of this start.
    pub fn unmount(&self) {
        let mut contents = self.shared.state.lock();
        contents.mounted.remove(&self.start);
        contents.paused.remove(&self.start);
        contents.transactions.retain(|_, open| open.start != self.start);
        self.shared.changed.notify_waiters();
    }

    /// Holds all requests of this start until [`Self::go_on`].
    pub fn pause(&self) {
        self.shared.state.lock().paused.insert(self.start);
    }

    /// Ends [`Self::pause`].
    pub fn go_on(&self) {
        self.shared.state.lock().paused.remove(&self.start);
        self.shared.changed.notify_waiters();
    }

    /// Sets whether every read and write fails.
    pub fn set_away(&self, away: bool) {
        let mut contents = self.shared.state.lock();
        contents.away = away;
        contents.transactions.clear();
        self.shared.changed.notify_waiters();
    }

    /// Returns whether every read and write fails.
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.shared.state.lock().away
    }

    /// Loses the commits of the last `lost`, at most a minute, as a failover or a restored backup does.
    pub fn set_back(&self, lost: Duration) {
        let to = Instant::now().checked_sub(lost).unwrap_or_else(Instant::now);
        let mut contents = self.shared.state.lock();
        contents.kinds.values_mut().for_each(|table| table.set_back(to));
        if let Some(role) = contents.earlier_roles.take_back(to) {
            contents.role = role;
        }
        contents.transactions.clear();
        self.shared.changed.notify_waiters();
    }

    /// Reads the resources of one kind.
    pub fn look<R: Resource, T>(&self, look: impl FnOnce(&BTreeMap<Arc<str>, Arc<R>>) -> T) -> T {
        look(&self.shared.state.lock().table::<R>().resources)
    }

    /// Returns the newest revision of one kind.
    pub fn revision<R: Resource>(&self) -> u64 {
        self.shared.state.lock().table::<R>().revision
    }

    /// Returns the stored kinds.
    pub fn kinds(&self) -> Vec<&'static str> {
        self.shared.state.lock().kinds.keys().copied().collect()
    }

    /// Returns the keys of one kind.
    pub fn keys(&self, kind: &str) -> Vec<Arc<str>> {
        self.shared.state.lock().kinds.get(kind).map(|table| table.keys()).unwrap_or_default()
    }

    /// Makes the row with that key unreadable until it is overwritten or deleted.
    pub fn spoil(&self, kind: &str, key: Arc<str>) {
        if let Some(table) = self.shared.state.lock().kinds.get_mut(kind) {
            table.spoil(key);
        }
    }

    /// Returns the keys of the unreadable rows of one kind.
    pub fn spoilt(&self, kind: &str) -> BTreeSet<Arc<str>> {
        self.shared.state.lock().kinds.get(kind).map(|table| table.spoilt().clone()).unwrap_or_default()
    }

    /// Returns the start that holds the role now, by its row.
    pub fn held_by(&self) -> Option<u64> {
        self.shared.state.lock().role.held_by(Instant::now())
    }

    /// Returns the start that acquired the role last, unless it has released it.
    pub fn holder(&self) -> Option<u64> {
        self.shared.state.lock().role.start()
    }

    /// Reads the table of one kind.
    pub(crate) async fn read<R: Resource, T>(
        &self,
        read: impl FnOnce(&DiskTable<R>) -> T,
    ) -> Result<T, DbErr> {
        self.access().await?;
        Ok(read(self.shared.state.lock().table()))
    }

    /// Returns the hints of all hosts from now on: a kind and its revision, or some other topic.
    pub(crate) fn hints(&self) -> broadcast::Receiver<(String, Option<u64>)> {
        self.shared.hints.subscribe()
    }

    /// Returns the revision of every kind.
    pub(crate) async fn positions(&self) -> Result<Vec<(&'static str, u64)>, DbErr> {
        self.access().await?;
        let contents = self.shared.state.lock();
        Ok(contents.kinds.iter().map(|(kind, table)| (*kind, table.revision())).collect())
    }

    /// Waits for access: a start that is over gets an error, and a paused one waits.
    async fn access(&self) -> Result<(), DbErr> {
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

    async fn never<T>(&self) -> T {
        std::future::pending().await
    }

    /// Returns the error of a broken connection. A ledger reconnects to a server by itself.
    fn broken(&self, reason: &'static str) -> DbErr {
        DbErr::Conn(match self.is_shared() {
            true => RuntimeErr::SqlxError(Arc::new(sqlx::Error::Io(std::io::Error::other(reason)))),
            false => RuntimeErr::Internal(reason.to_owned()),
        })
    }
}

impl DiskContents {
    fn table<R: Resource>(&mut self) -> &mut DiskTable<R> {
        let table = self.kinds.entry(R::KIND).or_insert_with(|| Box::new(DiskTable::<R>::default()));
        let table: &mut dyn Any = table.as_mut();
        table.downcast_mut().expect("kinds have names of their own")
    }

    /// Replaces the row of the role by that of a commit.
    fn keep_role(&mut self, row: RoleRow) {
        let before = std::mem::replace(&mut self.role, row);
        self.earlier_roles.remember(before);
    }
}
