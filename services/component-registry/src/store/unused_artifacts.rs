//! Boot artifact sets to which no row of any table refers any more.

use sea_orm::{
    Condition, DatabaseConnection, DbErr, ExprTrait, QuerySelect, TransactionTrait,
    entity::prelude::*,
    sea_query::{LockBehavior, LockType, Query},
};

use chassis::store::ledger::Table;

use super::{BootTokens, ComponentTable, artifacts, components, tokens};

/// Most sets that are deleted at once.
const BATCH: u64 = 1_000;

/// Deletes unreferenced sets and returns their number. Sets that another transaction is about to refer to are
/// skipped.
pub(crate) async fn delete_unused_artifacts(database: &DatabaseConnection) -> Result<u64, DbErr> {
    let transaction = database.begin().await?;
    let unused = artifacts::Entity::find().filter(is_unused()).limit(BATCH);
    // A transaction that is about to refer to a set has locked it. A set that is locked here is deleted before
    // another transaction can refer to it, and is then stored again.
    let unused = unused.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
    let digests: Vec<_> = unused.all(&transaction).await?.into_iter().map(|set| set.digest).collect();
    if digests.is_empty() {
        return Ok(0);
    }
    // The condition is checked again, because a set may have been referred to between the query and the lock.
    let delete =
        artifacts::Entity::delete_many().filter(artifacts::Column::Digest.is_in(digests)).filter(is_unused());
    let deleted = delete.exec(&transaction).await?.rows_affected;
    transaction.commit().await?;
    Ok(deleted)
}

fn is_unused() -> Condition {
    let of_components = components::ARTIFACTS.map(|column| (ComponentTable::NAME, column));
    let of_tokens = (BootTokens::NAME, tokens::ARTIFACTS);
    let mut unused = Condition::all();
    for (table, column) in of_components.into_iter().chain([of_tokens]) {
        let mut used = Query::select();
        used.column(column).from(table).and_where(Expr::col(column).is_not_null());
        unused = unused.add(artifacts::Column::Digest.not_in_subquery(used));
    }
    unused
}
