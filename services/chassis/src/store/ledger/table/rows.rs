//! The rows of a kind's table, read and written many at a time.

use std::sync::Arc;

use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbErr, ExprTrait, QueryResult,
    sea_query::{Expr, Order, Query, SelectStatement},
};

use super::{REVISION, StoredRow, Table};
use crate::store::{
    database::{self, ROWS_READ, RowHeader, UnreadableRow, UpsertRows},
    resource::Resource,
};

/// Reads the resources changed after revision `after`, or every one for `None`. Of a large table, at most some thousand
/// rows are in memory at a time beside the resources.
///
/// # Errors
/// Errors of the database.
pub async fn load<T: Table>(
    on: &impl ConnectionTrait,
    after: Option<u64>,
    mut pool: T::Pool,
) -> Result<Vec<Result<T::Kind, UnreadableRow>>, DbErr> {
    let mut resources = Vec::new();
    let mut last: Option<String> = None;
    loop {
        let page = on.query_all(&select::<T>(after, last.as_deref())).await?;
        let is_last = (page.len() as u64) < ROWS_READ;
        if let Some(row) = page.last() {
            last = Some(row.try_get("", T::KEY)?);
        }
        for row in page {
            resources.push(read::<T>(row, &mut pool)?);
        }
        if is_last {
            return Ok(resources);
        }
    }
}

fn select<T: Table>(after: Option<u64>, last: Option<&str>) -> SelectStatement {
    let mut select = Query::select();
    let declared = T::COLUMNS.iter().map(|column| column.name);
    select.columns([T::KEY, REVISION].into_iter().chain(declared)).from(T::NAME);
    if let Some(after) = after {
        select.and_where(Expr::col(REVISION).gt(after.cast_signed()));
    }
    if let Some(last) = last {
        select.and_where(Expr::col(T::KEY).gt(last));
    }
    select.order_by(T::KEY, Order::Asc).limit(ROWS_READ);
    select
}

fn read<T: Table>(row: QueryResult, pool: &mut T::Pool) -> Result<Result<T::Kind, UnreadableRow>, DbErr> {
    let row = StoredRow::of::<T>(row)?;
    Ok(match T::read(&row, pool) {
        Ok(mut resource) => {
            resource.set_revision(row.revision());
            Ok(resource)
        }
        Err(why) => Err(database::unreadable(T::Kind::KIND, row.key(), format_args!("{why:#}"))),
    })
}

/// Returns the rows of resources.
pub fn of<T: Table>(resources: &[Arc<T::Kind>], pool: &mut T::Pool) -> UpsertRows {
    let columns = T::COLUMNS.iter().map(|column| (column.name, column.is_optional()));
    let columns = [(T::KEY, false), (REVISION, false)].into_iter().chain(columns).collect();
    let rows = resources.iter().map(|resource| {
        let mut row = Vec::with_capacity(2 + T::COLUMNS.len());
        row.push(resource.key().into());
        row.push(resource.revision().cast_signed().into());
        row.extend(T::COLUMNS.iter().map(|column| column.value(resource, pool)));
        row
    });
    UpsertRows { header: RowHeader { table: T::NAME, key: T::KEY, columns }, rows: rows.collect() }
}

/// Inserts rows, or overwrites those whose key exists.
///
/// # Errors
/// Errors of the database; the transaction is then unusable.
pub async fn save(transaction: &DatabaseTransaction, rows: UpsertRows) -> Result<(), DbErr> {
    database::upsert_rows(transaction, rows).await
}

/// Deletes the rows with these keys.
///
/// # Errors
/// Errors of the database; the transaction is then unusable.
pub async fn delete<T: Table>(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
    database::delete_rows(transaction, T::NAME, T::KEY, keys).await
}
