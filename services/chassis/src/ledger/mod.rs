//! A durable collection of resources of one kind that can be watched.
//!
//! Reads come from memory. Writes go through one writer, which commits what many callers asked for at the
//! same time in one transaction (group commit), and only then shows it to readers and watchers.
//!
//! What holds:
//! - an acknowledged write survives a crash;
//! - revisions are taken in the order of commits: strictly increasing, without gap or duplicate, on all replicas
//!   together;
//! - a change is computed from the newest committed state and from nothing older. The revision row of the kind is both
//!   the sequence and the lock: on a shared database a transaction holds it from before its changes are computed
//!   until they are committed, and first shows what other replicas committed before;
//! - a change that was decided under leases that are over by then changes nothing;
//! - what other replicas commit is shown when they hint at it, and at the latest within a second;
//! - a watch costs bounded memory however slow its client is: when it falls behind, it gets the newest state
//!   of what changed rather than every step;
//! - a row that cannot be read is left aside, and everything else is served;
//! - what a database has lost is noticed: a new incarnation begins, revisions go on far above all that were given, and
//!   watches start over;
//! - a resume token of another incarnation is refused, whatever its revision.

mod bookkeeping;
mod draft;
mod encoding;
mod facets;
mod feed;
mod fresh;
mod incarnation;
mod indexes;
mod lineage;
mod loss;
mod owner;
mod room;
mod serving;
mod showing;
#[cfg(feature = "simulation")]
mod simulated;
mod state;
mod store;
mod view;
mod watching;
mod writer;

use std::{future::Future, sync::Arc, time::Duration};

use futures_util::Stream;
use sea_orm::{ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

pub use draft::Draft;
pub use facets::OneOf;
pub use incarnation::{ResumeToken, named as named_incarnation};
pub use indexes::RevisionIndexes;
pub(crate) use owner::OwnerView;
pub use serving::{Responses, Selection, Watched};
pub use view::View;
pub use watching::LedgerWatch;

use crate::{
    Context, Fault,
    database::Unreadable,
    fence::Fence,
    pause,
    resource::{Batch, Resource},
};
use draft::{Command, Outcome, Run};
use fresh::Freshness;
#[cfg(feature = "simulation")]
use simulated::{Store, Transaction};
#[cfg(not(feature = "simulation"))]
use store::{Store, Transaction};
use writer::Writer;

/// Commands that may wait for the writer. Callers beyond that wait for a place, which is the back pressure.
const WAITING: usize = 4096;

/// How the resources of one kind go to the database and come back. A service implements it on an empty type
/// of its own, so that the resource itself knows nothing of tables.
pub trait Table: Send + Sync + 'static {
    /// The kind of resource that the table keeps.
    type Kind: Resource;

    /// Reads the resources that were changed after revision `after`; every one for none. A row that cannot be read
    /// is an item of the answer, and so keeps nobody from the others.
    fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> impl Future<Output = Result<Vec<Result<Self::Kind, Unreadable>>, DbErr>> + Send;

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

    /// What a resource becomes when the database has lost its last commits, which may have been about it, and has been
    /// taken above every revision that anybody has seen: to `revision`. `None`: it stays as it was.
    fn after_loss(_resource: &Self::Kind, _revision: u64) -> Option<Self::Kind> {
        None
    }
}

/// A durable collection of resources of one kind. Clones share it.
pub struct Ledger<T: Table> {
    view: Arc<View<T::Kind>>,
    fresh: Arc<Freshness<T>>,
    commands: mpsc::Sender<Command<T::Kind>>,
    shutdown: CancellationToken,
}

impl<T: Table> Clone for Ledger<T> {
    fn clone(&self) -> Self {
        Self {
            view: Arc::clone(&self.view),
            fresh: Arc::clone(&self.fresh),
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
        writer::describe();
        room::keep_trying(context, &database, T::Kind::KIND);
        let store = Arc::new(Store::<T>::new(context, database));
        // Before anything is read, so that no hint about what comes after is missed.
        let heard =
            store.others().map_or_else(|| watch::channel(0).1, |others| others.subscribe(T::Kind::KIND));
        let fresh = Freshness::new(&store);
        let everything = store.read_everything().await?;
        let last = everything.last;
        let view = Arc::new(View::new(everything));
        context.shared.of::<OwnerView<_>>().set(&view);
        let (commands, waiting) = mpsc::channel(WAITING);
        let writer = Writer::<T>::new(Arc::clone(&view), last, store, context.health.clone(), waiting, heard);
        let shutdown = context.tasks.shutdown();
        context.tasks.spawn(T::Kind::KIND, writer.run(shutdown.clone()));
        Ok(Self { view, fresh: Arc::new(fresh), commands, shutdown })
    }

    /// What is committed.
    pub fn view(&self) -> &View<T::Kind> {
        &self.view
    }

    /// Makes sure that reads show every write that any replica had acknowledged when this was called. Costs nothing
    /// where the database is not shared; those who ask at the same time share one look.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] when the database does not tell: what is held may be old.
    pub async fn fresh(&self) -> Result<(), Fault> {
        self.fresh.ensure(&self.view).await
    }

    /// Does the same and does not give up: for whoever takes over what another replica has left.
    pub async fn catch_up(&self) {
        let mut failures = 0;
        while let Err(fault) = self.fresh().await {
            failures += 1;
            tracing::debug!(%fault, failures, "cannot learn what other replicas have written, trying again");
            tokio::time::sleep(pause::after(failures)).await;
        }
    }

    /// Whether reads show every write that any replica had acknowledged `age` ago. Asks nobody, and so says no where
    /// it is not known; where the database is not shared, reads show every write.
    pub fn is_fresh_within(&self, age: Duration) -> bool {
        self.fresh.is_within(&self.view, age)
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
        self.ask(None, change).await
    }

    /// As [`Self::write`], of a change that was decided under these leases.
    ///
    /// # Errors
    /// As [`Self::write`]; and [`Fault::Stale`] when one of the leases is over: then `change` is not run.
    pub async fn write_fenced<A, F>(&self, fence: Fence, change: F) -> Result<(A, u64), Fault>
    where
        A: Send + 'static,
        F: FnOnce(&mut Draft<'_, T::Kind>) -> Result<A, Fault> + Send + 'static,
    {
        self.ask(Some(fence), change).await
    }

    async fn ask<A, F>(&self, fence: Option<Fence>, change: F) -> Result<(A, u64), Fault>
    where
        A: Send + 'static,
        F: FnOnce(&mut Draft<'_, T::Kind>) -> Result<A, Fault> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let run: Run<T::Kind> = Box::new(move |draft| {
            if answer.is_closed() {
                // The caller gave up before its turn came: what nobody waits for is not done.
                return Outcome::Discard(Box::new(|_| {}));
            }
            let changed = draft.and_then(change);
            let outcome = if changed.is_ok() { Outcome::Keep } else { Outcome::Discard };
            outcome(Box::new(move |committed| {
                // A caller that gave up does not want the answer.
                let _gone = answer.send(committed.and_then(|revision| Ok((changed?, revision))));
            }))
        });
        let stopping = || Fault::unavailable(T::Kind::KIND, "the service is stopping");
        self.commands.send(Command { fence, run }).await.map_err(|_| stopping())?;
        answered.await.map_err(|_| stopping())?
    }

    /// Watches the collection for what changes after `resume`; 0 delivers everything first.
    ///
    /// # Errors
    /// [`Fault::ResumeExpired`] when `resume` lies before what is remembered or in the future.
    pub fn watch(&self, resume: u64) -> Result<LedgerWatch<T::Kind>, Fault> {
        LedgerWatch::start(Arc::clone(&self.view), resume.into())
    }

    /// Everything in the collection, then every change, without end: for a part that acts on its own
    /// resources. It never fails; when it falls far behind it starts over with everything.
    pub fn follow(&self) -> impl Stream<Item = Arc<Batch<T::Kind>>> + Send + use<T> {
        watching::follow(Arc::clone(&self.view))
    }
}
