//! Store of a ledger: the database, or the disk in memory of a simulation's context.

use std::{collections::BTreeMap, sync::Arc};

use sea_orm::{DatabaseConnection, DbErr};
use uuid::Uuid;

use super::{
    Table,
    bookkeeping::{LedgerCommit, LedgerPosition, TransactionIdentity, TransactionOutcome},
    events::EventRow,
    facets::FacetIndex,
    incarnation::LedgerIncarnation,
    state::{DELETIONS, LedgerState, LoadedState},
    store::{self, CommitsSince},
};
use crate::{
    Context,
    store::{
        disk::{self, DiskTable, SimulatedDisk, TransactionLock},
        fence::Fence,
        hints::{HintHub, HintHubs},
        resource::{Batch, KeyedResource, Resource},
    },
};

/// Store of the resources of one kind.
pub(super) enum LedgerStore<T: Table> {
    Database(store::TableStore<T>),
    Disk(SimulatedDisk, Option<Arc<HintHub>>),
}

/// Changes of a kind in one transaction.
pub(super) enum LedgerTransaction<T: Table> {
    Database(store::TableTransaction<T>),
    Disk(OnDisk<T::Kind>),
}

/// Changes in a transaction on a disk in memory.
pub(super) struct OnDisk<R> {
    transaction: disk::DiskTransaction,
    changes: Vec<DiskChange<R>>,
    is_another_copy: bool,
}

/// Change of a table, valid if the table is still at the revision `from`.
pub(super) struct DiskChange<R> {
    from: u64,
    batch: Batch<R>,
    commit: Uuid,
    forget: Option<u64>,
    incarnation: Uuid,
}

impl<T: Table> LedgerStore<T> {
    pub(super) fn new(context: &Context, database: DatabaseConnection) -> Self {
        match SimulatedDisk::attached_to(context) {
            Some(disk) => {
                let hubs = context.shared.of::<HintHubs>();
                let others = disk.is_shared().then(|| hubs.of_disk(&context.tasks, &disk));
                Self::Disk(disk, others)
            }
            None => Self::Database(store::TableStore::new(context, database)),
        }
    }

    pub(super) fn others(&self) -> Option<&Arc<HintHub>> {
        match self {
            Self::Database(store) => store.others(),
            Self::Disk(_, others) => others.as_ref(),
        }
    }

    pub(super) async fn read_everything(&self) -> Result<LoadedState<T::Kind>, DbErr> {
        match self {
            Self::Database(store) => store.read_everything().await,
            Self::Disk(disk, others) => {
                let remembers = disk.remembers();
                let mut everything = disk.read(|table| everything(table, remembers)).await?;
                if others.is_none() {
                    everything.is_continued_by(Uuid::now_v7());
                }
                Ok(everything)
            }
        }
    }

    pub(super) async fn is_copy(&self) -> Result<bool, DbErr> {
        match self {
            Self::Database(store) => store.is_copy().await,
            Self::Disk(disk, None) => Ok(disk.read(position::<T::Kind>).await?.is_copy),
            Self::Disk(_, Some(_)) => Ok(false),
        }
    }

    pub(super) async fn read_since(&self, held: LedgerCommit) -> Result<CommitsSince<T::Kind>, DbErr> {
        match self {
            Self::Database(store) => store.read_since(held).await,
            Self::Disk(disk, _) => {
                let remembers = disk.remembers();
                disk.read(|table| since(table, held, remembers)).await
            }
        }
    }

    pub(super) async fn position(&self) -> Result<LedgerPosition, DbErr> {
        match self {
            Self::Database(store) => store.position().await,
            Self::Disk(disk, _) => disk.read(position::<T::Kind>).await,
        }
    }

    pub(super) async fn begin(&self) -> Result<LedgerTransaction<T>, DbErr> {
        match self {
            Self::Database(store) => store.begin().await.map(LedgerTransaction::Database),
            Self::Disk(disk, _) => {
                let transaction = disk.begin(TransactionLock::Kind(T::Kind::KIND)).await?;
                let is_another_copy =
                    transaction.read(|table: &DiskTable<T::Kind>| table.is_another_copy).await?;
                Ok(LedgerTransaction::Disk(OnDisk { transaction, changes: Vec::new(), is_another_copy }))
            }
        }
    }

    pub(super) async fn outcome(&self, identity: &TransactionIdentity) -> Result<TransactionOutcome, DbErr> {
        match self {
            Self::Database(store) => store.outcome(identity).await,
            Self::Disk(disk, _) => {
                let at = disk.read(position::<T::Kind>).await?.last;
                Ok(match at {
                    _ if at == identity.commit => TransactionOutcome::Committed,
                    // The commit can never happen: its transaction has ended.
                    _ if at.revision < identity.commit.revision => TransactionOutcome::NotCommitted,
                    _ => TransactionOutcome::Unknown,
                })
            }
        }
    }
}

impl<T: Table> LedgerTransaction<T> {
    pub(super) async fn read_since(
        &self,
        held: LedgerCommit,
    ) -> Result<Option<CommitsSince<T::Kind>>, DbErr> {
        match self {
            Self::Database(transaction) => transaction.read_since(held).await,
            Self::Disk(on) => {
                let remembers = on.transaction.disk().remembers();
                let news = |table: &DiskTable<_>| match last(table) {
                    _ if on.is_another_copy => Some(CommitsSince::Anew(everything(table, remembers))),
                    last if last != held => Some(since(table, held, remembers)),
                    _ => None,
                };
                on.transaction.read(news).await
            }
        }
    }

    pub(super) fn is_of_another_copy(&self) -> bool {
        match self {
            Self::Database(transaction) => transaction.is_of_another_copy(),
            Self::Disk(on) => on.is_another_copy,
        }
    }

    pub(super) async fn check(&self, fences: &[&Fence]) -> Result<Vec<bool>, DbErr> {
        match self {
            Self::Database(transaction) => transaction.check(fences).await,
            Self::Disk(on) => on.transaction.check(fences).await,
        }
    }

    pub(super) async fn save(
        &mut self,
        batch: &Batch<T::Kind>,
        events: &[EventRow],
        from: u64,
        forget: Option<u64>,
        commit: LedgerCommit,
        incarnation: Uuid,
    ) -> Result<bool, DbErr> {
        match self {
            Self::Database(transaction) => {
                transaction.save(batch, events, from, forget, commit, incarnation).await
            }
            // A disk in memory keeps no events: nothing of a simulation reads them.
            Self::Disk(OnDisk { transaction, changes, .. }) => {
                let moved = changes.last().map(|change| change.batch.revision);
                let at =
                    transaction.read(|table: &DiskTable<T::Kind>| moved.unwrap_or(table.revision)).await?;
                let batch = batch.clone();
                changes.push(DiskChange { from, batch, commit: commit.id, forget, incarnation });
                Ok(at == from)
            }
        }
    }

    pub(super) async fn prune_events(&mut self, from: u64, to: u64, kept: u64) -> Result<(), DbErr> {
        match self {
            Self::Database(transaction) => transaction.prune_events(from, to, kept).await,
            Self::Disk(_) => Ok(()),
        }
    }

    pub(super) async fn break_off(&mut self, from: u64, revision: u64) -> Result<LedgerCommit, DbErr> {
        match self {
            Self::Database(transaction) => transaction.break_off(from, revision).await,
            Self::Disk(OnDisk { changes, .. }) => {
                let batch = Batch { changed: Vec::new(), deleted: Vec::new(), revision, synced: false };
                let commit = LedgerCommit::to(revision);
                let (forget, incarnation) = (Some(revision), commit.id);
                changes.push(DiskChange { from, batch, commit: commit.id, forget, incarnation });
                Ok(commit)
            }
        }
    }

    pub(super) async fn undo(&mut self) -> Result<(), DbErr> {
        match self {
            Self::Database(transaction) => transaction.undo().await,
            Self::Disk(OnDisk { changes, .. }) => {
                changes.clear();
                Ok(())
            }
        }
    }

    pub(super) fn identity(&self, revision: u64) -> TransactionIdentity {
        match self {
            Self::Database(transaction) => transaction.identity(revision),
            Self::Disk(_) => TransactionIdentity { transaction: None, commit: LedgerCommit::to(revision) },
        }
    }

    pub(super) async fn commit(self) -> Result<(), DbErr> {
        match self {
            Self::Database(transaction) => transaction.commit().await,
            Self::Disk(on) if on.changes.is_empty() => Ok(()),
            Self::Disk(OnDisk { transaction, changes, .. }) => {
                let kept = transaction.commit(|table| apply(changes, table)).await?;
                if kept { Ok(()) } else { Err(DbErr::Custom("the kind has moved".to_owned())) }
            }
        }
    }
}

/// Applies all changes or none, and returns their sum.
fn apply<R: Resource>(changes: Vec<DiskChange<R>>, table: &mut DiskTable<R>) -> Option<Batch<R>> {
    if changes.first()?.from != table.revision {
        return None;
    }
    let mut sum = Batch { changed: Vec::new(), deleted: Vec::new(), revision: 0, synced: false };
    for change in changes {
        let batch = change.apply(table);
        sum.changed.extend(batch.changed);
        sum.deleted.extend(batch.deleted);
        sum.revision = batch.revision;
    }
    Some(sum)
}

impl<R: Resource> DiskChange<R> {
    fn apply(self, table: &mut DiskTable<R>) -> Batch<R> {
        let Self { from: _, batch, commit, forget, incarnation } = self;
        (table.revision, table.last_commit) = (batch.revision, commit);
        table.is_another_copy = false;
        table.incarnation = incarnation;
        batch.deleted.iter().for_each(|deletion| table.delete(deletion));
        batch.changed.iter().for_each(|resource| table.put(resource));
        if let Some(up_to) = forget {
            table.deletions.retain(|deletion| deletion.revision > up_to);
            table.compacted = up_to;
        }
        batch
    }
}

fn last<R>(table: &DiskTable<R>) -> LedgerCommit {
    LedgerCommit { revision: table.revision, id: table.last_commit }
}

fn position<R>(table: &DiskTable<R>) -> LedgerPosition {
    LedgerPosition {
        last: last(table),
        compacted: table.compacted,
        incarnation: table.incarnation,
        is_copy: table.is_another_copy,
    }
}

fn everything<R: Resource>(table: &DiskTable<R>, remembers: Option<usize>) -> LoadedState<R> {
    let resources = table.readable().cloned().map(KeyedResource).collect();
    let state = LedgerState {
        facets: FacetIndex::of(&resources),
        resources,
        deletions: table.deletions.clone(),
        revision: table.revision,
        compacted: table.compacted,
        incarnation: LedgerIncarnation::of(table.incarnation),
        unreadable: BTreeMap::new(),
        remembers: remembers.unwrap_or(DELETIONS),
    };
    LoadedState { state, unreadable: table.unreadable(0), last: last(table) }
}

fn since<R: Resource>(table: &DiskTable<R>, held: LedgerCommit, remembers: Option<usize>) -> CommitsSince<R> {
    let (last, held) = match last(table) {
        last if last.is_without(held) || held.revision < table.compacted => {
            return CommitsSince::Anew(everything(table, remembers));
        }
        last => (last, held.revision),
    };
    let mut changed: Vec<_> = table.readable().filter(|one| one.revision() > held).cloned().collect();
    changed.sort_unstable_by_key(|one| one.revision());
    let deleted = table.deletions.iter().filter(|one| one.revision > held).cloned().collect();
    let batch = Batch { changed, deleted, revision: table.revision, synced: false };
    let unreadable = table.unreadable(held);
    CommitsSince::Changes { batch, compacted: table.compacted, unreadable, last }
}
