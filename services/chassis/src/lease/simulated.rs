//! Store of the row of a role: the database, or the disk in memory of a simulation's context.

use std::{sync::Arc, time::Duration};

use sea_orm::{DatabaseConnection, DbErr};
use tokio::sync::watch;

use super::table::{self, topic};
use crate::{
    Context,
    store::{
        database,
        disk::{LeaseHolder, LeaseTransaction, SimulatedDisk},
        fence::HeldElsewhere,
        hints::{HintHub, HintHubs},
    },
};

/// Returns whether several replicas may use `database`.
pub(super) fn is_shared(context: &Context, database: &DatabaseConnection) -> bool {
    SimulatedDisk::attached_to(context).map_or_else(|| database::is_shared(database), |disk| disk.is_shared())
}

/// Row of one role, as one replica uses it.
#[derive(Clone)]
pub(super) enum RoleTable {
    Database(table::RoleTable),
    Disk(DiskRole),
}

/// Row of a role on a disk.
#[derive(Clone)]
pub(super) struct DiskRole {
    part: &'static str,
    holder: LeaseHolder,
    disk: SimulatedDisk,
    hub: Arc<HintHub>,
}

impl RoleTable {
    pub(super) fn new(
        context: &Context,
        part: &'static str,
        id: Arc<str>,
        ttl: Duration,
        database: &DatabaseConnection,
    ) -> Self {
        let Some(disk) = SimulatedDisk::attached_to(context) else {
            return Self::Database(table::RoleTable::new(context, part, id, ttl, database));
        };
        let holder = LeaseHolder { id, ttl, start: disk.start() };
        let hub = context.shared.of::<HintHubs>().of_disk(&context.tasks, &disk);
        Self::Disk(DiskRole { part, holder, disk, hub })
    }

    pub(super) fn hints(&self) -> watch::Receiver<u64> {
        match self {
            Self::Database(row) => row.hints(),
            Self::Disk(row) => row.hub.subscribe(&topic(row.part)),
        }
    }

    pub(super) async fn make(&self) -> Result<(), DbErr> {
        match self {
            Self::Database(row) => row.make().await,
            Self::Disk(row) => {
                let transaction = row.begin().await?;
                transaction.change(|row, _, now| row.make(now)).await?;
                transaction.commit(None).await
            }
        }
    }

    pub(super) async fn renew(&self, epoch: u64, taken_over: bool) -> Result<bool, DbErr> {
        match self {
            Self::Database(row) => row.renew(epoch, taken_over).await,
            Self::Disk(row) => {
                let transaction = row.begin().await?;
                let renew = transaction.change(|row, holder, now| row.renew(holder, epoch, taken_over, now));
                let renewed = renew.await?;
                transaction.commit(None).await.map(|()| renewed)
            }
        }
    }

    pub(super) async fn acquire(&self, last: u64) -> Result<Option<u64>, DbErr> {
        match self {
            Self::Database(row) => row.acquire(last).await,
            Self::Disk(row) => {
                let transaction = row.begin().await?;
                let acquired = transaction.acquire(last).await?;
                if acquired.is_some() {
                    transaction.commit(None).await?;
                }
                Ok(acquired)
            }
        }
    }

    pub(super) async fn look(&self) -> Result<Option<HeldElsewhere>, DbErr> {
        match self {
            Self::Database(row) => row.look().await,
            Self::Disk(row) => row.begin().await?.change(|row, _, now| row.look(now)).await,
        }
    }

    pub(super) async fn release(&self) -> Result<(), DbErr> {
        match self {
            Self::Database(row) => row.release().await,
            Self::Disk(row) => {
                let transaction = row.begin().await?;
                transaction.release().await?;
                transaction.commit(Some(topic(row.part))).await
            }
        }
    }
}

impl DiskRole {
    async fn begin(&self) -> Result<LeaseTransaction, DbErr> {
        LeaseTransaction::begin(&self.disk, self.holder.clone()).await
    }
}
