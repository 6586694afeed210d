//! The schema, forward only. A migration is named after its file.

mod left_out;
mod session_intent;

use sea_orm_migration::{
    prelude::{DbErr, DeriveMigrationName, MigrationTrait, MigratorTrait, SchemaManager, async_trait},
    schema::{big_integer, binary, binary_null, text},
    sea_query::Table,
};

/// Migrates the database of this service.
pub(crate) struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(chassis::store::database::LedgerTables),
            Box::new(FirstTables),
            Box::new(session_intent::Migration),
            Box::new(left_out::Migration),
            Box::new(chassis::lease::Migration),
            Box::new(chassis::store::ledger::RevisionIndexes(&["sessions", "session_templates"])),
            Box::new(chassis::lease::RoleMigration),
        ]
    }
}

#[derive(DeriveMigrationName)]
struct FirstTables;

#[async_trait::async_trait]
impl MigrationTrait for FirstTables {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sessions = Table::create()
            .table("sessions")
            .col(text("key").primary_key())
            .col(big_integer("revision"))
            .col(text("tenant"))
            .col(text("name"))
            .col(text("progress"))
            .col(binary("record"))
            .col(binary_null("saved_status"))
            .to_owned();
        let templates = Table::create()
            .table("session_templates")
            .col(text("key").primary_key())
            .col(big_integer("revision"))
            .col(text("tenant"))
            .col(text("name"))
            .col(binary("record"))
            .to_owned();
        for table in [sessions, templates] {
            manager.create_table(table).await?;
        }
        Ok(())
    }
}
