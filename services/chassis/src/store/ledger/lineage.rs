//! Identity of a copy of a database.
//!
//! A database that was restored, or a standby that was promoted, may lack the last commits, and reuses their revisions.
//! A replica that has seen those commits notices by their ids. But a replica may have started later, or may have seen
//! none of the lost commits. So every commit records its origin: the identity of the server, its timeline, which
//! PostgreSQL changes with every promotion and every recovery to a point in time, and the number of the table, which
//! changes when a dump is loaded.
//!
//! Files that were put back unchanged while the server was stopped cannot be detected. A file of SQLite has no lineage; its
//! backups are marked as copies.

use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, Statement};

use crate::store::database;

/// Lineage in a backup of a SQLite file, until a ledger has begun another incarnation in it.
pub(crate) const COPY: &str = "copy";

/// Constant while a server runs. Read once, because PostgreSQL reads it from a file.
const IDENTITY: &str = "SELECT system_identifier AS identity FROM pg_control_system()";

/// Changes with promotions. The timeline is the first eight digits of the server's write position; its control file has
/// one too, but that of the last checkpoint.
const PLACE: &str = "substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) || '/' || \
                     CAST(CAST(CAST('revisions' AS regclass) AS oid) AS text)";

/// Source of a server's lineage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineageSource {
    /// The server of that identity.
    Server(i64),
    /// No source: some services that speak PostgreSQL's protocol lack these functions.
    Nobody,
}

impl LineageSource {
    /// Detects the source of a server.
    pub(super) async fn of(database: &DatabaseConnection) -> Result<Self, DbErr> {
        match ask(database).await {
            Ok(identity) => Ok(Self::Server(identity)),
            Err(error) if database::is_definite(&error) && !is_in_recovery(database).await? => {
                tracing::warn!(%error, "the database does not say when it is another copy of itself");
                Ok(Self::Nobody)
            }
            Err(error) => Err(error),
        }
    }

    /// SQL expression of the lineage; empty without a source.
    pub(super) fn expression(&self) -> String {
        match self {
            Self::Server(identity) => format!("'{identity}/' || {PLACE}"),
            Self::Nobody => "''".to_owned(),
        }
    }
}

/// Tries the whole query once, and returns the identity.
async fn ask(database: &DatabaseConnection) -> Result<i64, DbErr> {
    let none = || DbErr::RecordNotFound("identity of the server".to_owned());
    let place = Statement::from_string(DbBackend::Postgres, format!("SELECT {PLACE} AS place"));
    database.query_one_raw(place).await?;
    let identity = Statement::from_string(DbBackend::Postgres, IDENTITY);
    database.query_one_raw(identity).await?.ok_or_else(none)?.try_get("", "identity")
}

/// Returns whether the server is a standby, which can report its timeline only after its promotion.
async fn is_in_recovery(database: &DatabaseConnection) -> Result<bool, DbErr> {
    let sql = "SELECT pg_is_in_recovery() AS follows";
    let row = database.query_one_raw(Statement::from_string(DbBackend::Postgres, sql)).await?;
    row.map_or(Ok(false), |row| row.try_get("", "follows"))
}

/// The recorded lineage of a kind, and the present one; empty where unknown.
#[derive(Debug, Clone)]
pub(super) struct LineageComparison {
    pub(super) written: String,
    pub(super) now: String,
}

impl LineageComparison {
    /// Returns whether this is another copy than that of the last known commit. The copy may lack later commits.
    pub(super) fn is_another(&self) -> bool {
        !self.written.is_empty() && !self.now.is_empty() && self.written != self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_of_both_tells_copies_apart() {
        for (written, now, is_another) in [
            ("7/1", "7/1", false),
            ("7/1", "7/2", true),
            ("7/1", "8/1", true),
            ("", "7/1", false),
            ("7/1", "", false),
        ] {
            let lineage = LineageComparison { written: written.to_owned(), now: now.to_owned() };
            assert_eq!(lineage.is_another(), is_another, "{lineage:?}");
        }
    }
}
