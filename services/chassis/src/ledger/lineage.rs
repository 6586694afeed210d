//! Which of the copies of a database this is.
//!
//! A database that was restored, or a stand-in that took over, may lack the last commits, and gives their revisions
//! again. Who has seen those commits notices by their ids. But a replica may be started only after that, or may have
//! seen none of what was lost. So it is written down with every commit where it was made: the identity of the server, its
//! timeline, which PostgreSQL changes with every promotion and every recovery to a point in time, and the number of the
//! table, which is another one where a dump was loaded.
//!
//! It cannot be told that files were put back as they were while the server was stopped.

use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, Statement};

use crate::database;

/// What never changes while a server runs. It comes from a file, so it is asked for once.
const IDENTITY: &str = "SELECT system_identifier AS identity FROM pg_control_system()";

/// What may. The timeline is the first eight digits of where the server writes; its control file has one too, but that of
/// the last checkpoint.
const PLACE: &str = "substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) || '/' || \
                     CAST(CAST(CAST('revisions' AS regclass) AS oid) AS text)";

/// Who says what the lineage of a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Teller {
    /// The server of that identity.
    Server(i64),
    /// Nobody: not every service that speaks the protocol of PostgreSQL has what it takes.
    Nobody,
}

impl Teller {
    /// Finds out who does.
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

    /// What gives the lineage in a query; empty where nobody says it.
    pub(super) fn expression(&self) -> String {
        match self {
            Self::Server(identity) => format!("'{identity}/' || {PLACE}"),
            Self::Nobody => "''".to_owned(),
        }
    }
}

/// Asks for all of it once, and gives the identity.
async fn ask(database: &DatabaseConnection) -> Result<i64, DbErr> {
    let none = || DbErr::RecordNotFound("identity of the server".to_owned());
    let place = Statement::from_string(DbBackend::Postgres, format!("SELECT {PLACE} AS place"));
    database.query_one_raw(place).await?;
    let identity = Statement::from_string(DbBackend::Postgres, IDENTITY);
    database.query_one_raw(identity).await?.ok_or_else(none)?.try_get("", "identity")
}

/// Whether the server only follows another one, and will say more when it has taken over.
async fn is_in_recovery(database: &DatabaseConnection) -> Result<bool, DbErr> {
    let sql = "SELECT pg_is_in_recovery() AS follows";
    let row = database.query_one_raw(Statement::from_string(DbBackend::Postgres, sql)).await?;
    row.map_or(Ok(false), |row| row.try_get("", "follows"))
}

/// The lineage that was written down for a kind, and that of now; empty where it is not known.
#[derive(Debug, Clone)]
pub(super) struct Lineage {
    pub(super) written: String,
    pub(super) now: String,
}

impl Lineage {
    /// Whether this is another copy than the one that had the last commit that is known here. It may lack later ones.
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
            let lineage = Lineage { written: written.to_owned(), now: now.to_owned() };
            assert_eq!(lineage.is_another(), is_another, "{lineage:?}");
        }
    }
}
