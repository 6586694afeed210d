//! Transactions on a disk in memory, with the locks of PostgreSQL.

use std::time::Duration;

use sea_orm::{DbErr, RuntimeErr};
use tokio::time::{Instant, sleep_until};

use super::{
    CommitOutcome, DiskContents, KeptCommit, SimulatedDisk,
    leases::{LeaseHolder, RoleRow},
    locks::{OpenTransaction, TransactionLock},
    table::DiskTable,
};
use crate::simulation::PlantedDefect;
use crate::store::{
    fence::Fence,
    resource::{Batch, Resource},
};

/// Time after which an idle transaction is ended, as the connections of ledgers demand of a server.
const IDLE: Duration = Duration::from_secs(5);

/// Transaction, which ends when it is dropped.
pub(crate) struct DiskTransaction {
    disk: SimulatedDisk,
    number: u64,
}

impl SimulatedDisk {
    /// Begins a change of the object of `lock`, once no other transaction changes it.
    pub(crate) async fn begin(&self, lock: TransactionLock) -> Result<DiskTransaction, DbErr> {
        let begun = self.wait(|contents, now| {
            let in_the_way = contents.transactions.values().find(|open| open.lock == lock);
            if let Some(open) = in_the_way {
                return Err(open.active);
            }
            contents.last_transaction += 1;
            let (shares_role, takes_role) = (false, false);
            let open = OpenTransaction { start: self.start(), lock, active: now, shares_role, takes_role };
            contents.transactions.insert(contents.last_transaction, open);
            Ok(contents.last_transaction)
        });
        Ok(DiskTransaction { disk: self.clone(), number: begun.await? })
    }

    /// Waits until `attempt` succeeds. Its error is the last activity of a transaction that blocks it.
    async fn wait<T>(
        &self,
        mut attempt: impl FnMut(&mut DiskContents, Instant) -> Result<T, Instant>,
    ) -> Result<T, DbErr> {
        loop {
            let changed = self.shared.changed.notified();
            self.access().await?;
            let attempted = {
                let (mut contents, now) = (self.shared.state.lock(), Instant::now());
                if self.is_shared() {
                    contents.transactions.retain(|_, open| open.active + IDLE > now);
                }
                attempt(&mut contents, now)
            };
            match attempted {
                Ok(done) => return Ok(done),
                Err(active) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = sleep_until(active + IDLE) => {}
                },
            }
        }
    }
}

impl DiskTransaction {
    pub(crate) fn disk(&self) -> &SimulatedDisk {
        &self.disk
    }

    /// Keeps the transaction alive; fails if it has ended meanwhile.
    pub(crate) async fn go_on(&self) -> Result<(), DbErr> {
        self.disk.access().await?;
        let ended = || self.disk.broken("the server has ended the transaction");
        let mut contents = self.disk.shared.state.lock();
        let open = contents.transactions.get_mut(&self.number).ok_or_else(ended)?;
        open.active = Instant::now();
        Ok(())
    }

    /// Reads the table of one kind.
    pub(crate) async fn read<R: Resource, T>(
        &self,
        read: impl FnOnce(&DiskTable<R>) -> T,
    ) -> Result<T, DbErr> {
        self.go_on().await?;
        self.disk.read(read).await
    }

    /// Returns which of these fences hold, until this transaction ends.
    pub(crate) async fn check(&self, fences: &[&Fence]) -> Result<Vec<bool>, DbErr> {
        self.go_on().await?;
        let is_shared = fences.iter().any(|fence| !fence.holder.is_empty());
        let number = self.number;
        let checked = self.disk.wait(|contents, now| {
            let mut others = contents.transactions.iter().filter(|(other, _)| **other != number);
            if let Some((_, open)) = others.find(|(_, open)| is_shared && open.takes_role) {
                return Err(open.active);
            }
            if let Some(open) = contents.transactions.get_mut(&number) {
                (open.active, open.shares_role) = (now, is_shared);
            }
            let row = &contents.role;
            let holds = |fence: &&Fence| {
                fence.holder.is_empty()
                    || row.is(&fence.holder, fence.epoch)
                    || PlantedDefect::UnfencedWrites.is_planted()
            };
            Ok(fences.iter().map(holds).collect())
        });
        checked.await
    }

    /// Changes the table of one kind. `change` returns its changes, or `None` if it made none.
    pub(crate) async fn commit<R: Resource>(
        self,
        change: impl FnOnce(&mut DiskTable<R>) -> Option<Batch<R>>,
    ) -> Result<bool, DbErr> {
        let outcome = self.reach(R::KIND).await?;
        if outcome == CommitOutcome::Failed {
            // This happens only with a defect.
            return self.answer(outcome).await.map(|()| true);
        }
        let (kept, foreign) = {
            let mut contents = self.disk.shared.state.lock();
            let table = contents.table::<R>();
            let before = table.copy();
            let kept = change(table);
            if kept.is_some() {
                table.remember(before);
            }
            let foreign = kept.as_ref().map(|batch| self.foreign(&contents, batch));
            (kept, foreign.unwrap_or_default())
        };
        if let Some(batch) = &kept {
            let commit = KeptCommit { start: self.disk.start(), kind: R::KIND, batch, foreign };
            self.disk.shared.controller.kept(&commit);
            self.hint(R::KIND.to_owned(), Some(batch.revision));
        }
        self.answer(outcome).await?;
        Ok(kept.is_some())
    }

    /// Returns the keys of a batch, if another start has acquired the role.
    fn foreign<R: Resource>(&self, contents: &DiskContents, batch: &Batch<R>) -> Vec<String> {
        let is_foreign = contents.role.start().is_some_and(|start| start != self.disk.start());
        let changed = batch.changed.iter().filter(|_| is_foreign);
        changed.map(|one| one.key().to_owned()).collect()
    }

    /// Sends a commit to the server, which it may not reach.
    async fn reach(&self, kind: &'static str) -> Result<CommitOutcome, DbErr> {
        self.go_on().await?;
        let controller = &self.disk.shared.controller;
        let (takes, outcome) = controller.outcome(kind);
        tokio::time::sleep(takes).await;
        match outcome {
            CommitOutcome::Failed if PlantedDefect::FalsePromises.is_planted() => {}
            CommitOutcome::Failed => {
                self.go_on().await?;
                return Err(DbErr::Conn(RuntimeErr::Internal("the disk is full".to_owned())));
            }
            CommitOutcome::DiesBefore => {
                controller.dies(self.disk.start());
                return self.disk.never().await;
            }
            CommitOutcome::PausesBefore => controller.pauses(self.disk.start()),
            CommitOutcome::Kept
            | CommitOutcome::Unheard
            | CommitOutcome::DiesAfter
            | CommitOutcome::PausesAfter => {}
        }
        self.go_on().await?;
        Ok(outcome)
    }

    /// Sends the answer to a commit, which may not reach the host. The server has ended the transaction.
    async fn answer(self, outcome: CommitOutcome) -> Result<(), DbErr> {
        let disk = self.disk.clone();
        drop(self);
        match outcome {
            CommitOutcome::Unheard => {
                return Err(disk.broken("the connection broke before the commit was confirmed"));
            }
            CommitOutcome::DiesAfter => {
                disk.shared.controller.dies(disk.start());
                return disk.never().await;
            }
            CommitOutcome::PausesAfter => disk.shared.controller.pauses(disk.start()),
            CommitOutcome::Kept
            | CommitOutcome::Failed
            | CommitOutcome::DiesBefore
            | CommitOutcome::PausesBefore => return Ok(()),
        }
        disk.access().await
    }

    fn hint(&self, topic: String, revision: Option<u64>) {
        // There may be no receiver.
        let _listeners = self.disk.shared.hints.send((topic, revision));
    }
}

impl Drop for DiskTransaction {
    fn drop(&mut self) {
        self.disk.shared.state.lock().transactions.remove(&self.number);
        self.disk.shared.changed.notify_waiters();
    }
}

/// Transaction that changes the row of the role: a copy of it, which is stored by the commit.
pub(crate) struct LeaseTransaction {
    transaction: DiskTransaction,
    who: LeaseHolder,
    /// Beginning of the transaction, which is its time to the end.
    now: Instant,
    row: parking_lot::Mutex<RoleRow>,
}

impl LeaseTransaction {
    pub(crate) async fn begin(disk: &SimulatedDisk, who: LeaseHolder) -> Result<Self, DbErr> {
        let transaction = disk.begin(TransactionLock::Role).await?;
        let row = disk.shared.state.lock().role.clone().into();
        Ok(Self { transaction, who, now: Instant::now(), row })
    }

    pub(crate) async fn change<T>(
        &self,
        change: impl FnOnce(&mut RoleRow, &LeaseHolder, Instant) -> T,
    ) -> Result<T, DbErr> {
        self.transaction.go_on().await?;
        Ok(change(&mut self.row.lock(), &self.who, self.now))
    }

    /// Acquires the role, unless it is held or a write under it is in progress.
    pub(crate) async fn acquire(&self, last: u64) -> Result<Option<u64>, DbErr> {
        self.transaction.go_on().await?;
        let is_free = self.row.lock().is_free(&self.who, self.now);
        let is_locked = is_free && self.lock_unless_written_under();
        Ok(if is_locked { self.row.lock().acquire(&self.who, last, self.now) } else { None })
    }

    /// Releases the role, once the writes under it have ended.
    pub(crate) async fn release(&self) -> Result<(), DbErr> {
        if !self.change(|row, who, _| row.is_of(who)).await? {
            return Ok(());
        }
        let number = self.transaction.number;
        let locked = self.transaction.disk.wait(|contents, now| {
            if let Some(open) = contents.transactions.get_mut(&number) {
                open.active = now;
            }
            match contents.transactions.values().find(|open| open.shares_role) {
                Some(open) => Err(open.active),
                None => Ok(()),
            }
        });
        locked.await?;
        self.lock_unless_written_under();
        self.row.lock().release(&self.who, self.now);
        Ok(())
    }

    /// Locks the row, unless a write under it is in progress. Returns whether it is locked.
    fn lock_unless_written_under(&self) -> bool {
        let mut contents = self.transaction.disk.shared.state.lock();
        if contents.transactions.values().any(|open| open.shares_role) {
            return false;
        }
        if let Some(open) = contents.transactions.get_mut(&self.transaction.number) {
            open.takes_role = true;
        }
        true
    }

    /// Stores the row, and sends a hint about `topic` to every replica if there is one.
    pub(crate) async fn commit(self, topic: Option<String>) -> Result<(), DbErr> {
        let Self { transaction, who: _, now: _, row } = self;
        let outcome = transaction.reach("leases").await?;
        transaction.disk.shared.state.lock().keep_role(row.into_inner());
        if let Some(topic) = topic {
            transaction.hint(topic, None);
        }
        transaction.answer(outcome).await
    }
}
