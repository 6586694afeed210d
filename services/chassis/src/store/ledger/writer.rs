//! The one writer of a ledger: collects commands, commits them, shows the result.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use sea_orm::DbErr;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    LedgerStore, LedgerTransaction, Table,
    bookkeeping::{LedgerCommit, TransactionIdentity, TransactionOutcome},
    draft::{Draft, DraftChanges, DraftOutcome, Reply, WriteCommand, number},
    events::{self, EventRecorder, EventRow, RecordedEvents, kept_revisions},
    loss,
    showing::{show, show_since},
    state::UNREADABLE,
    store::CommitsSince,
    view::LedgerView,
};
use crate::{
    Fault,
    mesh::health::{DatabaseWork, PartHealth},
    process::{clock, failpoint, pause},
    store::{
        database,
        fence::Fence,
        resource::{Batch, Resource},
    },
};

/// Commands in one transaction. More would make the first ones wait longer than a commit takes.
const COMMANDS: usize = 1024;

/// Changed resources in one transaction after which no further command is taken into it.
const CHANGES: usize = 10_000;

/// Delay before the database is read again after a transaction of unknown outcome.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Attempts at a statement that fails with a transient error.
const TRIES: u32 = 8;

/// Longest pause before another try: others may be waiting for a lock that is held meanwhile.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Deadline of a step before the database counts as cut off: longer than it waits for a lock itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// Limit of a save, longer than the database's own.
const PATIENCE_TO_SAVE: Duration = Duration::from_secs(40);

/// Time for looking up the outcome of a transaction before its callers learn that it is unknown.
const FIND_OUT: Duration = Duration::from_secs(4);

/// Time after a commit in which hints may still be older than the commit.
const HEARD: Duration = Duration::from_secs(3);

/// Transactions that were tried again, by kind.
const RETRIES: &str = "reveille_ledger_retries_total";

/// Transactions that ended, by kind.
const TRANSACTIONS: &str = "reveille_ledger_transactions_total";

/// Time of transactions, by kind.
const SECONDS: &str = "reveille_ledger_transaction_seconds";

/// Describes the metrics of ledgers.
pub(super) fn describe() {
    metrics::describe_counter!(TRANSACTIONS, "Transactions by kind and outcome");
    metrics::describe_histogram!(
        SECONDS,
        metrics::Unit::Seconds,
        "Time from the begin of a transaction to its commit, with retries"
    );
    metrics::describe_counter!(
        RETRIES,
        "Transactions that the database refused for a moment and that were tried again"
    );
    metrics::describe_gauge!(UNREADABLE, "Stored rows that cannot be read and are left aside");
}

/// The leases under which the commands of a transaction were decided, and which of these held then.
struct CommandFences {
    fences: Vec<Option<Fence>>,
    held: Vec<bool>,
}

/// The task that owns the writes of one ledger.
pub(super) struct LedgerWriter<T: Table> {
    view: Arc<LedgerView<T::Kind>>,
    /// The id of the last commit that is shown.
    last: Uuid,
    store: Arc<LedgerStore<T>>,
    /// Receives the outcomes of writes.
    health: PartHealth,
    waiting: mpsc::Receiver<WriteCommand<T::Kind>>,
    /// Newest revision of the kind in hints of other replicas.
    heard: watch::Receiver<u64>,
    /// Commands that had no place in the last transaction.
    postponed: VecDeque<WriteCommand<T::Kind>>,
    /// Time of the last commit of this writer.
    committed: Option<Instant>,
    /// Whether memory may be behind the database.
    in_doubt: bool,
    /// Values that written resources share.
    pool: T::Pool,
}

impl<T: Table> LedgerWriter<T> {
    pub(super) fn new(
        view: Arc<LedgerView<T::Kind>>,
        last: LedgerCommit,
        store: Arc<LedgerStore<T>>,
        health: PartHealth,
        waiting: mpsc::Receiver<WriteCommand<T::Kind>>,
        heard: watch::Receiver<u64>,
    ) -> Self {
        Self {
            view,
            last: last.id,
            store,
            health,
            waiting,
            heard,
            postponed: VecDeque::new(),
            committed: None,
            in_doubt: false,
            pool: T::Pool::default(),
        }
    }

    /// The last commit that is shown.
    fn shown(&self) -> LedgerCommit {
        LedgerCommit { revision: self.view.revision(), id: self.last }
    }

    pub(super) async fn run(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        if self.store.others().is_some() {
            self.find_loss_at_start().await;
        }
        loop {
            if let Some(first) = self.postponed.pop_front() {
                self.transact(first).await;
                continue;
            }
            tokio::select! {
                first = self.waiting.recv() => match first {
                    Some(first) => self.transact(first).await,
                    None => break,
                },
                Ok(()) = self.heard.changed() => self.follow().await,
                // Memory may be behind the database, and the next command may be far off.
                () = tokio::time::sleep(LOOK_AGAIN), if self.in_doubt => self.catch_up().await,
                () = shutdown.cancelled(), if !self.waiting.is_closed() => self.waiting.close(),
            }
        }
        // Every caller may be gone before shutdown, for example in a test. The task still lives until then.
        shutdown.cancelled().await;
        Ok(())
    }

    /// Begins a transaction, which detects a copy of the database that was put in place while no replica ran. Otherwise
    /// a restored kind would be served as if nothing had been lost until its next change.
    async fn find_loss_at_start(&mut self) {
        if let Err(fault) = self.begin_and_end().await {
            tracing::warn!(kind = T::Kind::KIND, %fault, "cannot tell whether the database has lost commits");
            self.in_doubt = true;
        }
    }

    /// Handles a hint of another replica.
    async fn follow(&mut self) {
        let (heard, shown) = (*self.heard.borrow_and_update(), self.view.revision());
        // Hints of own commits may lag behind. Without own commits, the database may have lost some, also at an
        // unchanged revision: other replicas may have committed since.
        let own = self.committed.is_some_and(|at| at.elapsed() <= HEARD);
        if heard > shown || !own {
            self.catch_up().await;
        } else if heard < shown {
            // The hint will not be repeated.
            self.in_doubt = true;
        }
    }

    /// Shows the database's state. A failure is retried later.
    async fn catch_up(&mut self) {
        let shown = self.shown();
        let caught_up = match within(PATIENCE, self.store.read_since(shown)).await {
            Ok(since) if since.last().is_without(shown) => self.begin_and_end().await,
            Ok(since) => {
                self.show(since);
                Ok(())
            }
            Err(error) if may_be_tried_again(&error) => Err(error.into()),
            Err(error) => Err(self.cannot_begin(error)),
        };
        if let Err(fault) = caught_up {
            tracing::warn!(kind = T::Kind::KIND, %fault, "cannot read the database");
            self.in_doubt = true;
        }
    }

    /// Does nothing beyond the first steps of every transaction.
    async fn begin_and_end(&mut self) -> Result<(), Fault> {
        let transaction = self.begin().await?;
        Ok(within(PATIENCE, transaction.commit()).await?)
    }

    fn show(&mut self, since: CommitsSince<T::Kind>) {
        if since.last() != self.shown() {
            self.last = since.last().id;
            show_since(&self.view, since);
        }
        self.in_doubt = false;
    }

    async fn transact(&mut self, first: WriteCommand<T::Kind>) {
        let began = Instant::now();
        let transaction = match self.begin().await {
            Ok(transaction) => transaction,
            Err(fault) => {
                count::<T>("not_begun", began);
                return self.refuse(first, &fault);
            }
        };
        let commands = self.collect(first);
        let fences: Vec<_> = commands.iter().map(|command| command.fence.clone()).collect();
        let held = match check(&transaction, &fences).await {
            Ok(held) => held,
            Err(fault) => return refuse(commands, &fault),
        };
        let (changes, mut recorded, replies) = self.run_commands(commands, &held);
        let committed =
            self.commit(transaction, changes, &mut recorded, &CommandFences { fences, held }).await;
        count::<T>(if committed.is_ok() { "committed" } else { "failed" }, began);
        if let Err(fault) = &committed {
            tracing::warn!(kind = T::Kind::KIND, %fault, callers = replies.len(), "a transaction was not committed");
        }
        for reply in replies {
            reply(committed.clone());
        }
    }

    /// Begins a transaction and shows earlier commits of others, so that nothing is computed from an old state.
    async fn begin(&mut self) -> Result<LedgerTransaction<T>, Fault> {
        let mut tries = 0;
        loop {
            match self.try_to_begin().await {
                Err(error) if may_be_tried_again(&error) && tries < TRIES => {
                    tries += 1;
                    try_again::<T>(tries, &error).await;
                }
                begun => return begun.map_err(|error| self.cannot_begin(error)),
            }
        }
    }

    async fn try_to_begin(&mut self) -> Result<LedgerTransaction<T>, DbErr> {
        let mut transaction = within(PATIENCE, self.store.begin()).await?;
        let shown = self.shown();
        let since = match self.store.others() {
            // An unshared database needs a check only after a transaction of unknown outcome.
            None if self.in_doubt => Some(within(PATIENCE, self.store.read_since(shown)).await?),
            Some(_) | None => within(PATIENCE, transaction.read_since(shown)).await?,
        };
        let mut is_mended = false;
        if let Some(mut since) = since {
            is_mended = transaction.is_of_another_copy() || since.last().is_without(shown);
            if is_mended {
                since = within(PATIENCE_TO_SAVE, loss::mend(&mut transaction, since, shown.revision)).await?;
            }
            self.show(since);
        }
        // The repaired state is shown before its commit, which may still fail.
        self.in_doubt = is_mended;
        Ok(transaction)
    }

    /// The commands that are waiting, in order.
    fn collect(&mut self, first: WriteCommand<T::Kind>) -> Vec<WriteCommand<T::Kind>> {
        let mut commands = vec![first];
        commands.extend(self.postponed.drain(..));
        while commands.len() < COMMANDS {
            let Ok(next) = self.waiting.try_recv() else { break };
            commands.push(next);
        }
        commands
    }

    /// Runs the commands, each on the result of the earlier ones. Commands after a very large change are postponed.
    fn run_commands(
        &mut self,
        commands: Vec<WriteCommand<T::Kind>>,
        held: &[bool],
    ) -> (DraftChanges<T::Kind>, Vec<RecordedEvents>, Vec<Reply>) {
        let mut changes = DraftChanges::new();
        let mut recorded = Vec::new();
        let mut replies = Vec::with_capacity(commands.len());
        for (command, held) in commands.into_iter().zip(held) {
            if changes.len() >= CHANGES {
                self.postponed.push_back(command);
                continue;
            }
            let events = EventRecorder::new(T::EVENTS, command.origin);
            let mut draft = Draft { view: &self.view, earlier: &changes, own: DraftChanges::new(), events };
            let part = command.fence.as_ref().map_or("", |fence| fence.part);
            let outcome = (command.run)(if *held { Ok(&mut draft) } else { Err(Fault::stale(part)) });
            let Draft { own, events, .. } = draft;
            replies.push(match outcome {
                DraftOutcome::Keep(reply) => {
                    changes.extend(own);
                    recorded.extend(events.recorded);
                    reply
                }
                DraftOutcome::Discard(reply) => reply,
            });
        }
        (changes, recorded, replies)
    }

    /// Refuses all waiting commands.
    fn refuse(&mut self, first: WriteCommand<T::Kind>, fault: &Fault) {
        tracing::warn!(kind = T::Kind::KIND, %fault, "a transaction was not begun");
        let commands = self.collect(first);
        refuse(commands, fault);
    }

    async fn commit(
        &mut self,
        transaction: LedgerTransaction<T>,
        mut changes: DraftChanges<T::Kind>,
        recorded: &mut [RecordedEvents],
        fences: &CommandFences,
    ) -> Result<u64, Fault> {
        let from = self.view.revision();
        for written in changes.values_mut().flatten() {
            // Usually the only reference, so nothing is copied.
            T::share(Arc::make_mut(written), &mut self.pool);
        }
        if changes.is_empty() {
            // A transaction without changes commits repairs too, which are shown by now.
            let ended = within(PATIENCE, transaction.commit()).await;
            self.in_doubt |= ended.is_err();
            ended?;
            return Ok(from);
        }
        let batch = number(changes, recorded, from);
        let events = events::rows(recorded, clock::now());
        self.last = self.make_durable(transaction, &batch, &events, from, fences).await?;
        let revision = batch.revision;
        let shown = batch.clone();
        self.view.publish(batch, |state| show(state, &shown));
        self.committed = Some(Instant::now());
        self.health.took(DatabaseWork::Writes);
        Ok(revision)
    }

    /// Saves and commits, with retries where they can help. Returns the id of the commit.
    async fn make_durable(
        &mut self,
        mut transaction: LedgerTransaction<T>,
        batch: &Batch<T::Kind>,
        events: &[EventRow],
        from: u64,
        fences: &CommandFences,
    ) -> Result<Uuid, Fault> {
        let mut tries = 0;
        loop {
            let identity = transaction.identity(batch.revision);
            let saved = self.save(&mut transaction, (batch, events), from, identity.commit, &mut tries).await;
            let error = match saved {
                Ok(()) => match within(PATIENCE, commit::<T>(transaction)).await {
                    Ok(()) => return Ok(identity.commit.id),
                    Err(error) if database::is_definite(&error) => error,
                    Err(error) if self.was_committed(&identity, &error).await? => {
                        return Ok(identity.commit.id);
                    }
                    Err(error) => error,
                },
                Err(error) => {
                    // Its connection and its lock are in the way of the next try.
                    drop(transaction);
                    error
                }
            };
            // An ambiguous end after which the commit is known to be missing may be retried as well.
            if !may_be_tried_again(&error) || tries >= TRIES {
                self.in_doubt = true;
                return Err(self.gave_up(error));
            }
            tries += 1;
            try_again::<T>(tries, &error).await;
            transaction = self.begin().await?;
            if self.view.revision() != from {
                return Err(Fault::unavailable(T::Kind::KIND, "another replica was faster"));
            }
            // Between two transactions no replica is kept from acquiring the role, which writes nothing of the kind.
            if check(&transaction, &fences.fences).await? != fences.held {
                return Err(Fault::unavailable(T::Kind::KIND, "a lease went to another replica meanwhile"));
            }
        }
    }

    /// Saves, with retries after errors that do not cost the lock.
    async fn save(
        &mut self,
        transaction: &mut LedgerTransaction<T>,
        (batch, events): (&Batch<T::Kind>, &[EventRow]),
        from: u64,
        commit: LedgerCommit,
        tries: &mut u32,
    ) -> Result<(), DbErr> {
        let kept = kept_revisions(self.view.len());
        let (forget, incarnation) = self.view.read(|state| (state.to_compact(), state.incarnation.id));
        loop {
            let saved = async {
                let is_saved = transaction.save(batch, events, from, forget, commit, incarnation).await?;
                transaction.prune_events(from, batch.revision, kept).await?;
                Ok(is_saved)
            };
            let saved = within(PATIENCE_TO_SAVE, saved).await;
            match saved {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(DbErr::RecordNotUpdated),
                Err(error) if database::is_transient(&error) && *tries < TRIES => {
                    within(PATIENCE, transaction.undo()).await?;
                    *tries += 1;
                    try_again::<T>(*tries, &error).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Looks up whether a transaction without an answer was committed.
    async fn was_committed(&mut self, identity: &TransactionIdentity, error: &DbErr) -> Result<bool, Fault> {
        tracing::warn!(kind = T::Kind::KIND, %error, "no answer to a commit, looking up its outcome");
        let deadline = Instant::now() + FIND_OUT;
        let mut tries = 0;
        while Instant::now() < deadline {
            match within(PATIENCE, self.store.outcome(identity)).await {
                Ok(TransactionOutcome::Committed) => return Ok(true),
                Ok(TransactionOutcome::NotCommitted) => return Ok(false),
                Ok(TransactionOutcome::Unknown) => break,
                Ok(TransactionOutcome::Open) => {}
                Err(error) => tracing::debug!(kind = T::Kind::KIND, %error, "cannot look it up yet"),
            }
            tries += 1;
            tokio::time::sleep(pause::after(tries).min(LONGEST_PAUSE)).await;
        }
        self.in_doubt = true;
        self.health.refused(DatabaseWork::Writes, error);
        Err(Fault::unavailable("database", "it is not known whether the change was made"))
    }

    /// The callers' fault after an error of their own write, which is not retried.
    fn gave_up(&self, error: DbErr) -> Fault {
        if database::is_in_trouble(&error) {
            self.health.refused(DatabaseWork::Writes, &error);
        }
        error.into()
    }

    /// Returns the callers' fault after an error before any write: whatever its kind, no write's content has caused it.
    fn cannot_begin(&self, error: DbErr) -> Fault {
        self.health.refused(DatabaseWork::Writes, &error);
        error.into()
    }
}

/// Which commands may run, by the fences that some of them have.
async fn check<T: Table>(
    transaction: &LedgerTransaction<T>,
    fences: &[Option<Fence>],
) -> Result<Vec<bool>, Fault> {
    let present: Vec<_> = fences.iter().flatten().collect();
    if present.is_empty() {
        return Ok(vec![true; fences.len()]);
    }
    let mut checked = within(PATIENCE, transaction.check(&present)).await?.into_iter();
    Ok(fences.iter().map(|fence| fence.is_none() || checked.next().unwrap_or(false)).collect())
}

async fn try_again<T: Table>(tries: u32, error: &DbErr) {
    metrics::counter!(RETRIES, "kind" => T::Kind::KIND).increment(1);
    tracing::debug!(kind = T::Kind::KIND, %error, tries, "retrying a transaction");
    tokio::time::sleep(pause::after(tries).min(LONGEST_PAUSE)).await;
}

/// Counts a transaction that began at that time.
fn count<T: Table>(outcome: &'static str, began: Instant) {
    metrics::counter!(TRANSACTIONS, "kind" => T::Kind::KIND, "outcome" => outcome).increment(1);
    metrics::histogram!(SECONDS, "kind" => T::Kind::KIND).record(began.elapsed());
}

fn may_be_tried_again(error: &DbErr) -> bool {
    database::is_transient(error) || database::is_broken(error)
}

fn refuse<R: Resource>(commands: Vec<WriteCommand<R>>, fault: &Fault) {
    for command in commands {
        let (DraftOutcome::Keep(reply) | DraftOutcome::Discard(reply)) = (command.run)(Err(fault.clone()));
        reply(Err(fault.clone()));
    }
}

async fn commit<T: Table>(transaction: LedgerTransaction<T>) -> Result<(), DbErr> {
    failpoint::pass(format_args!("commit.{}.before", T::Kind::KIND));
    transaction.commit().await?;
    failpoint::pass(format_args!("commit.{}.after", T::Kind::KIND));
    Ok(())
}

/// Waits no longer than `patience`: a database that is cut off does not answer at all.
async fn within<A>(patience: Duration, call: impl Future<Output = Result<A, DbErr>>) -> Result<A, DbErr> {
    let answer = tokio::time::timeout(patience, call).await;
    answer.unwrap_or_else(|_| Err(database::silent()))
}
