//! Operations on databases for backups: copies of files of SQLite, clients of a database, and its tables.

use std::{
    fs,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use sea_orm::sqlx::{
    self, AssertSqlSafe, Connection as _, PgConnection, SqliteConnection, query, query_scalar,
    sqlite::SqliteConnectOptions,
};

use crate::store::ledger::COPY;

/// Wait for a lock of SQLite: commits take milliseconds.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// Codes of SQLite for a database that somebody else uses.
const BUSY_CODES: [i32; 2] = [5, 6];

/// Returns the file of a database with an address that begins with `sqlite:`.
///
/// # Errors
/// The address cannot be read.
pub fn file_of(url: &str) -> anyhow::Result<PathBuf> {
    let options: SqliteConnectOptions = url.parse().context("no address of a SQLite database")?;
    Ok(options.get_filename().to_owned())
}

/// Copies the database `file` to `copy`, which is created. The part that has it open may write meanwhile: the copy has
/// every commit before its begin, and none after it. A part that opens the copy knows that later commits are missing.
///
/// # Errors
/// There is no database, `copy` exists, or the disk is full.
pub async fn copy_database(file: &Path, copy: &Path) -> anyhow::Result<()> {
    // SQLite copies into an empty file, and would create one that everybody may read.
    let created = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(copy);
    let created = created.with_context(|| format!("cannot create {}", copy.display()))?;
    let unreadable = || format!("cannot copy {}", file.display());
    let mut database = open(file).await.with_context(unreadable)?;
    let target = copy.to_str().context("the path is no text")?;
    query("VACUUM INTO ?").bind(target).execute(&mut database).await.with_context(unreadable)?;
    database.close().await?;
    mark(copy).await.with_context(|| format!("cannot mark {} as a copy", copy.display()))?;
    created.sync_all().with_context(|| format!("cannot sync {}", copy.display()))
}

/// Marks the database `copy` as one from which later commits are missing. One without a ledger, or of a version that knew no
/// mark, gets none.
async fn mark(copy: &Path) -> Result<(), sqlx::Error> {
    let mut database = open(copy).await?;
    let marks = "SELECT count(*) FROM pragma_table_info('revisions') WHERE name = 'lineage'";
    if query_scalar::<_, i64>(marks).fetch_one(&mut database).await? > 0 {
        query("UPDATE revisions SET lineage = ?").bind(COPY).execute(&mut database).await?;
    }
    database.close().await
}

/// Returns whether a process has the database `file` open. If none has, its log is written into it.
///
/// # Errors
/// The file is no database, or cannot be read.
pub async fn is_in_use(file: &Path) -> Result<bool, sqlx::Error> {
    let mut database = open(file).await?;
    // Only the last connection may leave the mode in which parts use their databases.
    let left = query_scalar::<_, String>("PRAGMA journal_mode = DELETE").fetch_one(&mut database).await;
    // A connection that is dropped would stay open for a moment.
    let closed = database.close().await;
    match left {
        Ok(_) => closed.map(|()| false),
        Err(error) if is_busy(&error) => Ok(true),
        Err(error) => Err(error),
    }
}

fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<i32>().ok());
    // The other bits tell which lock it was.
    code.is_some_and(|code| BUSY_CODES.contains(&(code & 0xff)))
}

async fn open(file: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(file).busy_timeout(LOCK_PATIENCE);
    SqliteConnection::connect_with(&options).await
}

/// Returns how many other clients use the database at `url`, an address of PostgreSQL.
///
/// # Errors
/// The server does not answer.
pub async fn other_clients(url: &str) -> Result<i64, sqlx::Error> {
    let mut database = PgConnection::connect(url).await?;
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                  AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    let count = query_scalar(others).fetch_one(&mut database).await?;
    database.close().await?;
    Ok(count)
}

/// Drops the tables of the database at `url` in its own schema that are not among `kept`.
///
/// # Errors
/// The server does not answer, or does not let this user do so.
pub async fn drop_other_tables(url: &str, kept: &[String]) -> Result<(), sqlx::Error> {
    let mut database = PgConnection::connect(url).await?;
    let others = "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema() \
                  AND NOT tablename = ANY($1)";
    let names: Vec<String> = query_scalar(others).bind(kept).fetch_all(&mut database).await?;
    for name in names {
        query(AssertSqlSafe(format!("DROP TABLE {name} CASCADE"))).execute(&mut database).await?;
    }
    database.close().await
}

#[cfg(test)]
mod tests {
    use sea_orm::{ConnectionTrait as _, Database};

    use super::*;

    #[tokio::test]
    async fn copy_has_the_commits_of_a_database_in_use() {
        let directory = tempfile::tempdir().unwrap();
        let [file, copy] = ["part.sqlite", "copy.sqlite"].map(|name| directory.path().join(name));
        let url = format!("sqlite://{}?mode=rwc", file.display());
        assert_eq!(file_of(&url).unwrap(), file);
        let part = Database::connect(&url).await.unwrap();
        for statement in
            ["PRAGMA journal_mode = WAL", "CREATE TABLE t (n INTEGER)", "INSERT INTO t VALUES (7), (8)"]
        {
            part.execute_unprepared(statement).await.unwrap();
        }
        copy_database(&file, &copy).await.unwrap();
        part.execute_unprepared("INSERT INTO t VALUES (9)").await.unwrap();
        let mut copied = open(&copy).await.unwrap();
        let sum = query_scalar::<_, i64>("SELECT sum(n) FROM t").fetch_one(&mut copied).await.unwrap();
        assert_eq!(sum, 15);
        assert!(copy_database(&file, &copy).await.is_err(), "a copy is not overwritten");

        assert!(is_in_use(&file).await.unwrap());
        part.close().await.unwrap();
        assert!(!is_in_use(&file).await.unwrap());
        let damaged = directory.path().join("damaged");
        fs::write(&damaged, "no database, and long enough to have a header of one".repeat(20)).unwrap();
        assert!(is_in_use(&damaged).await.is_err(), "nobody can tell");
    }
}
