//! Connections to a part's own database.

#[cfg(feature = "simulation")]
mod absent;
mod arrays;
mod schema;

use std::{fmt::Display, net::IpAddr, os::unix::fs::MetadataExt, path::Path, sync::Arc, time::Duration};

use anyhow::Context;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend,
    DbErr, EntityTrait, ExprTrait as _, IdenStatic, Iterable, RuntimeErr, SqlxPostgresConnector, Value,
    sea_query::{Expr, OnConflict, Query},
    sqlx::{
        self, Connection, Sqlite,
        error::DatabaseError,
        pool::PoolOptions,
        postgres::{PgConnectOptions, PgDatabaseError, PgPoolOptions, PgSslMode},
        sqlite::{SqliteJournalMode, SqliteSynchronous},
    },
};
use sea_orm_migration::MigratorTrait;

use crate::{
    mesh::health::DatabaseRefusal,
    process::failpoint,
    settings::{DatabaseSettings, without_password},
};

#[cfg(feature = "simulation")]
pub use absent::NO_DATABASE;
pub use schema::{ADDITIVE, LedgerTables};

/// Rows in one statement of SQLite. It takes thousands of parameters, but longer statements are no faster, and each
/// prepared statement keeps its last parameters in memory.
const ROWS: usize = 100;

/// Statements that a connection to SQLite keeps prepared: the few that every commit needs, for some sizes. Commits of a
/// boot have hundreds of sizes, few of which recur soon.
const PREPARED: usize = 16;

/// SQLite's page cache for a connection, in its own notation: KiB, with a minus. Hot data is in memory anyway, and a
/// commit that needs more writes pages a little earlier.
const CACHE: &str = "-512";

/// Rows that are read at a time. The driver of SQLite splits a row into many small allocations of the system's
/// allocator, which returns little of the memory of a whole table.
pub(crate) const ROWS_READ: u64 = 2_000;

/// Longest wait for a connection before a write counts as failed.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Attempts to open a file, each as long as the wait for a connection: a minute.
const OPEN_ATTEMPTS: u32 = 12;

/// After how long without use a connection is tried before it is used.
const TEST_AFTER: Duration = Duration::from_secs(1);

/// Limit of a statement's wait for a lock. Any transaction that holds one for longer hangs.
const LOCK_TIMEOUT: &str = "5s";

/// After how long the server ends a transaction in which nothing is asked: a replica that was stopped within one
/// must not keep the others from writing.
const IDLE_TIMEOUT: &str = "5s";

/// Limit of a statement on the server.
const STATEMENT_TIMEOUT: &str = "30s";

/// Time that a connection that is given back may take to answer before it is closed.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Bytes of a page of memory, as SQLite counts them.
const PAGE: u64 = 4096;

/// Connects to `url` and brings its tables up to date.
///
/// # Errors
/// When the database cannot be reached or migrated.
pub async fn connect<M: MigratorTrait>(url: &str) -> anyhow::Result<DatabaseConnection> {
    connect_as::<M>(url, &DatabaseSettings::default()).await
}

/// Connects to `url` with `settings` and migrates the tables.
///
/// # Errors
/// When the database cannot be reached or migrated.
pub async fn connect_as<M: MigratorTrait>(
    url: &str,
    settings: &DatabaseSettings,
) -> anyhow::Result<DatabaseConnection> {
    #[cfg(feature = "simulation")]
    if url == NO_DATABASE {
        return Ok(absent::connection());
    }
    if let Some(host) = unverified_host(url) {
        tracing::warn!(
            host,
            "nobody verifies that this is the database: its address needs sslmode=verify-full and sslrootcert"
        );
    }
    let mut options = ConnectOptions::new(url);
    options
        .sqlx_logging(false)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .max_connections(Ord::max(settings.connections, 1))
        // A connection that was in use a moment ago is taken to be good; a transaction that finds it broken is begun
        // again.
        .test_before_acquire_if_idle_for(TEST_AFTER)
        .map_sqlx_sqlite_opts(|sqlite| {
            // A committed write must survive a power cut, so every commit is synced. WAL makes that one sync.
            sqlite
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full)
                .statement_cache_capacity(PREPARED)
                .pragma("cache_size", CACHE)
        })
        .map_sqlx_postgres_opts(|postgres| {
            postgres.options([
                ("lock_timeout", LOCK_TIMEOUT),
                ("idle_in_transaction_session_timeout", IDLE_TIMEOUT),
                ("statement_timeout", STATEMENT_TIMEOUT),
            ])
        })
        .map_sqlx_postgres_pool_opts(durable)
        .map_sqlx_sqlite_pool_opts(whole);
    if url.starts_with("sqlite:") {
        // SQLite has one writer. Queueing for the one connection is fair, waiting on its lock is not.
        options.max_connections(1);
    }
    let mut database = match open(url, options).await {
        Ok(database) => database,
        Err(error) => return Err(connection_error(url, error).await),
    };
    // The callback runs after every statement. Release builds have no failpoints to pass.
    if cfg!(debug_assertions) {
        database.set_metric_callback(|_| failpoint::pass(format_args!("database.statement")));
    }
    schema::migrate::<M>(&database).await.context("database migration")?;
    if !is_shared(&database) {
        look_at_blocks(database.get_sqlite_connection_pool().connect_options().get_filename());
    }
    Ok(database)
}

/// Connects to `url` and asks nothing, to see whether that is possible. A file has to exist.
///
/// # Errors
/// When the database cannot be reached.
pub async fn reach(url: &str) -> anyhow::Result<()> {
    let mut options = ConnectOptions::new(url);
    options.sqlx_logging(false).acquire_timeout(ACQUIRE_TIMEOUT).max_connections(1);
    match Database::connect(options).await {
        Ok(_) => Ok(()),
        Err(error) => Err(connection_error(url, error).await),
    }
}

/// Returns the host of a database on another machine whose certificate and name are not both verified; `None`: the
/// connection is safe, stays on this machine, or is no connection to a server.
pub fn unverified_host(url: &str) -> Option<String> {
    let is_server = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
    // An address that cannot be read fails when it is connected to, with the reason.
    let options: PgConnectOptions = is_server.then(|| url.parse().ok())??;
    let host = options.get_host();
    let is_here = options.get_socket().is_some()
        || host.starts_with('/')
        || host.eq_ignore_ascii_case("localhost")
        || host.trim_matches(['[', ']']).parse().is_ok_and(|address: IpAddr| address.is_loopback());
    let is_verified = matches!(options.get_ssl_mode(), PgSslMode::VerifyFull);
    (!is_here && !is_verified).then(|| host.to_owned())
}

/// Opens the database. A file on a busy disk may take longer to be created and synced than a write may wait for a
/// connection; a part that ended for that would only begin again and add to the load.
async fn open(url: &str, options: ConnectOptions) -> Result<DatabaseConnection, DbErr> {
    let is_file = url.starts_with("sqlite:");
    let mut attempt = 1;
    loop {
        match Database::connect(options.clone()).await {
            Err(error) if is_file && is_out_of_time(&error) && attempt < OPEN_ATTEMPTS => {
                tracing::warn!(attempt, "the disk is slow to open the database; it is tried again");
            }
            opened => return opened,
        }
        attempt += 1;
    }
}

/// Returns whether the pool had no connection in time.
fn is_out_of_time(error: &DbErr) -> bool {
    matches!(error, DbErr::Conn(RuntimeErr::SqlxError(cause)) if matches!(**cause, sqlx::Error::PoolTimedOut))
}

/// The reason why the database cannot be connected to. The pool retries refused connections, and in the end only
/// reports a timeout; a single connection shows the reason.
async fn connection_error(url: &str, error: DbErr) -> anyhow::Error {
    let cause: anyhow::Error = if url.starts_with("sqlite:") {
        error.into()
    } else {
        match tokio::time::timeout(RELEASE_TIMEOUT, sqlx::PgConnection::connect(url)).await {
            Ok(Err(cause)) => cause.into(),
            Ok(Ok(_)) | Err(_) => error.into(),
        }
    };
    cause.context(format!("database {}", without_password(url)))
}

/// Compares blocks with pages: SQLite maps the index of its log into memory, and reserves a block in each page of the
/// file beforehand. Where several blocks make a page the others may be missing on a full disk, and then the system ends
/// the process.
fn look_at_blocks(file: &Path) {
    let size = std::fs::metadata(file).map_or(PAGE, |file| file.blksize());
    if size < PAGE {
        let file = file.display();
        tracing::warn!(%file, size, "blocks of less than 4 KiB: where this disk is full the process may end with SIGBUS");
    }
}

/// Returns options by which a committed write survives a power cut, whatever the server's default; a stricter server is
/// left alone. A connection without an answer leaves the pool: the pool itself would wait for it until the system
/// closes it, after a quarter of an hour.
fn durable(options: PgPoolOptions) -> PgPoolOptions {
    let options = options.after_release(|connection, _| {
        Box::pin(async move {
            let answer = tokio::time::timeout(RELEASE_TIMEOUT, connection.ping()).await;
            answer.unwrap_or_else(|silent| Err(sqlx::Error::Io(silent.into())))?;
            Ok(true)
        })
    });
    options.after_connect(|connection, _| {
        Box::pin(async move {
            let raise = "SELECT set_config('synchronous_commit', 'on', false) \
                         WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')";
            sqlx::raw_sql(raise).execute(connection).await.map(drop)
        })
    })
}

/// Closes connections that are returned within a transaction. On a full disk a commit fails, SQLite rolls back by
/// itself, and the driver's own rollback then fails as well; from there on driver and database disagree, and a later
/// commit may be acknowledged without effect and be lost with the process.
fn whole(options: PoolOptions<Sqlite>) -> PoolOptions<Sqlite> {
    options.after_release(|connection, _| {
        Box::pin(async move {
            // The ping's answer follows that of any rollback in flight.
            connection.ping().await?;
            Ok(!connection.is_in_transaction())
        })
    })
}

/// Returns whether other processes may use `database` as well.
pub fn is_shared(database: &DatabaseConnection) -> bool {
    database.get_database_backend() == DbBackend::Postgres
}

/// A pool of its own for the same shared database: its users never wait for other users of `database`. The pool
/// connects at its first use.
pub(crate) fn reserved(database: &DatabaseConnection, connections: u32) -> DatabaseConnection {
    let options = PgConnectOptions::clone(&database.get_postgres_connection_pool().connect_options());
    let pool = durable(PgPoolOptions::new())
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_lazy_with(options);
    SqlxPostgresConnector::from_sqlx_postgres_pool(pool)
}

/// Inserts rows, or overwrites those whose `key` exists.
///
/// # Errors
/// Errors of the database; the caller's transaction is then unusable.
pub async fn upsert<E, A>(on: &impl ConnectionTrait, key: E::Column, rows: Vec<A>) -> Result<(), DbErr>
where
    E: EntityTrait,
    A: ActiveModelTrait<Entity = E>,
    E::Column: Copy,
{
    let columns = E::Column::iter().map(|column| (column.as_str(), column.def().is_null())).collect();
    let header = RowHeader { table: E::default().table_name(), key: key.as_str(), columns };
    let rows = rows.into_iter().map(|mut row| {
        let values = E::Column::iter().map(|column| {
            let unset = || DbErr::AttrNotSet(column.as_str().to_owned());
            row.take(column).into_value().ok_or_else(unset)
        });
        values.collect()
    });
    upsert_rows(on, UpsertRows { header, rows: rows.collect::<Result<_, _>>()? }).await
}

/// Table and columns of rows.
pub(crate) struct RowHeader {
    pub(crate) table: &'static str,
    /// Column of the key.
    pub(crate) key: &'static str,
    /// Each column, and whether it may be null.
    pub(crate) columns: Vec<(&'static str, bool)>,
}

/// Rows to insert, or to write over those with the same key.
pub struct UpsertRows {
    pub(crate) header: RowHeader,
    /// Values of each row, in the order of the columns.
    pub(crate) rows: Vec<Vec<Value>>,
}

/// Inserts rows, or overwrites those whose key exists.
pub(crate) async fn upsert_rows(on: &impl ConnectionTrait, rows: UpsertRows) -> Result<(), DbErr> {
    let UpsertRows { header, rows } = rows;
    let is_shared = on.get_database_backend() == DbBackend::Postgres;
    let most = if is_shared { arrays::ROWS } else { ROWS };
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let chunk = rows.by_ref().take(most).collect();
        match is_shared {
            true => arrays::upsert(on, &header, chunk).await?,
            false => upsert_chunk(on, &header, chunk).await?,
        }
    }
    Ok(())
}

/// Writes some rows in one statement with a parameter for each value.
async fn upsert_chunk(
    on: &impl ConnectionTrait,
    header: &RowHeader,
    rows: Vec<Vec<Value>>,
) -> Result<(), DbErr> {
    let names = || header.columns.iter().map(|(name, _)| *name);
    let others = names().filter(|name| *name != header.key);
    let overwrite = OnConflict::column(header.key).update_columns(others).to_owned();
    let mut insert = Query::insert();
    insert.into_table(header.table).columns(names()).on_conflict(overwrite);
    for row in rows {
        let added = insert.values(row.into_iter().map(Expr::val));
        added.map_err(|error| DbErr::Custom(error.to_string()))?;
    }
    on.execute(&insert).await.map(drop)
}

/// Deletes the rows whose `key` is one of `keys`.
///
/// # Errors
/// Errors of the database; the caller's transaction is then unusable.
pub async fn delete<E: EntityTrait>(
    on: &impl ConnectionTrait,
    key: E::Column,
    keys: &[Arc<str>],
) -> Result<(), DbErr> {
    delete_rows(on, E::default().table_name(), key.as_str(), keys).await
}

/// Deletes the rows of `table` whose column `key` is one of `keys`.
pub(crate) async fn delete_rows(
    on: &impl ConnectionTrait,
    table: &'static str,
    key: &'static str,
    keys: &[Arc<str>],
) -> Result<(), DbErr> {
    if on.get_database_backend() == DbBackend::Postgres {
        return arrays::delete(on, table, key, keys).await;
    }
    for chunk in keys.chunks(ROWS) {
        let chunk = chunk.iter().map(|key| &**key);
        on.execute(Query::delete().from_table(table).and_where(Expr::col(key).is_in(chunk))).await?;
    }
    Ok(())
}

/// An unreadable row. It stays in place, and all others are served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} '{key}' is unreadable: {why}")]
pub struct UnreadableRow {
    /// Kind of the resource.
    pub kind: String,
    /// Key of the row.
    pub key: String,
    /// The error of its content.
    pub why: String,
}

/// An unreadable row of `kind`.
pub fn unreadable(kind: &str, key: &str, why: impl Display) -> UnreadableRow {
    UnreadableRow { kind: kind.to_owned(), key: key.to_owned(), why: why.to_string() }
}

/// Returns whether the database may accept the refused statement at once in a new attempt: transactions collided.
pub fn is_transient(error: &DbErr) -> bool {
    const POSTGRES: [&str; 3] = ["40001", "40P01", "55P03"];
    // Busy and locked; the code of SQLite has the reason in its upper bits.
    const SQLITE: [u32; 2] = [5, 6];
    let Some(error) = refusal(error) else { return false };
    let code = error.code().unwrap_or_default();
    match error.try_downcast_ref::<PgDatabaseError>() {
        Some(_) => POSTGRES.contains(&&*code),
        None => code.parse().is_ok_and(|code: u32| SQLITE.contains(&(code & 0xff))),
    }
}

/// Returns whether the connection broke, so that another one may succeed.
pub fn is_broken(error: &DbErr) -> bool {
    let Some(error) = runtime(error) else { return false };
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| code.starts_with("57P")),
        _ => false,
    }
}

/// Returns whether the database itself reported that the transaction has no effect: any other error may hide a commit.
pub fn is_definite(error: &DbErr) -> bool {
    let Some(error) = refusal(error) else { return false };
    let postgres = error.try_downcast_ref::<PgDatabaseError>().is_some();
    // A server that ends a connection may have committed before.
    postgres && !error.code().is_some_and(|code| code.starts_with("57P") || code.starts_with("08"))
}

/// Returns whether a write was refused because of the database's state, and not because of its content: any other write
/// would be refused as well.
pub(crate) fn is_in_trouble(error: &DbErr) -> bool {
    // Classes of faulty data, faulty statements and exceeded limits, and of collided transactions.
    const POSTGRES: [&str; 6] = ["21", "22", "23", "40", "42", "54"];
    const NOT_PERMITTED: &str = "42501";
    // An invalid statement, a row that is too large, a constraint, a value of the wrong kind, misuse, an unknown
    // parameter.
    const SQLITE: [u32; 6] = [1, 18, 19, 20, 21, 25];
    let Some(refusal) = refusal(error) else { return is_cut_off(error) };
    let code = refusal.code().unwrap_or_default();
    match refusal.try_downcast_ref::<PgDatabaseError>() {
        Some(_) => code == NOT_PERMITTED || !POSTGRES.iter().any(|class| code.starts_with(class)),
        None => code.parse().is_ok_and(|code: u32| !SQLITE.contains(&(code & 0xff))),
    }
}

/// Returns whether the database cannot be reached, so that reads fail too: it is cut off, accepts no connection, or is
/// not ours.
pub(crate) fn is_away(error: &DbErr) -> bool {
    const POSTGRES: [&str; 5] = ["08", "28", "3D", "53300", "57P"];
    let Some(refusal) = refusal(error) else { return is_cut_off(error) };
    let code = refusal.code().unwrap_or_default();
    let postgres = refusal.try_downcast_ref::<PgDatabaseError>().is_some();
    postgres && POSTGRES.iter().any(|class| code.starts_with(class))
}

impl From<&DbErr> for DatabaseRefusal {
    fn from(error: &DbErr) -> Self {
        Self { is_away: is_away(error), error: error.to_string() }
    }
}

/// Returns whether the connection failed without an answer of the database.
fn is_cut_off(error: &DbErr) -> bool {
    matches!(error, DbErr::Conn(_) | DbErr::ConnectionAcquire(_))
        || is_broken(error)
        || matches!(runtime(error), Some(sqlx::Error::PoolTimedOut | sqlx::Error::Tls(_)))
}

/// The error in place of an answer from a silent database.
pub(crate) fn silent() -> DbErr {
    DbErr::Conn(RuntimeErr::Internal("the database does not answer".to_owned()))
}

/// Returns the database's own error, if the error came from it.
fn refusal(error: &DbErr) -> Option<&dyn DatabaseError> {
    runtime(error)?.as_database_error()
}

fn runtime(error: &DbErr) -> Option<&sqlx::Error> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(error))
        | DbErr::Exec(RuntimeErr::SqlxError(error))
        | DbErr::Query(RuntimeErr::SqlxError(error)) => Some(error),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use sea_orm::TransactionTrait;

    use super::*;

    struct NoTables;

    impl MigratorTrait for NoTables {
        fn migrations() -> Vec<Box<dyn sea_orm_migration::MigrationTrait>> {
            Vec::new()
        }
    }

    /// SQLite rolls back by itself when a commit does not fit on the disk, and then refuses the end of a savepoint.
    #[tokio::test]
    async fn a_transaction_that_the_database_has_ended_by_itself_takes_no_later_commit_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", directory.path().join("test.sqlite").display());
        let database = connect::<NoTables>(&url).await.unwrap();
        database.execute_unprepared("CREATE TABLE notes (text TEXT)").await.unwrap();
        for after in ["ROLLBACK", "ROLLBACK; BEGIN"] {
            let transaction = database.begin().await.unwrap();
            transaction.execute_unprepared(after).await.unwrap();
            drop(transaction);
        }
        let transaction = database.begin().await.unwrap();
        transaction.execute_unprepared("INSERT INTO notes VALUES ('kept')").await.unwrap();
        transaction.commit().await.unwrap();
        let other = Database::connect(url).await.unwrap();
        let held =
            other.query_all_raw(sea_orm::Statement::from_string(DbBackend::Sqlite, "SELECT * FROM notes"));
        assert_eq!(held.await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn file_that_takes_longer_to_open_than_a_write_may_wait_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("test.sqlite");
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file).create_if_missing(true);
        let mut other = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::raw_sql("BEGIN EXCLUSIVE").execute(&mut other).await.unwrap();
        let url = format!("sqlite://{}", file.display());
        let opened = tokio::spawn(async move { connect::<NoTables>(&url).await.map(drop) });
        tokio::time::sleep(ACQUIRE_TIMEOUT + Duration::from_secs(1)).await;
        assert!(!opened.is_finished());
        sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
        opened.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn of_later_migrations_only_those_that_add_are_taken() {
        for kind in test_databases::every_kind().await {
            let database = connect::<NoTables>(&kind.url).await.unwrap();
            for (name, is_taken) in [("additive_colours", true), ("renamed_names", false)] {
                let applied =
                    format!("INSERT INTO seaql_migrations (version, applied_at) VALUES ('{name}', 1)");
                database.execute_unprepared(&applied).await.unwrap();
                let again = connect::<NoTables>(&kind.url).await;
                assert_eq!(again.is_ok(), is_taken, "{} {name}: {again:?}", kind.kind);
            }
            let refused = format!("{:#}", connect::<NoTables>(&kind.url).await.unwrap_err());
            let told = "tables that this part does not know (migrations additive_colours, renamed_names)";
            assert!(refused.contains(told), "{refused}");
        }
    }

    #[tokio::test]
    async fn database_of_another_part_is_refused() {
        for kind in test_databases::every_kind().await {
            connect::<FirstPart>(&kind.url).await.unwrap();
            connect::<FirstPart>(&kind.url).await.unwrap();
            let refused = format!("{:#}", connect::<SecondPart>(&kind.url).await.unwrap_err());
            assert!(refused.contains("database_url of its own"), "{}: {refused}", kind.kind);
        }
    }

    struct FirstPart;

    impl MigratorTrait for FirstPart {
        fn migrations() -> Vec<Box<dyn sea_orm_migration::MigrationTrait>> {
            vec![Box::new(LedgerTables), Box::new(NamedMigration("additive_first"))]
        }
    }

    struct SecondPart;

    impl MigratorTrait for SecondPart {
        fn migrations() -> Vec<Box<dyn sea_orm_migration::MigrationTrait>> {
            vec![Box::new(LedgerTables), Box::new(NamedMigration("additive_second"))]
        }
    }

    struct NamedMigration(&'static str);

    impl sea_orm_migration::MigrationName for NamedMigration {
        fn name(&self) -> &str {
            self.0
        }
    }

    #[sea_orm_migration::async_trait::async_trait]
    impl sea_orm_migration::MigrationTrait for NamedMigration {
        async fn up(&self, _: &sea_orm_migration::SchemaManager) -> Result<(), DbErr> {
            Ok(())
        }
    }

    #[test]
    fn trouble_of_the_database_is_told_from_mistakes() {
        let with = |error| DbErr::Exec(RuntimeErr::SqlxError(Arc::new(error)));
        let silent = with(sqlx::Error::PoolTimedOut);
        let broken = with(sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into()));
        for error in [silent, broken, super::silent()] {
            assert!(is_in_trouble(&error) && is_away(&error), "{error}");
        }
        for error in [DbErr::RecordNotUpdated, with(sqlx::Error::RowNotFound)] {
            assert!(!is_in_trouble(&error) && !is_away(&error), "{error}");
        }
    }

    #[test]
    fn databases_of_other_machines_should_be_verified() {
        for (url, expected) in [
            ("sqlite://a.sqlite", None),
            ("postgres://u:p@127.0.0.1:5432/d", None),
            ("postgres://u:p@[::1]/d", None),
            ("postgres://u:p@localhost/d", None),
            ("postgres:///d?host=/run/postgresql", None),
            ("postgres://u:p@db.example/d", Some("db.example")),
            ("postgresql://u:p@10.0.0.1/d?sslmode=require", Some("10.0.0.1")),
            // Any authority of the web could sign for any name.
            ("postgres://u:p@db.example/d?sslmode=verify-ca&sslrootcert=ca.pem", Some("db.example")),
            ("postgres://u:p@db.example/d?sslmode=verify-full&sslrootcert=ca.pem", None),
        ] {
            assert_eq!(unverified_host(url).as_deref(), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_write_is_no_trouble_of_the_database() {
        for kind in test_databases::every_kind().await {
            let database = connect::<NoTables>(&kind.url).await.unwrap();
            database.execute_unprepared("CREATE TABLE notes (text TEXT PRIMARY KEY)").await.unwrap();
            database.execute_unprepared("INSERT INTO notes VALUES ('a')").await.unwrap();
            for mistake in ["INSERT INTO notes VALUES ('a')", "INSERT INTO note VALUES ('b')"] {
                let error = database.execute_unprepared(mistake).await.unwrap_err();
                assert!(!is_in_trouble(&error), "{} {mistake}: {error}", kind.kind);
            }
        }
    }
}
