//! Everything that a ledger needs of its database. Nothing else in the ledger knows SQL.
//!
//! On a shared database the row of the kind is locked before anything is computed: it is the sequence of revisions,
//! and while one replica has it nobody else commits. On a database of one process there is nobody to keep out: the
//! row is moved when the changes are saved, and only if it is where it was.

use std::{
    collections::{BTreeMap, BTreeSet},
    marker::PhantomData,
    sync::Arc,
};

use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, IsolationLevel,
    TransactionTrait,
};

use tokio::sync::OnceCell;
use uuid::Uuid;

use super::{
    Table,
    bookkeeping::{self, Commit, Fate, Mark, Position},
    facets::Facets,
    incarnation::Incarnation,
    lineage::Teller,
    state::{DELETIONS, Everything, State},
};
use crate::{
    Context, database,
    database::Unreadable,
    fence::{self, Fence},
    hints::{Hub, Line},
    resource::{Batch, Deletion, Keyed, Resource},
};

/// Where the resources of one kind are kept.
pub(super) struct Store<T: Table> {
    database: DatabaseConnection,
    /// The other replicas; none where nobody else uses the database.
    others: Option<Arc<Line>>,
    /// Whether the server tells its lineage, once that was asked.
    teller: OnceCell<Teller>,
    table: PhantomData<fn() -> T>,
}

/// What was committed since a revision.
pub(super) enum Since<R> {
    /// Step by step, as it can be told to watchers.
    Changes { batch: Batch<R>, compacted: u64, unreadable: Vec<Unreadable>, last: Commit },
    /// The steps are not known any more, or the database has lost commits: it was restored, or its stand-in took over
    /// without the last ones.
    Anew(Everything<R>),
}

impl<T: Table> Store<T> {
    pub(super) fn new(context: &Context, database: DatabaseConnection) -> Self {
        let others = database::is_shared(&database).then(|| context.hubs.of(&context.tasks, &database));
        Self { database, others, teller: OnceCell::new(), table: PhantomData }
    }

    /// The other replicas; none where nobody else uses the database.
    pub(super) fn others(&self) -> Option<&Arc<Hub>> {
        self.others.as_ref().map(|line| &line.hub)
    }

    /// Reads all that is stored in one consistent piece, when the ledger is opened.
    pub(super) async fn read_everything(&self) -> Result<Everything<T::Kind>, DbErr> {
        bookkeeping::make(&self.database, T::Kind::KIND).await?;
        let snapshot = self.snapshot().await?;
        let mut everything = read_everything::<T>(&snapshot).await?;
        snapshot.commit().await?;
        if self.others.is_none() {
            // The file may have been restored while nobody had it open.
            everything.is_continued_by(Uuid::now_v7());
        }
        Ok(everything)
    }

    /// Reads what was committed after `held` in one consistent piece.
    pub(super) async fn read_since(&self, held: Commit) -> Result<Since<T::Kind>, DbErr> {
        let snapshot = self.snapshot().await?;
        let position = bookkeeping::position(&snapshot, T::Kind::KIND).await?;
        let since = read_since::<T>(&snapshot, &position, held).await?;
        snapshot.commit().await?;
        Ok(since)
    }

    /// Where the kind stands in the database. Does not wait for other users of it.
    pub(super) async fn position(&self) -> Result<Position, DbErr> {
        let database = self.others.as_ref().map_or(&self.database, |line| &line.database);
        bookkeeping::position(database, T::Kind::KIND).await
    }

    /// Begins to change the kind. Where others share the database, none of them commits before this ends.
    pub(super) async fn begin(&self) -> Result<Transaction<T>, DbErr> {
        let state = match self.others {
            Some(_) => {
                let teller = self.teller.get_or_try_init(|| Teller::of(&self.database)).await?;
                let transaction = self.database.begin().await?;
                let locked = bookkeeping::lock(&transaction, T::Kind::KIND, teller).await?;
                // What fails later is tried again from here, with the lock.
                transaction.execute_unprepared("SAVEPOINT locked").await?;
                Stage::Locked(transaction, locked)
            }
            None => Stage::Alone(self.database.clone(), None),
        };
        Ok(Transaction { stage: state, table: PhantomData })
    }

    /// Finds out what became of a transaction.
    pub(super) async fn fate(&self, mark: &Mark) -> Result<Fate, DbErr> {
        let database = self.others.as_ref().map_or(&self.database, |line| &line.database);
        bookkeeping::fate(database, T::Kind::KIND, mark).await
    }

    async fn snapshot(&self) -> Result<DatabaseTransaction, DbErr> {
        match self.others {
            Some(_) => {
                let (isolation, access) = (IsolationLevel::RepeatableRead, AccessMode::ReadOnly);
                self.database.begin_with_config(Some(isolation), Some(access)).await
            }
            // A transaction of SQLite always is one.
            None => self.database.begin().await,
        }
    }
}

/// Changes of a kind on their way.
pub(super) struct Transaction<T: Table> {
    stage: Stage,
    table: PhantomData<fn() -> T>,
}

enum Stage {
    /// Others share the database, and wait.
    Locked(DatabaseTransaction, bookkeeping::Locked),
    /// Nobody else uses the database, which is asked for nothing before there is something to save.
    Alone(DatabaseConnection, Option<DatabaseTransaction>),
}

impl<T: Table> Transaction<T> {
    /// Reads what others committed after `held`; none where nobody else uses the database or nobody did.
    pub(super) async fn read_since(&self, held: Commit) -> Result<Option<Since<T::Kind>>, DbErr> {
        match self.locked() {
            Some((on, locked)) if locked.lineage.is_another() => {
                read_everything::<T>(on).await.map(Since::Anew).map(Some)
            }
            Some((on, locked)) if locked.position.last != held => {
                read_since::<T>(on, &locked.position, held).await.map(Some)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Whether this is another copy of the database than that of the last commit, which may lack later ones.
    pub(super) fn is_of_another_copy(&self) -> bool {
        self.locked().is_some_and(|(_, locked)| locked.lineage.is_another())
    }

    /// Which of these fences hold, until this ends.
    pub(super) async fn check(&self, fences: &[&Fence]) -> Result<Vec<bool>, DbErr> {
        match self.locked() {
            Some((on, _)) => fence::check(on, fences).await,
            None => Ok(vec![true; fences.len()]),
        }
    }

    /// Stores what changed and moves the kind from revision `from` to `commit` of `incarnation`; forgets deletions
    /// up to `forget`. False when the kind has moved, which never happens to who locked it.
    pub(super) async fn save(
        &mut self,
        batch: &Batch<T::Kind>,
        from: u64,
        forget: Option<u64>,
        commit: Commit,
        incarnation: Uuid,
    ) -> Result<bool, DbErr> {
        let (kind, lineage) = (T::Kind::KIND, self.lineage());
        let on = self.begun().await?;
        if !bookkeeping::advance(on, kind, from, commit, &lineage, incarnation).await? {
            return Ok(false);
        }
        if !batch.deleted.is_empty() {
            let keys: Vec<Arc<str>> =
                batch.deleted.iter().map(|deletion| Arc::clone(&deletion.key)).collect();
            T::delete(on, &keys).await?;
            bookkeeping::remember(on, kind, &batch.deleted).await?;
        }
        if !batch.changed.is_empty() {
            T::save(on, &batch.changed).await?;
        }
        if let Some(up_to) = forget {
            bookkeeping::forget(on, kind, up_to).await?;
        }
        Ok(true)
    }

    /// Moves the kind on to `revision` and forgets how it got there, so that nobody resumes a watch from before. The id of
    /// the commit names the incarnation that begins with it.
    pub(super) async fn break_off(&mut self, from: u64, revision: u64) -> Result<Commit, DbErr> {
        let (kind, lineage, commit) = (T::Kind::KIND, self.lineage(), Commit::to(revision));
        let on = self.begun().await?;
        bookkeeping::advance(on, kind, from, commit, &lineage, commit.id).await?;
        bookkeeping::forget(on, kind, revision).await?;
        Ok(commit)
    }

    /// Undoes what was saved, after an error, but keeps the lock.
    pub(super) async fn undo(&mut self) -> Result<(), DbErr> {
        match &mut self.stage {
            Stage::Locked(on, _) => on.execute_unprepared("ROLLBACK TO SAVEPOINT locked").await.map(drop),
            Stage::Alone(_, begun) => match begun.take() {
                Some(begun) => begun.rollback().await,
                None => Ok(()),
            },
        }
    }

    /// By what the fate of this can be found out when it takes the kind to `revision`.
    pub(super) fn mark(&self, revision: u64) -> Mark {
        let transaction = self.locked().map(|(_, locked)| locked.transaction.clone());
        Mark { transaction, commit: Commit::to(revision) }
    }

    pub(super) async fn commit(self) -> Result<(), DbErr> {
        match self.stage {
            Stage::Locked(begun, _) | Stage::Alone(_, Some(begun)) => begun.commit().await,
            Stage::Alone(_, None) => Ok(()),
        }
    }

    fn locked(&self) -> Option<(&DatabaseTransaction, &bookkeeping::Locked)> {
        match &self.stage {
            Stage::Locked(on, locked) => Some((on, locked)),
            Stage::Alone(..) => None,
        }
    }

    /// What to write down of the database; empty where nothing is known.
    fn lineage(&self) -> String {
        self.locked().map(|(_, locked)| locked.lineage.now.clone()).unwrap_or_default()
    }

    async fn begun(&mut self) -> Result<&DatabaseTransaction, DbErr> {
        match &mut self.stage {
            Stage::Locked(begun, _) | Stage::Alone(_, Some(begun)) => Ok(begun),
            Stage::Alone(database, begun) => Ok(begun.insert(database.begin().await?)),
        }
    }
}

async fn read_everything<T: Table>(on: &DatabaseTransaction) -> Result<Everything<T::Kind>, DbErr> {
    let position = bookkeeping::position(on, T::Kind::KIND).await?;
    let (readable, unreadable) = sort_out(T::load(on, None).await?);
    let deletions = bookkeeping::deletions(on, T::Kind::KIND, 0).await?;
    let resources: BTreeSet<_> = readable.into_iter().map(|one| Keyed(Arc::new(one))).collect();
    let Position { last, compacted, incarnation } = position;
    let (revision, facets) = (last.revision, Facets::of(&resources));
    Ok(Everything {
        state: State {
            resources,
            deletions,
            revision,
            compacted,
            incarnation: Incarnation::of(incarnation),
            remembers: DELETIONS,
            unreadable: BTreeMap::new(),
            facets,
        },
        unreadable,
        last,
    })
}

async fn read_since<T: Table>(
    on: &DatabaseTransaction,
    position: &Position,
    held: Commit,
) -> Result<Since<T::Kind>, DbErr> {
    let &Position { last, compacted, .. } = position;
    if last.is_without(held) || held.revision < compacted {
        return read_everything::<T>(on).await.map(Since::Anew);
    }
    let (mut changed, unreadable) = sort_out(T::load(on, Some(held.revision)).await?);
    changed.sort_unstable_by_key(Resource::revision);
    let deleted = bookkeeping::deletions(on, T::Kind::KIND, held.revision).await?;
    let changed = changed.into_iter().map(Arc::new).collect();
    let batch = Batch { changed, deleted, revision: last.revision, synced: false };
    Ok(Since::Changes { batch, compacted, unreadable, last })
}

fn sort_out<R>(rows: Vec<Result<R, Unreadable>>) -> (Vec<R>, Vec<Unreadable>) {
    let (mut readable, mut unreadable) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        match row {
            Ok(resource) => readable.push(resource),
            Err(why) => unreadable.push(why),
        }
    }
    (readable, unreadable)
}

impl<R> Since<R> {
    /// Moves the kind to `commit`, where another incarnation begins: no watch resumes from before it.
    pub(super) fn moved_to(mut self, commit: Commit) -> Self {
        if let Self::Anew(everything) = &mut self {
            everything.last = commit;
            everything.state.revision = commit.revision;
            everything.state.compacted = commit.revision;
            everything.state.incarnation = Incarnation::of(commit.id);
            everything.state.deletions.clear();
        }
        self
    }

    /// The last commit, where the kind stands.
    pub(super) fn last(&self) -> Commit {
        match self {
            Self::Changes { last, .. } => *last,
            Self::Anew(everything) => everything.last,
        }
    }
}

/// A deletion of each row that was readable before and is not any more: to who watches it is gone.
pub(super) fn withdrawn<R: Resource>(
    unreadable: &[Unreadable],
    held: &State<R>,
    revision: u64,
) -> Vec<Deletion> {
    let known = unreadable.iter().filter(|row| held.resources.contains(row.key.as_str()));
    known.map(|row| Deletion { key: row.key.as_str().into(), revision }).collect()
}
