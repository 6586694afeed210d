//! Store of a ledger: the database, or the disk in memory of a simulation's context.

use std::{collections::BTreeMap, sync::Arc};

use sea_orm::{DatabaseConnection, DbErr};
use uuid::Uuid;

use super::{
    Table,
    bookkeeping::{Commit, Fate, Mark, Position},
    events::EventRow,
    facets::Facets,
    incarnation::Incarnation,
    state::{DELETIONS, Everything, State},
    store::{self, Since},
};
use crate::{
    Context,
    store::{
        disk::{self, Disk, Lock, Shelf},
        fence::Fence,
        hints::{Hub, Hubs},
        resource::{Batch, Keyed, Resource},
    },
};

/// Store of the resources of one kind.
pub(super) enum Store<T: Table> {
    Database(store::Store<T>),
    Disk(Disk, Option<Arc<Hub>>),
}

/// Changes of a kind in one transaction.
pub(super) enum Transaction<T: Table> {
    Database(store::Transaction<T>),
    Disk(OnDisk<T::Kind>),
}

/// Changes in a transaction on a disk in memory.
pub(super) struct OnDisk<R> {
    transaction: disk::Transaction,
    changes: Vec<Change<R>>,
    is_another_copy: bool,
}

/// Change of a shelf, valid if the shelf is still at the revision `from`.
pub(super) struct Change<R> {
    from: u64,
    batch: Batch<R>,
    commit: Uuid,
    forget: Option<u64>,
    incarnation: Uuid,
}

impl<T: Table> Store<T> {
    pub(super) fn new(context: &Context, database: DatabaseConnection) -> Self {
        match Disk::attached_to(context) {
            Some(disk) => {
                let hubs = context.shared.of::<Hubs>();
                let others = disk.is_shared().then(|| hubs.of_disk(&context.tasks, &disk));
                Self::Disk(disk, others)
            }
            None => Self::Database(store::Store::new(context, database)),
        }
    }

    pub(super) fn others(&self) -> Option<&Arc<Hub>> {
        match self {
            Self::Database(store) => store.others(),
            Self::Disk(_, others) => others.as_ref(),
        }
    }

    pub(super) async fn read_everything(&self) -> Result<Everything<T::Kind>, DbErr> {
        match self {
            Self::Database(store) => store.read_everything().await,
            Self::Disk(disk, others) => {
                let remembers = disk.remembers();
                let mut everything = disk.read(|shelf| everything(shelf, remembers)).await?;
                if others.is_none() {
                    everything.is_continued_by(Uuid::now_v7());
                }
                Ok(everything)
            }
        }
    }

    pub(super) async fn read_since(&self, held: Commit) -> Result<Since<T::Kind>, DbErr> {
        match self {
            Self::Database(store) => store.read_since(held).await,
            Self::Disk(disk, _) => {
                let remembers = disk.remembers();
                disk.read(|shelf| since(shelf, held, remembers)).await
            }
        }
    }

    pub(super) async fn position(&self) -> Result<Position, DbErr> {
        match self {
            Self::Database(store) => store.position().await,
            Self::Disk(disk, _) => disk.read(position::<T::Kind>).await,
        }
    }

    pub(super) async fn begin(&self) -> Result<Transaction<T>, DbErr> {
        match self {
            Self::Database(store) => store.begin().await.map(Transaction::Database),
            Self::Disk(disk, _) => {
                let transaction = disk.begin(Lock::Kind(T::Kind::KIND)).await?;
                let is_another_copy =
                    transaction.read(|shelf: &Shelf<T::Kind>| shelf.is_another_copy).await?;
                Ok(Transaction::Disk(OnDisk { transaction, changes: Vec::new(), is_another_copy }))
            }
        }
    }

    pub(super) async fn fate(&self, mark: &Mark) -> Result<Fate, DbErr> {
        match self {
            Self::Database(store) => store.fate(mark).await,
            Self::Disk(disk, _) => {
                let at = disk.read(position::<T::Kind>).await?.last;
                Ok(match at {
                    _ if at == mark.commit => Fate::Committed,
                    // The commit can never happen: its transaction has ended.
                    _ if at.revision < mark.commit.revision => Fate::NotCommitted,
                    _ => Fate::Unknown,
                })
            }
        }
    }
}

impl<T: Table> Transaction<T> {
    pub(super) async fn read_since(&self, held: Commit) -> Result<Option<Since<T::Kind>>, DbErr> {
        match self {
            Self::Database(transaction) => transaction.read_since(held).await,
            Self::Disk(on) => {
                let remembers = on.transaction.disk().remembers();
                let news = |shelf: &Shelf<_>| match last(shelf) {
                    _ if on.is_another_copy => Some(Since::Anew(everything(shelf, remembers))),
                    last if last != held => Some(since(shelf, held, remembers)),
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
        commit: Commit,
        incarnation: Uuid,
    ) -> Result<bool, DbErr> {
        match self {
            Self::Database(transaction) => {
                transaction.save(batch, events, from, forget, commit, incarnation).await
            }
            // A disk in memory keeps no events: nothing of a simulation reads them.
            Self::Disk(OnDisk { transaction, changes, .. }) => {
                let moved = changes.last().map(|change| change.batch.revision);
                let at = transaction.read(|shelf: &Shelf<T::Kind>| moved.unwrap_or(shelf.revision)).await?;
                let batch = batch.clone();
                changes.push(Change { from, batch, commit: commit.id, forget, incarnation });
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

    pub(super) async fn break_off(&mut self, from: u64, revision: u64) -> Result<Commit, DbErr> {
        match self {
            Self::Database(transaction) => transaction.break_off(from, revision).await,
            Self::Disk(OnDisk { changes, .. }) => {
                let batch = Batch { changed: Vec::new(), deleted: Vec::new(), revision, synced: false };
                let commit = Commit::to(revision);
                let (forget, incarnation) = (Some(revision), commit.id);
                changes.push(Change { from, batch, commit: commit.id, forget, incarnation });
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

    pub(super) fn mark(&self, revision: u64) -> Mark {
        match self {
            Self::Database(transaction) => transaction.mark(revision),
            Self::Disk(_) => Mark { transaction: None, commit: Commit::to(revision) },
        }
    }

    pub(super) async fn commit(self) -> Result<(), DbErr> {
        match self {
            Self::Database(transaction) => transaction.commit().await,
            Self::Disk(on) if on.changes.is_empty() => Ok(()),
            Self::Disk(OnDisk { transaction, changes, .. }) => {
                let kept = transaction.commit(|shelf| apply(changes, shelf)).await?;
                if kept { Ok(()) } else { Err(DbErr::Custom("the kind has moved".to_owned())) }
            }
        }
    }
}

/// Applies all changes or none, and returns their sum.
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
        let Self { from: _, batch, commit, forget, incarnation } = self;
        (shelf.revision, shelf.last_commit) = (batch.revision, commit);
        shelf.is_another_copy = false;
        shelf.incarnation = incarnation;
        batch.deleted.iter().for_each(|deletion| shelf.delete(deletion));
        batch.changed.iter().for_each(|resource| shelf.put(resource));
        if let Some(up_to) = forget {
            shelf.deletions.retain(|deletion| deletion.revision > up_to);
            shelf.compacted = up_to;
        }
        batch
    }
}

fn last<R>(shelf: &Shelf<R>) -> Commit {
    Commit { revision: shelf.revision, id: shelf.last_commit }
}

fn position<R>(shelf: &Shelf<R>) -> Position {
    Position { last: last(shelf), compacted: shelf.compacted, incarnation: shelf.incarnation }
}

fn everything<R: Resource>(shelf: &Shelf<R>, remembers: Option<usize>) -> Everything<R> {
    let resources = shelf.readable().cloned().map(Keyed).collect();
    let state = State {
        facets: Facets::of(&resources),
        resources,
        deletions: shelf.deletions.clone(),
        revision: shelf.revision,
        compacted: shelf.compacted,
        incarnation: Incarnation::of(shelf.incarnation),
        unreadable: BTreeMap::new(),
        remembers: remembers.unwrap_or(DELETIONS),
    };
    Everything { state, unreadable: shelf.unreadable(0), last: last(shelf) }
}

fn since<R: Resource>(shelf: &Shelf<R>, held: Commit, remembers: Option<usize>) -> Since<R> {
    let (last, held) = match last(shelf) {
        last if last.is_without(held) || held.revision < shelf.compacted => {
            return Since::Anew(everything(shelf, remembers));
        }
        last => (last, held.revision),
    };
    let mut changed: Vec<_> = shelf.readable().filter(|one| one.revision() > held).cloned().collect();
    changed.sort_unstable_by_key(|one| one.revision());
    let deleted = shelf.deletions.iter().filter(|one| one.revision > held).cloned().collect();
    let batch = Batch { changed, deleted, revision: shelf.revision, synced: false };
    let unreadable = shelf.unreadable(held);
    Since::Changes { batch, compacted: shelf.compacted, unreadable, last }
}
