//! A durable collection of resources of one kind that can be watched.
//!
//! Reads come from memory. Writes go through one writer, which commits what many callers asked for at the
//! same time in one transaction (group commit), and only then shows it to readers and watchers.
//!
//! What holds:
//! - an acknowledged write survives a crash;
//! - revisions are taken in the order of commits: strictly increasing, without gap or duplicate;
//! - a transaction commits only if nothing else was committed since the state it was computed from. The
//!   revision row of the kind is both the sequence and that fence, so a second writer of the same database
//!   loses no update: the ledger that finds itself behind reads the difference and its callers try again;
//! - a watch costs bounded memory however slow its client is: when it falls behind, it gets the newest state
//!   of what changed rather than every step.

mod bookkeeping;
mod serving;
mod view;
mod watching;
mod writer;

use std::{future::Future, sync::Arc};

use futures_util::Stream;
use sea_orm::{DatabaseConnection, DatabaseTransaction, DbErr};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub use bookkeeping::Migration;
pub use serving::{Responses, Selection};
pub use view::View;
pub use watching::LedgerWatch;
pub use writer::Draft;

use crate::{
    Context, Fault,
    resource::{Batch, Resource},
};
use writer::{Command, Outcome, Writer};

/// Commands that may wait for the writer. Callers beyond that wait for a place, which is the back pressure.
const WAITING: usize = 4096;

/// How the resources of one kind go to the database and come back. A service implements it on an empty type
/// of its own, so that the resource itself knows nothing of tables.
pub trait Table: Send + Sync + 'static {
    /// The kind of resource that the table keeps.
    type Kind: Resource;

    /// Reads every resource of the kind.
    fn load(database: &DatabaseConnection) -> impl Future<Output = Result<Vec<Self::Kind>, DbErr>> + Send;

    /// Inserts or overwrites resources.
    fn save(
        transaction: &DatabaseTransaction,
        resources: &[Arc<Self::Kind>],
    ) -> impl Future<Output = Result<(), DbErr>> + Send;

    /// Deletes resources by key.
    fn delete(
        transaction: &DatabaseTransaction,
        keys: &[Arc<str>],
    ) -> impl Future<Output = Result<(), DbErr>> + Send;
}

/// A durable collection of resources of one kind. Clones share it.
pub struct Ledger<T: Table> {
    view: Arc<View<T::Kind>>,
    commands: mpsc::Sender<Command<T::Kind>>,
    shutdown: CancellationToken,
}

impl<T: Table> Clone for Ledger<T> {
    fn clone(&self) -> Self {
        Self {
            view: Arc::clone(&self.view),
            commands: self.commands.clone(),
            shutdown: self.shutdown.clone(),
        }
    }
}

impl<T: Table> Ledger<T> {
    /// Opens the kind's tables in `database`, which must have been migrated, and starts the writer.
    ///
    /// # Errors
    /// When the tables cannot be read.
    pub async fn open(context: &Context, database: DatabaseConnection) -> Result<Self, DbErr> {
        let view = Arc::new(View::new(writer::read_everything::<T>(&database).await?));
        let (commands, waiting) = mpsc::channel(WAITING);
        let writer = Writer::<T>::new(Arc::clone(&view), database, waiting);
        let shutdown = context.tasks.shutdown();
        context.tasks.spawn(T::Kind::KIND, writer.run(shutdown.clone()));
        Ok(Self { view, commands, shutdown })
    }

    /// What is committed.
    pub fn view(&self) -> &View<T::Kind> {
        &self.view
    }

    /// Runs `change` on the newest state and waits until what it did is durable. Gives its answer and the
    /// revision that includes it.
    ///
    /// # Errors
    /// What `change` answers; then nothing of it is written. [`Fault::Unavailable`] when the database did
    /// not take the transaction or it is not known whether it did: the caller looks again and decides anew.
    pub async fn write<A, F>(&self, change: F) -> Result<(A, u64), Fault>
    where
        A: Send + 'static,
        F: FnOnce(&mut Draft<'_, T::Kind>) -> Result<A, Fault> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let command: Command<T::Kind> = Box::new(move |draft| {
            let changed = change(draft);
            let outcome = if changed.is_ok() { Outcome::Keep } else { Outcome::Discard };
            outcome(Box::new(move |committed| {
                // A caller that gave up does not want the answer.
                let _gone = answer.send(committed.and_then(|revision| Ok((changed?, revision))));
            }))
        });
        let stopping = || Fault::unavailable(T::Kind::KIND, "the service is stopping");
        self.commands.send(command).await.map_err(|_| stopping())?;
        answered.await.map_err(|_| stopping())?
    }

    /// Watches the collection for what changes after `resume`; 0 delivers everything first.
    ///
    /// # Errors
    /// [`Fault::ResumeExpired`] when `resume` lies before what is remembered or in the future.
    pub fn watch(&self, resume: u64) -> Result<LedgerWatch<T::Kind>, Fault> {
        LedgerWatch::start(Arc::clone(&self.view), resume)
    }

    /// Everything in the collection, then every change, without end: for a part that acts on its own
    /// resources. It never fails; when it falls far behind it starts over with everything.
    pub fn follow(&self) -> impl Stream<Item = Arc<Batch<T::Kind>>> + Send + use<T> {
        watching::follow(Arc::clone(&self.view))
    }
}
