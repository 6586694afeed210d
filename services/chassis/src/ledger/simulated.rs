//! Either store of a ledger: the database, or the disk in memory that the context of a simulation has.

use std::{collections::BTreeMap, sync::Arc};

use sea_orm::{DatabaseConnection, DbErr};
use uuid::Uuid;

use super::{
    Table,
    store::{self, Commit, Everything, Fate, Mark, Position, Since},
    view::State,
};
use crate::{
    Context,
    hints::Hub,
    lease::Fence,
    resource::{Batch, Resource},
    simulation::{Disk, Shelf},
};

/// Where the resources of one kind are kept.
pub(super) enum Store<T: Table> {
    Database(store::Store<T>),
    Disk(Disk),
}

/// Changes of a kind on their way.
pub(super) enum Transaction<T: Table> {
    Database(store::Transaction<T>),
    Disk(Disk, Vec<Change<T::Kind>>),
}

/// What is to be done to a shelf, if it is where it was.
pub(super) struct Change<R> {
    from: u64,
    batch: Batch<R>,
    forget: Option<u64>,
}

impl<T: Table> Store<T> {
    pub(super) fn new(context: &Context, database: DatabaseConnection) -> Self {
        match &context.disk {
            Some(disk) => Self::Disk(disk.clone()),
            None => Self::Database(store::Store::new(context, database)),
        }
    }

    pub(super) fn others(&self) -> Option<&Arc<Hub>> {
        match self {
            Self::Database(store) => store.others(),
            Self::Disk(_) => None,
        }
    }

    pub(super) async fn read_everything(&self) -> Result<Everything<T::Kind>, DbErr> {
        match self {
            Self::Database(store) => store.read_everything().await,
            Self::Disk(disk) => disk.read(everything).await,
        }
    }

    pub(super) async fn read_since(&self, held: Commit) -> Result<Since<T::Kind>, DbErr> {
        match self {
            Self::Database(store) => store.read_since(held).await,
            Self::Disk(disk) => disk.read(|shelf| since(shelf, held.revision)).await,
        }
    }

    pub(super) async fn position(&self) -> Result<Position, DbErr> {
        match self {
            Self::Database(store) => store.position().await,
            Self::Disk(disk) => disk.read(position::<T::Kind>).await,
        }
    }

    pub(super) async fn begin(&self) -> Result<Transaction<T>, DbErr> {
        match self {
            Self::Database(store) => store.begin().await.map(Transaction::Database),
            Self::Disk(disk) => Ok(Transaction::Disk(disk.clone(), Vec::new())),
        }
    }

    pub(super) async fn fate(&self, mark: &Mark) -> Result<Fate, DbErr> {
        match self {
            Self::Database(store) => store.fate(mark).await,
            Self::Disk(disk) => {
                let at = disk.read(position::<T::Kind>).await?.last;
                Ok(if at == mark.commit { Fate::Committed } else { Fate::NotCommitted })
            }
        }
    }
}

impl<T: Table> Transaction<T> {
    pub(super) async fn read_since(&self, held: Commit) -> Result<Option<Since<T::Kind>>, DbErr> {
        match self {
            Self::Database(transaction) => transaction.read_since(held).await,
            Self::Disk(disk, _) => {
                let held = held.revision;
                disk.read(|shelf| (shelf.revision != held).then(|| since(shelf, held))).await
            }
        }
    }

    pub(super) async fn check(&self, fences: &[&Fence]) -> Result<Vec<bool>, DbErr> {
        match self {
            Self::Database(transaction) => transaction.check(fences).await,
            Self::Disk(..) => Ok(vec![true; fences.len()]),
        }
    }

    pub(super) async fn save(
        &mut self,
        batch: &Batch<T::Kind>,
        from: u64,
        forget: Option<u64>,
        commit: Commit,
    ) -> Result<bool, DbErr> {
        match self {
            Self::Database(transaction) => transaction.save(batch, from, forget, commit).await,
            Self::Disk(disk, changes) => {
                let moved = changes.last().map(|change| change.batch.revision);
                let at = disk.read(|shelf: &Shelf<T::Kind>| moved.unwrap_or(shelf.revision)).await?;
                changes.push(Change { from, batch: batch.clone(), forget });
                Ok(at == from)
            }
        }
    }

    pub(super) async fn break_off(&mut self, from: u64, revision: u64) -> Result<Commit, DbErr> {
        match self {
            Self::Database(transaction) => transaction.break_off(from, revision).await,
            Self::Disk(_, changes) => {
                let batch = Batch { changed: Vec::new(), deleted: Vec::new(), revision, synced: false };
                changes.push(Change { from, batch, forget: Some(revision) });
                Ok(to(revision))
            }
        }
    }

    pub(super) async fn undo(&mut self) -> Result<(), DbErr> {
        match self {
            Self::Database(transaction) => transaction.undo().await,
            Self::Disk(_, changes) => {
                changes.clear();
                Ok(())
            }
        }
    }

    pub(super) fn mark(&self, revision: u64) -> Mark {
        match self {
            Self::Database(transaction) => transaction.mark(revision),
            Self::Disk(..) => Mark { transaction: None, commit: to(revision) },
        }
    }

    pub(super) async fn commit(self) -> Result<(), DbErr> {
        match self {
            Self::Database(transaction) => transaction.commit().await,
            Self::Disk(_, changes) if changes.is_empty() => Ok(()),
            Self::Disk(disk, changes) => {
                let kept = disk.commit(|shelf| apply(changes, shelf)).await?;
                if kept { Ok(()) } else { Err(DbErr::Custom("the kind has moved".to_owned())) }
            }
        }
    }
}

/// Does all of it or nothing, and gives the sum.
fn apply<R: Resource>(changes: Vec<Change<R>>, shelf: &mut Shelf<R>) -> Option<Batch<R>> {
    if changes.first()?.from != shelf.revision {
        return None;
    }
    let mut sum = Batch { changed: Vec::new(), deleted: Vec::new(), revision: 0, synced: false };
    for change in changes {
        let batch = change.apply(shelf);
        sum.changed.extend(batch.changed);
        sum.deleted.extend(batch.deleted);
        sum.revision = batch.revision;
    }
    Some(sum)
}

impl<R: Resource> Change<R> {
    fn apply(self, shelf: &mut Shelf<R>) -> Batch<R> {
        let Self { from: _, batch, forget } = self;
        shelf.revision = batch.revision;
        for deletion in &batch.deleted {
            shelf.resources.remove(&deletion.key);
            shelf.deletions.push(deletion.clone());
        }
        for resource in &batch.changed {
            shelf.resources.insert(resource.key().into(), Arc::clone(resource));
        }
        if let Some(up_to) = forget {
            shelf.deletions.retain(|deletion| deletion.revision > up_to);
            shelf.compacted = up_to;
        }
        batch
    }
}

/// A commit of a disk, which nobody else uses: its revision says it all.
fn to(revision: u64) -> Commit {
    Commit { revision, id: Uuid::nil() }
}

fn position<R>(shelf: &Shelf<R>) -> Position {
    Position { last: to(shelf.revision), compacted: shelf.compacted }
}

fn everything<R: Resource>(shelf: &Shelf<R>) -> Everything<R> {
    let state = State {
        resources: shelf.resources.clone(),
        deletions: shelf.deletions.clone(),
        revision: shelf.revision,
        compacted: shelf.compacted,
        unreadable: BTreeMap::new(),
    };
    Everything { state, unreadable: Vec::new(), last: to(shelf.revision) }
}

fn since<R: Resource>(shelf: &Shelf<R>, held: u64) -> Since<R> {
    if shelf.revision < held || held < shelf.compacted {
        return Since::Anew(everything(shelf));
    }
    let mut changed: Vec<_> = shelf.resources.values().filter(|one| one.revision() > held).cloned().collect();
    changed.sort_unstable_by_key(|one| one.revision());
    let deleted = shelf.deletions.iter().filter(|one| one.revision > held).cloned().collect();
    let batch = Batch { changed, deleted, revision: shelf.revision, synced: false };
    let last = to(shelf.revision);
    Since::Changes { batch, compacted: shelf.compacted, unreadable: Vec::new(), last }
}
