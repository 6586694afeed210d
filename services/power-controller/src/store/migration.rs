//! The power controller's schema, forward only.

use sea_orm_migration::{
    prelude::{DbErr, DeriveMigrationName, MigrationTrait, MigratorTrait, SchemaManager, async_trait},
    schema::{big_integer, binary, string},
    sea_query::Table,
};

/// Brings the power controller's database up to date.
pub struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(chassis::store::database::LedgerTables),
            Box::new(FirstTables),
            Box::new(chassis::lease::Migration),
            Box::new(chassis::store::ledger::RevisionIndexes(&["power_states", "transitions"])),
            Box::new(chassis::lease::RoleMigration),
        ]
    }
}

#[derive(DeriveMigrationName)]
struct FirstTables;

#[async_trait::async_trait]
impl MigrationTrait for FirstTables {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let power_states = Table::create()
            .table("power_states")
            .col(string("id").primary_key())
            .col(big_integer("revision"))
            .col(big_integer("generation"))
            .col(string("reading"))
            .col(binary("record"))
            .to_owned();
        let transitions = Table::create()
            .table("transitions")
            .col(string("id").primary_key())
            .col(big_integer("revision"))
            .col(string("action"))
            .col(string("delivery"))
            .col(binary("record"))
            .to_owned();
        manager.create_table(power_states).await?;
        manager.create_table(transitions).await
    }
}
