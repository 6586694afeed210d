//! Connections to a part's own database.

use std::{fmt::Display, sync::Arc, time::Duration};

use anyhow::Context;
use sea_orm::{
    ColumnTrait, ConnectOptions, Database, DatabaseConnection, DbErr, EntityTrait, IdenStatic, Iterable,
    QueryFilter,
    sea_query::OnConflict,
    sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous},
};
use sea_orm_migration::MigratorTrait;

/// Rows in one statement. Both databases take thousands of parameters, and longer statements are no faster.
const ROWS: usize = 500;

/// How long to wait for a connection before a write counts as failed.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to `url` and brings its tables up to date.
///
/// # Errors
/// When the database cannot be reached or migrated.
pub async fn connect<M: MigratorTrait>(url: &str) -> anyhow::Result<DatabaseConnection> {
    let mut options = ConnectOptions::new(url);
    options.sqlx_logging(false).acquire_timeout(ACQUIRE_TIMEOUT).max_connections(4).map_sqlx_sqlite_opts(
        |sqlite| {
            // A committed write must survive a power cut, so every commit is synced. WAL makes that one sync.
            sqlite.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full)
        },
    );
    if url.starts_with("sqlite:") {
        // SQLite has one writer. Queueing for the one connection is fair, waiting on its lock is not.
        options.max_connections(1);
    }
    let database =
        Database::connect(options).await.with_context(|| format!("database {}", without_password(url)))?;
    M::up(&database, None).await.context("database migration")?;
    Ok(database)
}

/// Inserts rows, or overwrites those whose `key` exists.
///
/// # Errors
/// As the database says; the caller's transaction is then of no more use.
pub async fn upsert<E, A>(
    on: &impl sea_orm::ConnectionTrait,
    key: E::Column,
    rows: Vec<A>,
) -> Result<(), DbErr>
where
    E: EntityTrait,
    A: sea_orm::ActiveModelTrait<Entity = E>,
    E::Column: Copy,
{
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let chunk: Vec<A> = rows.by_ref().take(ROWS).collect();
        let others = E::Column::iter().filter(|column| column.as_str() != key.as_str());
        let overwrite = OnConflict::column(key).update_columns(others).to_owned();
        E::insert_many(chunk).on_conflict(overwrite).exec_without_returning(on).await?;
    }
    Ok(())
}

/// Deletes the rows whose `key` is one of `keys`.
///
/// # Errors
/// As the database says; the caller's transaction is then of no more use.
pub async fn delete<E: EntityTrait>(
    on: &impl sea_orm::ConnectionTrait,
    key: E::Column,
    keys: &[Arc<str>],
) -> Result<(), DbErr> {
    for chunk in keys.chunks(ROWS) {
        let chunk = chunk.iter().map(|key| &**key);
        E::delete_many().filter(key.is_in(chunk)).exec(on).await?;
    }
    Ok(())
}

/// The error for a row of `kind` that does not hold what it should.
pub fn unreadable(kind: &str, key: &str, why: impl Display) -> DbErr {
    DbErr::Custom(format!("{kind} '{key}' is unreadable: {why}"))
}

/// `url` without what opens the database: its user, and its parameters, of which one may be the password. The path of
/// an SQLite file is no secret.
pub(crate) fn without_password(url: &str) -> String {
    if url.is_empty() || url.starts_with("sqlite:") {
        return url.to_owned();
    }
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let (place, parameters) = rest.split_once('?').map_or((rest, ""), |(place, _)| (place, "?…"));
    match (place.rsplit_once('@'), rest.contains('@')) {
        (Some((_, host)), _) => format!("{scheme}://…@{host}{parameters}"),
        // Either of the two may have stood in a password.
        (None, true) => format!("{scheme}://…"),
        (None, false) => format!("{scheme}://{place}{parameters}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn an_address_shows_without_what_opens_the_database() {
        let mut table = String::new();
        for url in [
            "",
            "sqlite:///data/registry.sqlite?mode=rwc",
            "postgres://db.example:5432/bos",
            "postgres://bos:s3cret@db.example/bos",
            "postgres://bos:s3cret@more@db.example/bos?sslmode=require&password=s3cret",
            "postgresql://db.example/bos?password=s3cret",
            "postgresql://db.example/bos?password=s3cret@",
            "postgres://bos:s3cret?@db.example/bos",
            "sqlite::memory:",
            "mysql://bos:s3cret@db.example",
            "bos:s3cret@db.example",
        ] {
            let shown = without_password(url);
            assert!(!shown.contains("s3cret"), "{shown}");
            writeln!(table, "{shown}").unwrap();
        }
        expect![[r#"

            sqlite:///data/registry.sqlite?mode=rwc
            postgres://db.example:5432/bos
            postgres://…@db.example/bos
            postgres://…@db.example/bos?…
            postgresql://db.example/bos?…
            postgresql://…
            postgres://…
            sqlite::memory:
            mysql://…@db.example
            …
        "#]]
        .assert_eq(&table);
    }
}
