//! A trial write that shows whether a database accepts others.

use std::time::Duration;

use rand::{Rng, distr::Alphanumeric};
use sea_orm::{ActiveValue::Set, ColumnTrait, DatabaseConnection, DbErr, EntityTrait, QueryFilter};
use sea_orm::{prelude::Expr, sea_query::OnConflict};
use tokio::time::timeout;

use super::bookkeeping::{self, revision};
use crate::{Context, mesh::health::DatabaseRefusal, store::database};

/// Deadline of a trial: longer than the database waits for a lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// The row that is written, beside those of the kinds.
const ROW: &str = "room";

/// Bytes of a trial: about as much as a busy writer commits at once.
const BYTES: usize = 256 << 10;

/// Makes trial writes to the `database` of the part for as long as those of its ledgers, one of which is of `kind`, are
/// refused. A disk in memory, which replaces the database in a simulation, has no rows to try.
pub(super) fn keep_trying(context: &Context, database: &DatabaseConnection, kind: &'static str) {
    #[cfg(feature = "simulation")]
    if crate::store::disk::SimulatedDisk::attached_to(context).is_some() {
        return;
    }
    let database = database.clone();
    context.health.watch_over(&context.tasks, kind, move |kinds| {
        let database = database.clone();
        async move {
            let tried = timeout(PATIENCE, room(&database, &kinds)).await;
            tried.unwrap_or_else(|_| Err(database::silent())).map_err(|error| DatabaseRefusal::from(&error))
        }
    });
}

/// Reads the rows with which writes of `kinds` begin, which a restored backup may lack. Then writes as much as a busy
/// writer does to the bookkeeping of `database`, and deletes it again.
///
/// A single byte would prove nothing. On a full disk it fits into an existing page, or into the written part of
/// SQLite's log, and the next real change is refused all the same. The trial needs new pages in either database, it
/// cannot be compressed, and it is committed: a rolled back write never reaches the disk of SQLite. The reverse holds
/// as well: a database with room for the trial has room for any usual change of people and nodes, and only a change of
/// thousands of records may still be refused.
///
/// # Errors
/// Errors of the database; [`DbErr::RecordNotFound`] when one of the rows is missing.
async fn room(database: &DatabaseConnection, kinds: &[&str]) -> Result<(), DbErr> {
    for kind in kinds {
        bookkeeping::position(database, kind).await?;
    }
    let text = rand::rng().sample_iter(Alphanumeric).take(BYTES).map(char::from).collect();
    let row = revision::ActiveModel {
        kind: Set(ROW.to_owned()),
        revision: Set(0),
        compacted: Set(0),
        last_commit: Set(text),
        lineage: Set(String::new()),
        incarnation: Set(String::new()),
    };
    let overwrite =
        OnConflict::column(revision::Column::Kind).update_column(revision::Column::LastCommit).to_owned();
    revision::Entity::insert(row).on_conflict(overwrite).exec_without_returning(database).await?;
    revision::Entity::update_many()
        .col_expr(revision::Column::LastCommit, Expr::value(""))
        .filter(revision::Column::Kind.eq(ROW))
        .exec(database)
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use sea_orm::ConnectionTrait;

    use super::*;
    use crate::lease::RoleMigrator;

    #[tokio::test]
    async fn nothing_of_it_stays() {
        for kind in test_databases::every_kind().await {
            let database = database::connect::<RoleMigrator>(&kind.url).await.unwrap();
            for _ in 0..2 {
                room(&database, &[]).await.unwrap();
                let row = revision::Entity::find_by_id(ROW).one(&database).await.unwrap().unwrap();
                assert_eq!((row.revision, &*row.last_commit), (0, ""), "{}", kind.kind);
            }
        }
    }

    #[tokio::test]
    async fn where_a_byte_has_room_it_may_have_none() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", directory.path().join("test.sqlite").display());
        let database = database::connect::<RoleMigrator>(&url).await.unwrap();
        database.execute_unprepared("PRAGMA max_page_count = 20").await.unwrap();
        database.execute_unprepared("INSERT INTO revisions VALUES ('a', 0, 0, '', '', '')").await.unwrap();
        let error = room(&database, &[]).await.unwrap_err();
        assert!(database::is_in_trouble(&error) && !database::is_away(&error), "{error}");
        database.execute_unprepared("PRAGMA max_page_count = 1000").await.unwrap();
        room(&database, &[]).await.unwrap();
    }

    #[tokio::test]
    async fn there_is_none_for_a_kind_without_its_row() {
        for kind in test_databases::every_kind().await {
            let database = database::connect::<RoleMigrator>(&kind.url).await.unwrap();
            bookkeeping::make(&database, "a").await.unwrap();
            room(&database, &["a"]).await.unwrap();
            let missing = room(&database, &["a", "b"]).await;
            assert!(matches!(missing, Err(DbErr::RecordNotFound(_))), "{}: {missing:?}", kind.kind);
        }
    }
}
