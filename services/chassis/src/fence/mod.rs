//! Fencing tokens: the leases under which a change was decided, and the check that none of them is over.
//!
//! A write is given a [`Fence`] and checks it within its transaction. Taking, renewing and giving back leases is the
//! business of [`lease`](crate::lease); a write needs no more of them than this.

mod shard;

use std::{collections::BTreeMap, sync::Arc};

use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, QueryResult, Statement};

pub use shard::{SHARDS, Shard};

/// The leases under which a change was decided. A write that is given it changes nothing if one of them is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    pub(crate) part: &'static str,
    /// Empty where nothing is shared: then there is nothing to check.
    pub(crate) holder: Arc<str>,
    pub(crate) epochs: BTreeMap<Shard, u64>,
}

impl Fence {
    /// The lease of the shard of `key` alone.
    pub fn of(&self, key: &str) -> Self {
        let shard = Shard::of(key);
        let epochs = self.epochs.get(&shard).map(|epoch| (shard, *epoch)).into_iter().collect();
        Self { part: self.part, holder: Arc::clone(&self.holder), epochs }
    }
}

/// Whether each of `fences` holds. Nobody can take or release a shard of those that do before the transaction ends; they
/// can be renewed meanwhile. So all that changes holder or epoch locks rows `FOR UPDATE` first.
pub(crate) async fn check(on: &DatabaseTransaction, fences: &[&Fence]) -> Result<Vec<bool>, DbErr> {
    let mut wanted = BTreeMap::<&str, Vec<i64>>::new();
    for fence in fences.iter().filter(|fence| !fence.holder.is_empty()) {
        let shards = fence.epochs.keys().map(|shard| i64::from(shard.number()));
        wanted.entry(fence.part).or_default().extend(shards);
    }
    let mut current = BTreeMap::new();
    for (part, mut shards) in wanted {
        shards.sort_unstable();
        shards.dedup();
        let sql = "SELECT shard, holder, epoch FROM leases WHERE part = $1 AND shard = ANY($2) \
                   ORDER BY shard FOR KEY SHARE";
        let values = [part.into(), shards.into()];
        let leases = Statement::from_sql_and_values(DbBackend::Postgres, sql, values);
        for row in on.query_all_raw(leases).await? {
            let holder: String = row.try_get("", "holder")?;
            let (shard, epoch) = shard_and_epoch(&row)?;
            current.insert((part, shard), (holder, epoch));
        }
    }
    let holds = |fence: &&Fence| {
        fence.holder.is_empty()
            || fence.epochs.iter().all(|(shard, epoch)| {
                let now = current.get(&(fence.part, *shard));
                now.is_some_and(|(holder, now)| **holder == *fence.holder && now == epoch)
            })
    };
    Ok(fences.iter().map(holds).collect())
}

/// The shard and the epoch in a row of leases.
pub(crate) fn shard_and_epoch(row: &QueryResult) -> Result<(Shard, u64), DbErr> {
    let number: i64 = row.try_get("", "shard")?;
    let shard =
        Shard::numbered(number).ok_or_else(|| DbErr::Custom(format!("there is no shard {number}")))?;
    let epoch: i64 = row.try_get("", "epoch")?;
    Ok((shard, epoch.cast_unsigned()))
}
