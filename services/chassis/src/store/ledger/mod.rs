//! A durable collection of resources of one kind that can be watched.
//!
//! Reads come from memory. Writes go through one writer, which commits the commands of concurrent callers in one
//! transaction (group commit), and only then shows the result to readers and watchers.
//!
//! Invariants:
//! - an acknowledged write survives a crash;
//! - revisions are taken in the order of commits: strictly increasing, without gap or duplicate, on all replicas
//!   together;
//! - a change is computed from the newest committed state and from nothing older. The revision row of the kind is both
//!   the sequence and the lock: on a shared database a transaction holds it from before its changes are computed until
//!   they are committed, and first shows the earlier commits of other replicas;
//! - a change that was decided in one term of a role changes nothing once the role was released or acquired anew;
//! - commits of other replicas are shown at their hint, and at the latest within a second;
//! - a watch costs bounded memory however slow its client is: when it falls behind, it gets the newest state of the
//!   changed resources rather than every step;
//! - an unreadable row is left aside, and everything else is served;
//! - lost commits are detected: a new incarnation begins, revisions continue far above all earlier ones, and watches
//!   start over;
//! - a resume token of another incarnation is refused, whatever its revision.

mod bookkeeping;
mod draft;
mod encoding;
mod events;
mod facets;
mod feed;
mod fresh;
mod history;
mod incarnation;
mod lineage;
mod loss;
mod migrations;
mod owner;
mod room;
mod serving;
mod showing;
#[cfg(feature = "simulation")]
mod simulated;
mod state;
mod store;
mod table;
mod view;
mod watching;
mod writer;

use std::{sync::Arc, time::Duration};

use domain::core::event::Actor;
use futures_util::Stream;
use sea_orm::{DatabaseConnection, DbErr};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

pub use draft::Draft;
pub use events::EventRule;
pub use facets::OneOf;
pub use history::EventHistories;
pub use incarnation::{ResumeToken, named as named_incarnation};
pub(crate) use lineage::COPY;
pub use migrations::Migrations;
pub(crate) use owner::OwnerView;
pub use serving::{Responses, Selection, WatchResponse};
pub use table::{Column, StoredRow, Table, rows};
pub use view::LedgerView;
pub use watching::LedgerWatch;

use crate::{
    Context, Fault,
    mesh::{client_name, request_id},
    process::pause,
    store::{
        fence::Fence,
        resource::{Batch, Resource},
    },
};
use draft::{DraftOutcome, Run, WriteCommand};
use events::ChangeOrigin;
use fresh::FreshnessCheck;
#[cfg(feature = "simulation")]
use simulated::{LedgerStore, LedgerTransaction};
#[cfg(not(feature = "simulation"))]
use store::{TableStore as LedgerStore, TableTransaction as LedgerTransaction};
use writer::LedgerWriter;

/// Commands that may wait for the writer. Callers beyond that wait for a place, which is the back pressure.
const WAITING: usize = 4096;

/// A durable collection of resources of one kind. Clones share it.
pub struct Ledger<T: Table> {
    view: Arc<LedgerView<T::Kind>>,
    fresh: Arc<FreshnessCheck<T>>,
    commands: mpsc::Sender<WriteCommand<T::Kind>>,
    /// Database with the stored events.
    database: DatabaseConnection,
    shutdown: CancellationToken,
}

impl<T: Table> Clone for Ledger<T> {
    fn clone(&self) -> Self {
        Self {
            view: Arc::clone(&self.view),
            fresh: Arc::clone(&self.fresh),
            commands: self.commands.clone(),
            database: self.database.clone(),
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
        let store = Arc::new(LedgerStore::<T>::new(context, database.clone()));
        // Before the first read, so that no hint about a later commit is missed.
        let heard =
            store.others().map_or_else(|| watch::channel(0).1, |others| others.subscribe(T::Kind::KIND));
        let fresh = FreshnessCheck::new(&store);
        let mut everything = store.read_everything().await?;
        if store.is_copy().await? {
            everything = loss::mend_copy(&store, everything).await?;
        }
        let last = everything.last;
        let view = Arc::new(LedgerView::new(everything));
        context.shared.of::<OwnerView<_>>().set(&view);
        let (commands, waiting) = mpsc::channel(WAITING);
        let writer =
            LedgerWriter::<T>::new(Arc::clone(&view), last, store, context.health.clone(), waiting, heard);
        let shutdown = context.tasks.shutdown();
        context.tasks.spawn(T::Kind::KIND, writer.run(shutdown.clone()));
        Ok(Self { view, fresh: Arc::new(fresh), commands, database, shutdown })
    }

    /// The committed state.
    pub fn view(&self) -> &LedgerView<T::Kind> {
        &self.view
    }

    /// Ensures that reads include every write that any replica had acknowledged before this call. Free where the
    /// database is not shared; concurrent callers share one poll.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] when the database does not answer: the view may be stale.
    pub async fn fresh(&self) -> Result<(), Fault> {
        self.fresh.ensure(&self.view).await
    }

    /// Waits as [`Self::fresh`] does and never gives up, for a replica that takes over another one's work.
    pub async fn catch_up(&self) {
        let note = |fault, failures| {
            tracing::debug!(%fault, failures, "cannot learn what other replicas have written, trying again");
        };
        pause::until_done(|| self.fresh(), note).await;
    }

    /// Returns whether reads include every write that any replica had acknowledged `age` ago, without a query; false
    /// where that is unknown. Always true where the database is not shared.
    pub fn is_fresh_within(&self, age: Duration) -> bool {
        self.fresh.is_within(&self.view, age)
    }

    /// Runs `change` on the newest state and waits until its effect is durable. Returns its answer and the revision
    /// that includes it.
    ///
    /// # Errors
    /// The error of `change`; then nothing is written. [`Fault::Unavailable`] when the database refused the transaction
    /// or its outcome is in doubt: the caller reads again and decides again.
    pub async fn write<A, F>(&self, change: F) -> Result<(A, u64), Fault>
    where
        A: Send + 'static,
        F: FnOnce(&mut Draft<'_, T::Kind>) -> Result<A, Fault> + Send + 'static,
    {
        self.ask(T::OWNER, None, change).await
    }

    /// As [`Self::write`], of a change whose author is not the owner of the table, for its events.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub async fn write_by<A, F>(&self, author: Actor, change: F) -> Result<(A, u64), Fault>
    where
        A: Send + 'static,
        F: FnOnce(&mut Draft<'_, T::Kind>) -> Result<A, Fault> + Send + 'static,
    {
        self.ask(author, None, change).await
    }

    /// Writes a change that was decided under this lease, as [`Self::write`] does.
    ///
    /// # Errors
    /// As [`Self::write`]; and [`Fault::Stale`] when the role was released or acquired anew: then `change` is not run.
    pub async fn write_fenced<A, F>(&self, fence: Fence, change: F) -> Result<(A, u64), Fault>
    where
        A: Send + 'static,
        F: FnOnce(&mut Draft<'_, T::Kind>) -> Result<A, Fault> + Send + 'static,
    {
        self.ask(T::OWNER, Some(fence), change).await
    }

    async fn ask<A, F>(&self, actor: Actor, fence: Option<Fence>, change: F) -> Result<(A, u64), Fault>
    where
        A: Send + 'static,
        F: FnOnce(&mut Draft<'_, T::Kind>) -> Result<A, Fault> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let run: Run<T::Kind> = Box::new(move |draft| {
            if answer.is_closed() {
                // The caller gave up before its turn: abandoned commands are skipped.
                return DraftOutcome::Discard(Box::new(|_| {}));
            }
            let changed = draft.and_then(change);
            let outcome = if changed.is_ok() { DraftOutcome::Keep } else { DraftOutcome::Discard };
            outcome(Box::new(move |committed| {
                // A caller that gave up does not want the answer.
                let _gone = answer.send(committed.and_then(|revision| Ok((changed?, revision))));
            }))
        });
        let stopping = || Fault::unavailable(T::Kind::KIND, "the service is stopping");
        let request_id = request_id::current().unwrap_or_default();
        let origin = ChangeOrigin { actor, client: client_name::current(), request_id };
        self.commands.send(WriteCommand { fence, origin, run }).await.map_err(|_| stopping())?;
        answered.await.map_err(|_| stopping())?
    }

    /// Watches changes after `resume`; 0 delivers everything first.
    ///
    /// # Errors
    /// [`Fault::ResumeExpired`] when `resume` lies before the remembered deletions or in the future.
    pub fn watch(&self, resume: u64) -> Result<LedgerWatch<T::Kind>, Fault> {
        LedgerWatch::start(Arc::clone(&self.view), resume.into())
    }

    /// Everything in the collection, then every change, without end: for a part that acts on its own resources. The
    /// stream never fails; when it falls far behind it starts over with everything.
    pub fn follow(&self) -> impl Stream<Item = Arc<Batch<T::Kind>>> + Send + use<T> {
        watching::follow(Arc::clone(&self.view))
    }
}
