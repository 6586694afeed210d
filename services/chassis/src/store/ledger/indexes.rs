//! Indexes by which a replica finds others' changes without reading everything.

use sea_orm::{ConnectionTrait, DbBackend, DbErr};
use sea_orm_migration::{
    MigrationName,
    prelude::{MigrationTrait, SchemaManager, async_trait},
};

/// Indexes these tables by `revision`, where the database is shared. An unshared one has no query by revision, and an
/// index would only cost.
pub struct RevisionIndexes(pub &'static [&'static str]);

impl MigrationName for RevisionIndexes {
    fn name(&self) -> &str {
        "revision_indexes"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for RevisionIndexes {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() != DbBackend::Postgres {
            return Ok(());
        }
        for table in self.0 {
            let sql = format!("CREATE INDEX {table}_revision ON {table} (revision)");
            manager.get_connection().execute_unprepared(&sql).await?;
        }
        Ok(())
    }
}
