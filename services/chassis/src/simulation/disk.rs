//! A database in memory: a disk that survives the death of its host.

use std::{
    any::Any,
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use sea_orm::{
    DatabaseConnection, DbErr, RuntimeErr, SqlxSqliteConnector,
    sqlx::{self, sqlite::SqlitePoolOptions},
};
use tokio::time::Instant;

use crate::resource::{Deletion, Resource};

/// The address of a database that there is not: everything is kept on the disk of the context.
pub const NO_DATABASE: &str = "sqlite:none";

/// How far back a disk can be set.
const REMEMBERED: Duration = Duration::from_secs(1);

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
}

/// Says what happens to a disk, and is told.
pub trait Custodian: Send + Sync {
    /// How long the next commit of `kind` takes, and what becomes of it.
    fn fate(&self, kind: &'static str) -> (Duration, Fate);

    /// A commit of `kind` was kept: a [`crate::resource::Batch`] of its resources.
    fn kept(&self, kind: &'static str, batch: &dyn Any);

    /// The host of the disk dies, now.
    fn dies(&self);
}

/// What one host keeps, by kind. Clones share it, as starts of the host do, of which only the last has access.
#[derive(Clone)]
pub struct Disk {
    shared: Arc<Shared>,
    start: u64,
}

struct Shared {
    custodian: Box<dyn Custodian>,
    state: Mutex<Contents>,
}

struct Contents {
    kinds: BTreeMap<&'static str, Box<dyn Kept>>,
    /// The start that has access.
    start: u64,
    /// Nothing can be read or written: the database is away.
    away: bool,
}

/// Everything of one kind.
pub(crate) struct Shelf<R> {
    pub(crate) resources: BTreeMap<Arc<str>, Arc<R>>,
    pub(crate) deletions: Vec<Deletion>,
    pub(crate) revision: u64,
    pub(crate) compacted: u64,
    earlier: VecDeque<(Instant, Box<Shelf<R>>)>,
}

/// A shelf of any kind.
trait Kept: Any + Send {
    fn set_back(&mut self, to: Instant);
}

impl<R: Resource> Kept for Shelf<R> {
    fn set_back(&mut self, to: Instant) {
        let mut earlier = std::mem::take(&mut self.earlier);
        while let Some((_, before)) = earlier.pop_back_if(|(at, _)| *at > to) {
            *self = *before;
        }
        self.earlier = earlier;
    }
}

impl<R> Default for Shelf<R> {
    fn default() -> Self {
        Self {
            resources: BTreeMap::new(),
            deletions: Vec::new(),
            revision: 0,
            compacted: 0,
            earlier: VecDeque::new(),
        }
    }
}

impl<R> Shelf<R> {
    fn copy(&self) -> Self {
        Self {
            resources: self.resources.clone(),
            deletions: self.deletions.clone(),
            revision: self.revision,
            compacted: self.compacted,
            earlier: VecDeque::new(),
        }
    }
}

impl Disk {
    /// An empty disk.
    #[must_use]
    pub fn new(custodian: impl Custodian + 'static) -> Self {
        let contents = Contents { kinds: BTreeMap::new(), start: 0, away: false };
        Self {
            shared: Arc::new(Shared { custodian: Box::new(custodian), state: Mutex::new(contents) }),
            start: 0,
        }
    }

    /// Access for a new start of the host. All earlier ones have none any more.
    #[must_use]
    pub fn mount(&self) -> Self {
        let mut contents = self.shared.state.lock();
        contents.start += 1;
        Self { shared: Arc::clone(&self.shared), start: contents.start }
    }

    /// Takes the access away from every start.
    pub fn unmount(&self) {
        self.shared.state.lock().start += 1;
    }

    /// Lets every read and write fail, or no more.
    pub fn set_away(&self, away: bool) {
        self.shared.state.lock().away = away;
    }

    /// Loses what was committed in the last `lost`, at most a second, as a stand-in does that takes over.
    pub fn set_back(&self, lost: Duration) {
        let to = Instant::now().checked_sub(lost).unwrap_or_else(Instant::now);
        self.shared.state.lock().kinds.values_mut().for_each(|shelf| shelf.set_back(to));
    }

    /// Looks at what is kept of one kind.
    pub fn look<R: Resource, T>(&self, look: impl FnOnce(&BTreeMap<Arc<str>, Arc<R>>) -> T) -> T {
        look(&self.shared.state.lock().shelf::<R>().resources)
    }

    /// The newest revision of one kind.
    pub fn revision<R: Resource>(&self) -> u64 {
        self.shared.state.lock().shelf::<R>().revision
    }

    /// Reads what is kept of one kind.
    pub(crate) async fn read<R: Resource, T>(&self, read: impl FnOnce(&Shelf<R>) -> T) -> Result<T, DbErr> {
        self.access().await?;
        Ok(read(self.shared.state.lock().shelf()))
    }

    /// Changes what is kept of one kind. `change` answers none if it changed nothing, and otherwise what to tell the
    /// custodian.
    pub(crate) async fn commit<R: Resource, B: Any>(
        &self,
        change: impl FnOnce(&mut Shelf<R>) -> Option<B>,
    ) -> Result<bool, DbErr> {
        self.access().await?;
        let custodian = &self.shared.custodian;
        let (takes, fate) = custodian.fate(R::KIND);
        tokio::time::sleep(takes).await;
        self.access().await?;
        match fate {
            Fate::Failed => return Err(broken("the disk is full")),
            Fate::DiesBefore => {
                custodian.dies();
                return self.never().await;
            }
            Fate::Kept | Fate::Unheard | Fate::DiesAfter => {}
        }
        let kept = {
            let mut contents = self.shared.state.lock();
            let shelf = contents.shelf::<R>();
            let before = shelf.copy();
            let kept = change(shelf);
            if kept.is_some() {
                shelf.remember(before);
            }
            kept
        };
        if let Some(batch) = &kept {
            custodian.kept(R::KIND, batch);
        }
        match fate {
            Fate::Unheard => Err(broken("the connection broke before the commit was confirmed")),
            Fate::DiesAfter => {
                custodian.dies();
                self.never().await
            }
            Fate::Kept | Fate::Failed | Fate::DiesBefore => Ok(kept.is_some()),
        }
    }

    /// A start that is over learns nothing any more.
    async fn access(&self) -> Result<(), DbErr> {
        let (over, away) = {
            let contents = self.shared.state.lock();
            (contents.start != self.start, contents.away)
        };
        if over {
            return self.never().await;
        }
        if away { Err(broken("connection refused")) } else { Ok(()) }
    }

    async fn never<T>(&self) -> T {
        std::future::pending().await
    }
}

impl Contents {
    fn shelf<R: Resource>(&mut self) -> &mut Shelf<R> {
        let shelf = self.kinds.entry(R::KIND).or_insert_with(|| Box::new(Shelf::<R>::default()));
        let shelf: &mut dyn Any = shelf.as_mut();
        shelf.downcast_mut().expect("kinds have names of their own")
    }
}

impl<R> Shelf<R> {
    fn remember(&mut self, before: Self) {
        let now = Instant::now();
        self.earlier.push_back((now, Box::new(before)));
        while self.earlier.front().is_some_and(|(at, _)| *at + REMEMBERED < now) {
            self.earlier.pop_front();
        }
    }
}

fn broken(reason: &'static str) -> DbErr {
    DbErr::Conn(RuntimeErr::Internal(reason.to_owned()))
}

/// What stands for the connection where everything is kept on a disk in memory. Nobody uses it.
pub(crate) fn database() -> DatabaseConnection {
    let pool = SqlitePoolOptions::new().idle_timeout(None).max_lifetime(None);
    let options = sqlx::sqlite::SqliteConnectOptions::new().in_memory(true);
    SqlxSqliteConnector::from_sqlx_sqlite_pool(pool.connect_lazy_with(options))
}
