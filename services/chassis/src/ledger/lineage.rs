//! Which of the copies of a database this is.
//!
//! A database that was restored, or a stand-in that took over, may lack the last commits, and gives their revisions
//! again. Who has seen those commits notices by their ids. But a replica may be started only after that, or may have
//! seen none of what was lost. So the lineage of the server is written down with every commit: its identity and its
//! timeline, which PostgreSQL changes with every promotion and every recovery to a point in time.

use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, Statement};
use sea_orm_migration::{
    prelude::{MigrationName, MigrationTrait, SchemaManager, async_trait},
    schema::string,
    sea_query::Table,
};

use crate::database;

/// What a server says of itself: its identity, and its timeline as the first eight digits of where it writes. The
/// control file has a timeline too, but that of the last checkpoint.
const TOLD: &str = "(SELECT CAST(system_identifier AS text) FROM pg_control_system()) || '/' || \
                    substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)";

/// Whether the server says what its lineage is. Not every service that speaks its protocol does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Teller {
    Tells,
    Silent,
}

impl Teller {
    /// Finds out which of them a server is.
    pub(super) async fn of(database: &DatabaseConnection) -> Result<Self, DbErr> {
        let asked = Statement::from_string(DbBackend::Postgres, format!("SELECT {TOLD} AS lineage"));
        match database.query_one_raw(asked).await {
            Ok(_) => Ok(Self::Tells),
            Err(error) if database::is_unsupported(&error) => {
                tracing::warn!(%error, "the database does not say when it is another copy of itself");
                Ok(Self::Silent)
            }
            Err(error) => Err(error),
        }
    }

    /// What gives the lineage in a query; empty where the server does not say it.
    pub(super) fn expression(self) -> &'static str {
        match self {
            Self::Tells => TOLD,
            Self::Silent => "''",
        }
    }
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

/// Gives the rows of revisions a place for the lineage. Every database that has such rows gets it.
pub(crate) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "additive_lineages"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let place = string("lineage").default("").to_owned();
        manager.alter_table(Table::alter().table("revisions").add_column(place).to_owned()).await
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
