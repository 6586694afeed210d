//! Transactions on a disk in memory, with the locks that those on a PostgreSQL have.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use sea_orm::{DbErr, RuntimeErr};
use tokio::time::{Instant, sleep_until};

use super::{
    defect::Defect,
    disk::{Commit, Contents, Disk, Fate},
    leases::{Holder, LeaseRows},
    locks::{Lock, Open},
    shelf::Shelf,
};
use crate::{
    fence::{Fence, Shard},
    resource::{Batch, Resource},
};

/// After how long a transaction in which nothing is asked is ended, as the connections of ledgers want it of a server.
const IDLE: Duration = Duration::from_secs(5);

/// A transaction. It is ended when it is dropped.
pub(crate) struct Transaction {
    disk: Disk,
    number: u64,
}

impl Disk {
    /// Begins to change what `lock` is about, once nobody else does.
    pub(crate) async fn begin(&self, lock: Lock) -> Result<Transaction, DbErr> {
        let begun = self.wait(|contents, now| {
            let in_the_way = contents.transactions.values().find(|open| open.lock == lock);
            if let Some(open) = in_the_way {
                return Err(open.active);
            }
            contents.last_transaction += 1;
            let (shares, takes) = (BTreeSet::new(), BTreeSet::new());
            let open = Open { start: self.start(), lock, active: now, shares, takes };
            contents.transactions.insert(contents.last_transaction, open);
            Ok(contents.last_transaction)
        });
        Ok(Transaction { disk: self.clone(), number: begun.await? })
    }

    /// Waits until `attempt` is done. While it is not, it answers when somebody who is in the way was active last.
    async fn wait<T>(
        &self,
        mut attempt: impl FnMut(&mut Contents, Instant) -> Result<T, Instant>,
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

impl Transaction {
    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Asks nothing, which fails when the transaction has ended meanwhile.
    pub(crate) async fn go_on(&self) -> Result<(), DbErr> {
        self.disk.access().await?;
        let ended = || self.disk.broken("the server has ended the transaction");
        let mut contents = self.disk.shared.state.lock();
        let open = contents.transactions.get_mut(&self.number).ok_or_else(ended)?;
        open.active = Instant::now();
        Ok(())
    }

    /// Reads what is kept of one kind.
    pub(crate) async fn read<R: Resource, T>(&self, read: impl FnOnce(&Shelf<R>) -> T) -> Result<T, DbErr> {
        self.go_on().await?;
        self.disk.read(read).await
    }

    /// Which of these fences hold, until this ends.
    pub(crate) async fn check(&self, fences: &[&Fence]) -> Result<Vec<bool>, DbErr> {
        self.go_on().await?;
        let shared = fences.iter().filter(|fence| !fence.holder.is_empty());
        let wanted: BTreeSet<Shard> = shared.flat_map(|fence| fence.epochs.keys().copied()).collect();
        let number = self.number;
        let checked = self.disk.wait(|contents, now| {
            let others = contents.transactions.iter().filter(|(other, _)| **other != number);
            if let Some((_, open)) = others.into_iter().find(|(_, open)| !open.takes.is_disjoint(&wanted)) {
                return Err(open.active);
            }
            if let Some(open) = contents.transactions.get_mut(&number) {
                (open.active, open.shares) = (now, wanted.clone());
            }
            let rows = &contents.leases;
            let holds = |fence: &&Fence| {
                let held = |(shard, epoch): (&Shard, &u64)| rows.is(*shard, &fence.holder, *epoch);
                fence.holder.is_empty()
                    || fence.epochs.iter().all(held)
                    || Defect::UnfencedWrites.is_planted()
            };
            Ok(fences.iter().map(holds).collect())
        });
        checked.await
    }

    /// Changes what is kept of one kind. `change` answers none if it changed nothing, and otherwise what it changed.
    pub(crate) async fn commit<R: Resource>(
        self,
        change: impl FnOnce(&mut Shelf<R>) -> Option<Batch<R>>,
    ) -> Result<bool, DbErr> {
        let fate = self.reach(R::KIND).await?;
        if fate == Fate::Failed {
            // Comes only with a defect.
            return self.answer(fate).await.map(|()| true);
        }
        let (kept, foreign) = {
            let mut contents = self.disk.shared.state.lock();
            let shelf = contents.shelf::<R>();
            let before = shelf.copy();
            let kept = change(shelf);
            if kept.is_some() {
                shelf.remember(before);
            }
            let foreign = kept.as_ref().map(|batch| self.foreign(&contents, batch));
            (kept, foreign.unwrap_or_default())
        };
        if let Some(batch) = &kept {
            let commit = Commit { start: self.disk.start(), kind: R::KIND, batch, foreign };
            self.disk.shared.custodian.kept(&commit);
            self.hint(R::KIND.to_owned(), Some(batch.revision));
        }
        self.answer(fate).await?;
        Ok(kept.is_some())
    }

    /// What of a batch is in a shard that another start has taken.
    fn foreign<R: Resource>(&self, contents: &Contents, batch: &Batch<R>) -> Vec<String> {
        let is_foreign = |key: &&str| {
            contents.leases.start_of(Shard::of(key)).is_some_and(|start| start != self.disk.start())
        };
        batch.changed.iter().map(|one| one.key()).filter(is_foreign).map(str::to_owned).collect()
    }

    /// A commit gets to the server, or does not.
    async fn reach(&self, kind: &'static str) -> Result<Fate, DbErr> {
        self.go_on().await?;
        let custodian = &self.disk.shared.custodian;
        let (takes, fate) = custodian.fate(kind);
        tokio::time::sleep(takes).await;
        match fate {
            Fate::Failed if Defect::FalsePromises.is_planted() => {}
            Fate::Failed => {
                self.go_on().await?;
                return Err(DbErr::Conn(RuntimeErr::Internal("the disk is full".to_owned())));
            }
            Fate::DiesBefore => {
                custodian.dies(self.disk.start());
                return self.disk.never().await;
            }
            Fate::PausesBefore => custodian.pauses(self.disk.start()),
            Fate::Kept | Fate::Unheard | Fate::DiesAfter | Fate::PausesAfter => {}
        }
        self.go_on().await?;
        Ok(fate)
    }

    /// The answer to a commit gets to the host, or does not. The server has ended the transaction.
    async fn answer(self, fate: Fate) -> Result<(), DbErr> {
        let disk = self.disk.clone();
        drop(self);
        match fate {
            Fate::Unheard => return Err(disk.broken("the connection broke before the commit was confirmed")),
            Fate::DiesAfter => {
                disk.shared.custodian.dies(disk.start());
                return disk.never().await;
            }
            Fate::PausesAfter => disk.shared.custodian.pauses(disk.start()),
            Fate::Kept | Fate::Failed | Fate::DiesBefore | Fate::PausesBefore => return Ok(()),
        }
        disk.access().await
    }

    fn hint(&self, topic: String, revision: Option<u64>) {
        // Nobody may be listening.
        let _listeners = self.disk.shared.hints.send((topic, revision));
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.disk.shared.state.lock().transactions.remove(&self.number);
        self.disk.shared.changed.notify_waiters();
    }
}

/// A transaction that changes the rows of leases: a copy of them, which is kept when it is committed.
pub(crate) struct LeaseTransaction {
    transaction: Transaction,
    who: Holder,
    /// When it began, which is its time to the end.
    now: Instant,
    rows: parking_lot::Mutex<LeaseRows>,
}

impl LeaseTransaction {
    pub(crate) async fn begin(disk: &Disk, who: Holder) -> Result<Self, DbErr> {
        let transaction = disk.begin(Lock::Leases).await?;
        let rows = disk.shared.state.lock().leases.clone().into();
        Ok(Self { transaction, who, now: Instant::now(), rows })
    }

    pub(crate) async fn change<T>(
        &self,
        change: impl FnOnce(&mut LeaseRows, &Holder, Instant) -> T,
    ) -> Result<T, DbErr> {
        self.transaction.go_on().await?;
        Ok(change(&mut self.rows.lock(), &self.who, self.now))
    }

    pub(crate) async fn take(
        &self,
        most: usize,
        acted_upon: &[Shard],
    ) -> Result<BTreeMap<Shard, u64>, DbErr> {
        self.transaction.go_on().await?;
        let free = self.rows.lock().free(&self.who, acted_upon, self.now);
        let taken = self.lock_unless_written_under(free, most);
        Ok(self.rows.lock().take(&self.who, &taken, self.now))
    }

    pub(crate) async fn release_others(&self, held: &[Shard]) -> Result<u64, DbErr> {
        self.transaction.go_on().await?;
        let others = self.rows.lock().others_of(&self.who, held);
        let others = self.lock_unless_written_under(others, usize::MAX);
        self.rows.lock().release(&others, self.now);
        Ok(others.len() as u64)
    }

    /// Waits for the writes under what is given back.
    pub(crate) async fn leave(&self) -> Result<(), DbErr> {
        let number = self.transaction.number;
        let mine = self.rows.lock().others_of(&self.who, &[]);
        let locked = self.transaction.disk.wait(|contents, now| {
            if let Some(open) = contents.transactions.get_mut(&number) {
                open.active = now;
            }
            let shares = |open: &Open| mine.iter().any(|shard| open.shares.contains(shard));
            match contents.transactions.values().find(|open| shares(open)) {
                Some(open) => Err(open.active),
                None => Ok(()),
            }
        });
        locked.await?;
        let mine = self.lock_unless_written_under(mine, usize::MAX);
        let mut rows = self.rows.lock();
        rows.release(&mine, self.now);
        rows.leave(&self.who);
        Ok(())
    }

    /// Keeps up to `most` of `shards` to itself under which nobody is just writing, and gives them.
    fn lock_unless_written_under(&self, mut shards: Vec<Shard>, most: usize) -> Vec<Shard> {
        let mut contents = self.transaction.disk.shared.state.lock();
        shards.retain(|shard| !contents.transactions.values().any(|open| open.shares.contains(shard)));
        shards.truncate(most);
        if let Some(open) = contents.transactions.get_mut(&self.transaction.number) {
            open.takes.extend(&shards);
        }
        shards
    }

    /// Keeps the rows, and tells everybody of `topic` if there is one.
    pub(crate) async fn commit(self, topic: Option<String>) -> Result<(), DbErr> {
        let Self { transaction, who: _, now: _, rows } = self;
        let fate = transaction.reach("leases").await?;
        transaction.disk.shared.state.lock().keep_leases(rows.into_inner());
        if let Some(topic) = topic {
            transaction.hint(topic, None);
        }
        transaction.answer(fate).await
    }
}
