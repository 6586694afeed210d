//! The ledger's access to its database. Nothing else in the ledger knows SQL.
//!
//! On a shared database the row of the kind is locked before anything is computed: it is the sequence of revisions, and
//! only its holder commits. A database of one process needs no lock: the row is moved when the changes are saved, and
//! only if it has not moved.

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
    bookkeeping::{self, LedgerCommit, LedgerPosition, TransactionIdentity, TransactionOutcome},
    events::{self, EventRow},
    facets::FacetIndex,
    incarnation::LedgerIncarnation,
    lineage::LineageSource,
    state::{DELETIONS, LedgerState, LoadedState},
};
use crate::{
    Context,
    process::clock,
    store::{
        database::{self, UnreadableRow},
        fence::{self, Fence},
        hints::{HintConnections, HintHub, HintHubs},
        resource::{Batch, KeyedResource, Resource, ResourceDeletion},
    },
};

/// Store of the resources of one kind.
pub(super) struct TableStore<T: Table> {
    database: DatabaseConnection,
    /// Other replicas; `None` where the database is not shared.
    others: Option<Arc<HintConnections>>,
    /// Source of the server's lineage, once detected.
    lineage_source: OnceCell<LineageSource>,
    table: PhantomData<fn() -> T>,
}

/// Commits since a revision.
pub(super) enum CommitsSince<R> {
    /// Single changes, as watchers get them.
    Changes { batch: Batch<R>, compacted: u64, unreadable: Vec<UnreadableRow>, last: LedgerCommit },
    /// A whole state: the changes are forgotten, or the database has lost commits, by a restored backup or by the
    /// promotion of a standby without the last ones.
    Anew(LoadedState<R>),
}

impl<T: Table> TableStore<T> {
    pub(super) fn new(context: &Context, database: DatabaseConnection) -> Self {
        let others = database::is_shared(&database);
        let others = others.then(|| context.shared.of::<HintHubs>().of(&context.tasks, &database));
        Self { database, others, lineage_source: OnceCell::new(), table: PhantomData }
    }

    /// Returns the other replicas; `None` where the database is not shared.
    pub(super) fn others(&self) -> Option<&Arc<HintHub>> {
        self.others.as_ref().map(|connections| &connections.hub)
    }

    /// Reads all that is stored in one consistent piece, when the ledger is opened.
    pub(super) async fn read_everything(&self) -> Result<LoadedState<T::Kind>, DbErr> {
        bookkeeping::make(&self.database, T::Kind::KIND).await?;
        let snapshot = self.snapshot().await?;
        let mut everything = read_everything::<T>(&snapshot).await?;
        snapshot.commit().await?;
        if self.others.is_none() {
            // The file may have been restored while it was closed.
            everything.is_continued_by(Uuid::now_v7());
        }
        Ok(everything)
    }

    /// Returns whether the database is a backup that no ledger of the kind was opened on yet.
    pub(super) async fn is_copy(&self) -> Result<bool, DbErr> {
        Ok(self.others.is_none() && self.position().await?.is_copy)
    }

    /// Reads the commits after `held` in one consistent snapshot.
    pub(super) async fn read_since(&self, held: LedgerCommit) -> Result<CommitsSince<T::Kind>, DbErr> {
        let snapshot = self.snapshot().await?;
        let position = bookkeeping::position(&snapshot, T::Kind::KIND).await?;
        let since = read_since::<T>(&snapshot, &position, held).await?;
        snapshot.commit().await?;
        Ok(since)
    }

    /// Returns the position of the kind in the database. Does not wait for other users of it.
    pub(super) async fn position(&self) -> Result<LedgerPosition, DbErr> {
        let database = self.others.as_ref().map_or(&self.database, |connections| &connections.database);
        bookkeeping::position(database, T::Kind::KIND).await
    }

    /// Begins to change the kind. On a shared database, no other replica commits before this transaction ends.
    pub(super) async fn begin(&self) -> Result<TableTransaction<T>, DbErr> {
        let state = match self.others {
            Some(_) => {
                let lineage_source =
                    self.lineage_source.get_or_try_init(|| LineageSource::of(&self.database)).await?;
                let transaction = self.database.begin().await?;
                let locked = bookkeeping::lock(&transaction, T::Kind::KIND, lineage_source).await?;
                // Later failures are retried from here, under the same lock.
                transaction.execute_unprepared("SAVEPOINT locked").await?;
                TransactionStage::Locked(transaction, locked)
            }
            None => TransactionStage::Alone(self.database.clone(), None),
        };
        Ok(TableTransaction { stage: state, table: PhantomData })
    }

    /// Looks up the outcome of a transaction.
    pub(super) async fn outcome(&self, identity: &TransactionIdentity) -> Result<TransactionOutcome, DbErr> {
        let database = self.others.as_ref().map_or(&self.database, |connections| &connections.database);
        bookkeeping::outcome(database, T::Kind::KIND, identity).await
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
pub(super) struct TableTransaction<T: Table> {
    stage: TransactionStage,
    table: PhantomData<fn() -> T>,
}

enum TransactionStage {
    /// The database is shared, and other replicas wait.
    Locked(DatabaseTransaction, bookkeeping::LockedRow),
    /// The database is not shared; the transaction begins with the first write.
    Alone(DatabaseConnection, Option<DatabaseTransaction>),
}

impl<T: Table> TableTransaction<T> {
    /// Reads the commits of other replicas after `held`; `None` where the database is not shared or has none.
    pub(super) async fn read_since(
        &self,
        held: LedgerCommit,
    ) -> Result<Option<CommitsSince<T::Kind>>, DbErr> {
        match self.locked() {
            Some((on, locked)) if locked.lineage.is_another() => {
                read_everything::<T>(on).await.map(CommitsSince::Anew).map(Some)
            }
            Some((on, locked)) if locked.position.last != held => {
                read_since::<T>(on, &locked.position, held).await.map(Some)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Returns whether this is another copy of the database than that of the last commit, which may lack later ones.
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

    /// Stores the changes and moves the kind from revision `from` to `commit` of `incarnation`; forgets deletions up to
    /// `forget`. False when the kind has moved, which never happens under its lock.
    pub(super) async fn save(
        &mut self,
        batch: &Batch<T::Kind>,
        events: &[EventRow],
        from: u64,
        forget: Option<u64>,
        commit: LedgerCommit,
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
        events::insert(on, kind, events).await?;
        if let Some(up_to) = forget {
            bookkeeping::forget(on, kind, up_to).await?;
        }
        Ok(true)
    }

    /// Deletes events that are too old once the kind has moved from revision `from` to `to`, but those of the last
    /// `kept` revisions.
    pub(super) async fn prune_events(&mut self, from: u64, to: u64, kept: u64) -> Result<(), DbErr> {
        if T::EVENTS.is_none() {
            return Ok(());
        }
        let on = self.begun().await?;
        events::prune(on, T::Kind::KIND, (from, to), kept, clock::now()).await
    }

    /// Moves the kind on to `revision` and forgets all earlier deletions, so that no watch resumes from before. The id
    /// of the commit names the incarnation that begins with it.
    pub(super) async fn break_off(&mut self, from: u64, revision: u64) -> Result<LedgerCommit, DbErr> {
        let (kind, lineage, commit) = (T::Kind::KIND, self.lineage(), LedgerCommit::to(revision));
        let on = self.begun().await?;
        bookkeeping::advance(on, kind, from, commit, &lineage, commit.id).await?;
        bookkeeping::forget(on, kind, revision).await?;
        Ok(commit)
    }

    /// Rolls back the saved changes after an error, but keeps the lock.
    pub(super) async fn undo(&mut self) -> Result<(), DbErr> {
        match &mut self.stage {
            TransactionStage::Locked(on, _) => {
                on.execute_unprepared("ROLLBACK TO SAVEPOINT locked").await.map(drop)
            }
            TransactionStage::Alone(_, begun) => match begun.take() {
                Some(begun) => begun.rollback().await,
                None => Ok(()),
            },
        }
    }

    /// Identity of this transaction if it takes the kind to `revision`.
    pub(super) fn identity(&self, revision: u64) -> TransactionIdentity {
        let transaction = self.locked().map(|(_, locked)| locked.transaction.clone());
        TransactionIdentity { transaction, commit: LedgerCommit::to(revision) }
    }

    pub(super) async fn commit(self) -> Result<(), DbErr> {
        match self.stage {
            TransactionStage::Locked(begun, _) | TransactionStage::Alone(_, Some(begun)) => {
                begun.commit().await
            }
            TransactionStage::Alone(_, None) => Ok(()),
        }
    }

    fn locked(&self) -> Option<(&DatabaseTransaction, &bookkeeping::LockedRow)> {
        match &self.stage {
            TransactionStage::Locked(on, locked) => Some((on, locked)),
            TransactionStage::Alone(..) => None,
        }
    }

    /// Lineage to record; empty where unknown.
    fn lineage(&self) -> String {
        self.locked().map(|(_, locked)| locked.lineage.now.clone()).unwrap_or_default()
    }

    async fn begun(&mut self) -> Result<&DatabaseTransaction, DbErr> {
        match &mut self.stage {
            TransactionStage::Locked(begun, _) | TransactionStage::Alone(_, Some(begun)) => Ok(begun),
            TransactionStage::Alone(database, begun) => Ok(begun.insert(database.begin().await?)),
        }
    }
}

async fn read_everything<T: Table>(on: &DatabaseTransaction) -> Result<LoadedState<T::Kind>, DbErr> {
    let position = bookkeeping::position(on, T::Kind::KIND).await?;
    let (readable, unreadable) = sort_out(T::load(on, None).await?);
    let deletions = bookkeeping::deletions(on, T::Kind::KIND, 0).await?;
    let resources: BTreeSet<_> = readable.into_iter().map(|one| KeyedResource(Arc::new(one))).collect();
    let LedgerPosition { last, compacted, incarnation, is_copy: _ } = position;
    let (revision, facets) = (last.revision, FacetIndex::of(&resources));
    Ok(LoadedState {
        state: LedgerState {
            resources,
            deletions,
            revision,
            compacted,
            incarnation: LedgerIncarnation::of(incarnation),
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
    position: &LedgerPosition,
    held: LedgerCommit,
) -> Result<CommitsSince<T::Kind>, DbErr> {
    let &LedgerPosition { last, compacted, .. } = position;
    if last.is_without(held) || held.revision < compacted {
        return read_everything::<T>(on).await.map(CommitsSince::Anew);
    }
    let (mut changed, unreadable) = sort_out(T::load(on, Some(held.revision)).await?);
    changed.sort_unstable_by_key(Resource::revision);
    let deleted = bookkeeping::deletions(on, T::Kind::KIND, held.revision).await?;
    let changed = changed.into_iter().map(Arc::new).collect();
    let batch = Batch { changed, deleted, revision: last.revision, synced: false };
    Ok(CommitsSince::Changes { batch, compacted, unreadable, last })
}

fn sort_out<R>(rows: Vec<Result<R, UnreadableRow>>) -> (Vec<R>, Vec<UnreadableRow>) {
    let (mut readable, mut unreadable) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        match row {
            Ok(resource) => readable.push(resource),
            Err(why) => unreadable.push(why),
        }
    }
    (readable, unreadable)
}

impl<R> CommitsSince<R> {
    /// Moves the kind to `commit`, where another incarnation begins: no watch resumes from before it.
    pub(super) fn moved_to(mut self, commit: LedgerCommit) -> Self {
        if let Self::Anew(everything) = &mut self {
            everything.last = commit;
            everything.state.revision = commit.revision;
            everything.state.compacted = commit.revision;
            everything.state.incarnation = LedgerIncarnation::of(commit.id);
            everything.state.deletions.clear();
        }
        self
    }

    /// The last commit, where the kind stands.
    pub(super) fn last(&self) -> LedgerCommit {
        match self {
            Self::Changes { last, .. } => *last,
            Self::Anew(everything) => everything.last,
        }
    }
}

/// A deletion of each row that has become unreadable: watchers see it deleted.
pub(super) fn withdrawn<R: Resource>(
    unreadable: &[UnreadableRow],
    held: &LedgerState<R>,
    revision: u64,
) -> Vec<ResourceDeletion> {
    let known = unreadable.iter().filter(|row| held.resources.contains(row.key.as_str()));
    known.map(|row| ResourceDeletion { key: row.key.as_str().into(), revision }).collect()
}
