//! The schema of a database that holds a role and nothing else.

use sea_orm_migration::{MigrationTrait, MigratorTrait, prelude::async_trait};

use super::{Migration, RoleMigration};
use crate::store::database::LedgerTables;

/// Migrator of a part that owns no data and shares its role through a database all the same.
pub struct RoleMigrator;

#[async_trait::async_trait]
impl MigratorTrait for RoleMigrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        // Hints of other replicas are compared with revisions; this database has none.
        vec![Box::new(LedgerTables), Box::new(Migration), Box::new(RoleMigration)]
    }
}
