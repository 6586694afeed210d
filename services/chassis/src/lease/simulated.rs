//! Either place for the rows of leases: the database, or the disk in memory that the context of a simulation has.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sea_orm::{DatabaseConnection, DbErr};
use tokio::sync::watch;

use super::{Shard, table, table::topic};
use crate::{
    Context, database,
    hints::Hub,
    simulation::{Disk, Holder, LeaseTransaction},
};

/// Whether several replicas may use what is kept in `database`.
pub(super) fn is_shared(context: &Context, database: &DatabaseConnection) -> bool {
    context.disk.as_ref().map_or_else(|| database::is_shared(database), Disk::is_shared)
}

/// The rows of one part, as one replica sees them.
pub(super) enum Rows {
    Database(table::Rows),
    Disk { part: &'static str, who: Holder, disk: Disk, hub: Arc<Hub> },
}

/// A change of the rows.
pub(super) enum Transaction {
    Database(table::Transaction),
    Disk { part: &'static str, transaction: LeaseTransaction, is_hinted: AtomicBool },
}

impl Rows {
    pub(super) fn new(
        context: &Context,
        part: &'static str,
        id: Arc<str>,
        ttl: Duration,
        database: &DatabaseConnection,
    ) -> Self {
        let Some(disk) = context.disk.clone() else {
            return Self::Database(table::Rows::new(context, part, id, ttl, database));
        };
        let who = Holder { id, ttl, start: disk.start() };
        let hub = context.hubs.of_disk(&context.tasks, &disk);
        Self::Disk { part, who, disk, hub }
    }

    pub(super) fn hints(&self) -> watch::Receiver<u64> {
        match self {
            Self::Database(rows) => rows.hints(),
            Self::Disk { part, hub, .. } => hub.subscribe(&topic(part)),
        }
    }

    pub(super) async fn make(&self) -> Result<(), DbErr> {
        match self {
            Self::Database(rows) => rows.make().await,
            Self::Disk { who, disk, .. } => {
                let transaction = LeaseTransaction::begin(disk, who.clone()).await?;
                transaction.change(|rows, _, now| rows.make(now)).await?;
                transaction.commit(None).await
            }
        }
    }

    pub(super) async fn begin(&self) -> Result<Transaction, DbErr> {
        match self {
            Self::Database(rows) => rows.begin().await.map(Transaction::Database),
            Self::Disk { part, who, disk, .. } => {
                let transaction = LeaseTransaction::begin(disk, who.clone()).await?;
                Ok(Transaction::Disk { part, transaction, is_hinted: AtomicBool::new(false) })
            }
        }
    }
}

impl Transaction {
    pub(super) async fn live(&self) -> Result<(u64, bool), DbErr> {
        match self {
            Self::Database(transaction) => transaction.live().await,
            Self::Disk { transaction, .. } => transaction.change(|rows, who, now| rows.live(who, now)).await,
        }
    }

    pub(super) async fn renew(&self, acted_upon: &[Shard]) -> Result<BTreeMap<Shard, u64>, DbErr> {
        match self {
            Self::Database(transaction) => transaction.renew(acted_upon).await,
            Self::Disk { transaction, .. } => {
                transaction.change(|rows, who, now| rows.renew(who, acted_upon, now)).await
            }
        }
    }

    pub(super) async fn take(
        &self,
        most: usize,
        acted_upon: &[Shard],
    ) -> Result<BTreeMap<Shard, u64>, DbErr> {
        match self {
            Self::Database(transaction) => transaction.take(most, acted_upon).await,
            Self::Disk { transaction, .. } => transaction.take(most, acted_upon).await,
        }
    }

    pub(super) async fn next_change(&self, held: &[Shard], short: bool) -> Result<Option<Duration>, DbErr> {
        match self {
            Self::Database(transaction) => transaction.next_change(held, short).await,
            Self::Disk { transaction, .. } => {
                transaction.change(|rows, who, now| rows.next_change(who, held, short, now)).await
            }
        }
    }

    pub(super) async fn release_others(&self, held: &[Shard]) -> Result<u64, DbErr> {
        match self {
            Self::Database(transaction) => transaction.release_others(held).await,
            Self::Disk { transaction, .. } => transaction.release_others(held).await,
        }
    }

    pub(super) async fn leave(&self) -> Result<(), DbErr> {
        match self {
            Self::Database(transaction) => transaction.leave().await,
            Self::Disk { transaction, .. } => transaction.leave().await,
        }
    }

    pub(super) async fn hint(&self) -> Result<(), DbErr> {
        match self {
            Self::Database(transaction) => transaction.hint().await,
            Self::Disk { is_hinted, .. } => {
                is_hinted.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    pub(super) async fn commit(self) -> Result<(), DbErr> {
        match self {
            Self::Database(transaction) => transaction.commit().await,
            Self::Disk { part, transaction, is_hinted } => {
                transaction.commit(is_hinted.into_inner().then(|| topic(part))).await
            }
        }
    }
}
