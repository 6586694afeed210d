//! Fencing tokens: the term of a role in which a change was decided, and the check that no other term has begun.
//!
//! The check compares holder and epoch. A lease that has merely expired voids no write: until the role is
//! released or acquired under a new epoch, no other replica acts, so the write of the last holder is in time.
//!
//! A write is given a [`Fence`] and checks it within its transaction. Acquiring, renewing and releasing leases is the
//! business of [`lease`](crate::lease); a write needs no more of them than this.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, Statement};

/// The term of a role in which a change was decided. A write that is given it changes nothing once the role was released
/// or acquired anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    pub(crate) part: &'static str,
    /// Empty where nothing is shared: then there is nothing to check.
    pub(crate) holder: Arc<str>,
    pub(crate) epoch: u64,
}

/// Role of a part as another replica holds it, or free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldElsewhere {
    pub(crate) epoch: u64,
    /// Time left of the lease, unless it is renewed.
    pub(crate) left: Duration,
    /// Whether the holder has taken over.
    pub(crate) taken_over: bool,
}

/// Returns whether each of `fences` holds. No replica can acquire or release a role whose fence holds before the
/// transaction ends; the lease can be renewed meanwhile. So every statement that changes holder or epoch locks the row
/// `FOR UPDATE` first.
pub(crate) async fn check(on: &DatabaseTransaction, fences: &[&Fence]) -> Result<Vec<bool>, DbErr> {
    let shared = fences.iter().filter(|fence| !fence.holder.is_empty());
    let parts: BTreeSet<_> = shared.map(|fence| fence.part).collect();
    let mut current = BTreeMap::new();
    if !parts.is_empty() {
        let parts: Vec<_> = parts.into_iter().map(str::to_owned).collect();
        let sql = "SELECT part, holder, epoch FROM roles WHERE part = ANY($1) ORDER BY part FOR KEY SHARE";
        let roles = Statement::from_sql_and_values(DbBackend::Postgres, sql, [parts.into()]);
        for row in on.query_all_raw(roles).await? {
            let part: String = row.try_get("", "part")?;
            let holder: String = row.try_get("", "holder")?;
            let epoch: i64 = row.try_get("", "epoch")?;
            current.insert(part, (holder, epoch.cast_unsigned()));
        }
    }
    let holds = |fence: &&Fence| {
        fence.holder.is_empty()
            || current
                .get(fence.part)
                .is_some_and(|(holder, epoch)| **holder == *fence.holder && *epoch == fence.epoch)
    };
    Ok(fences.iter().map(holds).collect())
}
