//! The database of a part in a simulation, which keeps everything on a disk in memory.

use sea_orm::{
    DatabaseConnection, SqlxSqliteConnector,
    sqlx::{self, sqlite::SqlitePoolOptions},
};

/// The address that stands for no database: everything is kept on the disk of the context.
pub const NO_DATABASE: &str = "sqlite:none";

/// A connection to [`NO_DATABASE`], which is never used.
pub(super) fn connection() -> DatabaseConnection {
    let pool = SqlitePoolOptions::new().idle_timeout(None).max_lifetime(None);
    let options = sqlx::sqlite::SqliteConnectOptions::new().in_memory(true);
    SqlxSqliteConnector::from_sqlx_sqlite_pool(pool.connect_lazy_with(options))
}
