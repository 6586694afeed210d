//! The schema of a database that holds leases and nothing else.

use sea_orm_migration::{MigrationTrait, MigratorTrait, prelude::async_trait};

use super::Migration;
use crate::database::LedgerTables;

/// For a part that owns no data and shares its work through a database all the same.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        // What tells of other replicas looks at the revisions, of which there are none.
        vec![Box::new(LedgerTables), Box::new(Migration)]
    }
}
