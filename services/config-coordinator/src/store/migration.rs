//! The config coordinator's schema, forward only.

use sea_orm_migration::{
    prelude::{DbErr, DeriveMigrationName, MigrationTrait, MigratorTrait, SchemaManager, async_trait},
    schema::{big_integer, binary, string, text},
    sea_query::Table,
};

use super::{boot_scripts_migration::BootScriptTables, trouble_columns::TroubleColumns};

/// Brings the config coordinator's database up to date.
pub(crate) struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(chassis::store::database::LedgerTables),
            Box::new(FirstTables),
            Box::new(BootScriptTables),
            Box::new(chassis::lease::Migration),
            Box::new(chassis::store::ledger::RevisionIndexes(&[
                "configuration_states",
                "boot_preparations",
                "boot_scripts",
            ])),
            Box::new(TroubleColumns),
            Box::new(chassis::lease::RoleMigration),
        ]
    }
}

#[derive(DeriveMigrationName)]
struct FirstTables;

#[async_trait::async_trait]
impl MigrationTrait for FirstTables {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let configuration_states = Table::create()
            .table("configuration_states")
            .col(string("id").primary_key())
            .col(big_integer("revision"))
            .col(big_integer("generation"))
            .col(string("reading"))
            .col(text("status"))
            .col(binary("record"))
            .to_owned();
        let preparations = Table::create()
            .table("boot_preparations")
            .col(string("id").primary_key())
            .col(big_integer("revision"))
            .col(big_integer("generation"))
            .col(big_integer("attempt"))
            .col(string("artifacts"))
            .col(text("configuration"))
            .col(text("session"))
            .col(string("progress"))
            .col(text("token"))
            .col(text("error"))
            .to_owned();
        manager.create_table(configuration_states).await?;
        manager.create_table(preparations).await
    }
}
