//! The one writer of a ledger: collects what callers ask for, commits it, shows it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use sea_orm::{DatabaseConnection, DbErr, TransactionTrait};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Table, bookkeeping,
    view::{DELETIONS, State, View},
};
use crate::{
    Fault,
    resource::{Batch, Deletion, Resource},
};

/// Commands in one transaction. More would make the first ones wait longer than a commit takes.
const COMMANDS: usize = 1024;

/// Changed resources in one transaction after which no further command is taken into it.
const CHANGES: usize = 10_000;

/// How soon to look what the database has after a transaction of unknown outcome.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A change that a caller asks for.
pub(super) type Command<R> = Box<dyn FnOnce(&mut Draft<'_, R>) -> Outcome + Send>;

/// Tells a caller the revision of the commit, or why there was none.
type Reply = Box<dyn FnOnce(Result<u64, Fault>) + Send>;

/// What to do with the draft of a command. Either way the caller is told after the commit: a refusal may rest
/// on what an earlier command of the same transaction changed, and that is true only once it is durable.
pub(super) enum Outcome {
    /// Make it durable.
    Keep(Reply),
    /// Forget it.
    Discard(Reply),
}

/// Changes by key: the new state, or none for a deletion.
type Changes<R> = BTreeMap<Arc<str>, Option<R>>;

/// The newest state as one caller sees it, with its own changes on top.
pub struct Draft<'a, R> {
    view: &'a View<R>,
    /// What earlier commands of the same transaction changed.
    earlier: &'a Changes<R>,
    own: Changes<R>,
}

impl<R: Resource> Draft<'_, R> {
    /// The resource of that key.
    pub fn get(&self, key: &str) -> Option<Arc<R>> {
        match self.own.get(key).or_else(|| self.earlier.get(key)) {
            Some(changed) => changed.clone().map(Arc::new),
            None => self.view.get(key),
        }
    }

    /// Revision of the last commit before this draft. It only grows, also over deletions and restarts.
    pub fn base_revision(&self) -> u64 {
        self.view.revision()
    }

    /// Creates or overwrites a resource. Until it is committed its revision reads as 0: whoever writes next in
    /// the same transaction and goes by an older revision has to see that the resource has changed.
    pub fn put(&mut self, mut resource: R) {
        resource.set_revision(0);
        self.own.insert(resource.key().into(), Some(resource));
    }

    /// Deletes a resource. Deleting what does not exist changes nothing.
    pub fn delete(&mut self, key: &str) {
        if self.get(key).is_some() {
            self.own.insert(key.into(), None);
        }
    }

    /// Every resource that `wanted` picks, ordered by key.
    pub fn select(&self, wanted: impl Fn(&R) -> bool) -> Vec<Arc<R>> {
        let mut found: BTreeMap<Arc<str>, Arc<R>> = self.view.read(|state| {
            let picked = state.resources.iter().filter(|(_, resource)| wanted(resource));
            picked.map(|(key, resource)| (Arc::clone(key), Arc::clone(resource))).collect()
        });
        for (key, changed) in self.earlier.iter().chain(&self.own) {
            match changed {
                Some(resource) if wanted(resource) => {
                    found.insert(Arc::clone(key), Arc::new(resource.clone()))
                }
                Some(_) | None => found.remove(key),
            };
        }
        found.into_values().collect()
    }
}

/// Reads a kind's state from the database in one consistent piece.
pub(super) async fn read_everything<T: Table>(
    database: &DatabaseConnection,
) -> Result<State<T::Kind>, DbErr> {
    // The position is read first: what is committed meanwhile carries a later revision, so the fence of the
    // first write finds out and reads again.
    let position = bookkeeping::position(database, T::Kind::KIND).await?;
    let resources =
        T::load(database).await?.into_iter().map(|one| (one.key().into(), Arc::new(one))).collect();
    let deletions = bookkeeping::deletions(database, T::Kind::KIND).await?;
    Ok(State { resources, deletions, revision: position.revision, compacted: position.compacted })
}

/// The task that owns the writes of one ledger.
pub(super) struct Writer<T: Table> {
    view: Arc<View<T::Kind>>,
    database: DatabaseConnection,
    waiting: mpsc::Receiver<Command<T::Kind>>,
    /// A transaction failed or lost the fence: what is in memory may be behind the database.
    in_doubt: bool,
}

impl<T: Table> Writer<T> {
    pub(super) fn new(
        view: Arc<View<T::Kind>>,
        database: DatabaseConnection,
        waiting: mpsc::Receiver<Command<T::Kind>>,
    ) -> Self {
        Self { view, database, waiting, in_doubt: false }
    }

    pub(super) async fn run(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                first = self.waiting.recv() => match first {
                    Some(first) => self.transact(first).await,
                    None => break,
                },
                // What is in memory may be behind what was committed, and nobody may write for long.
                () = tokio::time::sleep(LOOK_AGAIN), if self.in_doubt => self.try_to_catch_up().await,
                () = shutdown.cancelled(), if !self.waiting.is_closed() => self.waiting.close(),
            }
        }
        // Every caller may be gone before shutdown, for example in a test. The task still lives until then.
        shutdown.cancelled().await;
        Ok(())
    }

    async fn transact(&mut self, first: Command<T::Kind>) {
        if self.in_doubt {
            self.try_to_catch_up().await;
        }
        let (changes, replies) = self.collect(first);
        let committed = self.commit(changes).await;
        if let Err(fault) = &committed {
            tracing::warn!(kind = T::Kind::KIND, %fault, callers = replies.len(), "a transaction was not committed");
            self.in_doubt = true;
        }
        for reply in replies {
            reply(committed.clone());
        }
    }

    async fn try_to_catch_up(&mut self) {
        if let Err(error) = self.catch_up().await {
            tracing::warn!(kind = T::Kind::KIND, %error, "cannot read the database");
        }
    }

    /// Runs the commands that are waiting, each on what the ones before it left.
    fn collect(&mut self, first: Command<T::Kind>) -> (Changes<T::Kind>, Vec<Reply>) {
        let mut changes = Changes::new();
        let mut replies = Vec::new();
        let mut next = Some(first);
        while let Some(command) = next {
            let mut draft = Draft { view: &self.view, earlier: &changes, own: Changes::new() };
            let outcome = command(&mut draft);
            let own = draft.own;
            replies.push(match outcome {
                Outcome::Keep(reply) => {
                    changes.extend(own);
                    reply
                }
                Outcome::Discard(reply) => reply,
            });
            let full = replies.len() >= COMMANDS || changes.len() >= CHANGES;
            next = if full { None } else { self.waiting.try_recv().ok() };
        }
        (changes, replies)
    }

    async fn commit(&self, changes: Changes<T::Kind>) -> Result<u64, Fault> {
        if self.in_doubt {
            return Err(Fault::unavailable("database", "its newest state cannot be read"));
        }
        let from = self.view.revision();
        if changes.is_empty() {
            return Ok(from);
        }
        let batch = number(changes, from);
        self.save(&batch, from).await?;
        let revision = batch.revision;
        let shown = batch.clone();
        self.view.publish(batch, |state| show(state, &shown));
        Ok(revision)
    }

    async fn save(&self, batch: &Batch<T::Kind>, from: u64) -> Result<(), Fault> {
        let transaction = self.database.begin().await?;
        if !bookkeeping::advance(&transaction, T::Kind::KIND, from, batch.revision).await? {
            return Err(Fault::unavailable(T::Kind::KIND, "another writer was faster"));
        }
        let keys: Vec<Arc<str>> = batch.deleted.iter().map(|deletion| Arc::clone(&deletion.key)).collect();
        T::delete(&transaction, &keys).await?;
        T::save(&transaction, &batch.changed).await?;
        bookkeeping::remember(&transaction, T::Kind::KIND, &batch.deleted).await?;
        if let Some(up_to) = self.view.read(State::to_compact) {
            bookkeeping::forget(&transaction, T::Kind::KIND, up_to).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Reads what the database has and shows what differs from memory.
    async fn catch_up(&mut self) -> Result<(), DbErr> {
        let newest = read_everything::<T>(&self.database).await?;
        let held = self.view.revision();
        let mut changed: Vec<_> =
            newest.resources.values().filter(|one| one.revision() > held).cloned().collect();
        changed.sort_unstable_by_key(|one| one.revision());
        let deleted: Vec<_> = newest.deletions.iter().filter(|one| one.revision > held).cloned().collect();
        let batch = Batch { changed, deleted, revision: newest.revision, synced: false };
        self.view.publish(batch, |state| *state = newest);
        self.in_doubt = false;
        Ok(())
    }
}

/// Gives every change its revision.
fn number<R: Resource>(changes: Changes<R>, from: u64) -> Batch<R> {
    let mut batch = Batch {
        changed: Vec::with_capacity(changes.len()),
        deleted: Vec::new(),
        revision: from,
        synced: false,
    };
    for (key, change) in changes {
        batch.revision += 1;
        match change {
            Some(mut resource) => {
                resource.set_revision(batch.revision);
                batch.changed.push(Arc::new(resource));
            }
            None => batch.deleted.push(Deletion { key, revision: batch.revision }),
        }
    }
    batch
}

fn show<R: Resource>(state: &mut State<R>, batch: &Batch<R>) {
    if let Some(up_to) = state.to_compact() {
        state.deletions.retain(|deletion| deletion.revision > up_to);
        state.compacted = up_to;
    }
    for deletion in &batch.deleted {
        state.resources.remove(&deletion.key);
        state.deletions.push(deletion.clone());
    }
    for resource in &batch.changed {
        match state.resources.get_mut(resource.key()) {
            Some(held) => *held = Arc::clone(resource),
            None => drop(state.resources.insert(resource.key().into(), Arc::clone(resource))),
        }
    }
}

impl<R> State<R> {
    /// Revision up to which deletions should be forgotten now, if any.
    fn to_compact(&self) -> Option<u64> {
        (self.deletions.len() >= 2 * DELETIONS).then(|| self.deletions[DELETIONS].revision)
    }
}
