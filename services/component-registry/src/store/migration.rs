//! Schema of the registry, forward only.

use sea_orm_migration::{
    prelude::{DbErr, DeriveMigrationName, MigrationTrait, MigratorTrait, SchemaManager, async_trait},
    schema::{big_integer, binary, boolean_null, string, string_null, text, text_null},
    sea_query::Table,
};

/// Migrates the registry's database.
pub struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(chassis::store::database::LedgerTables),
            Box::new(FirstTables),
            Box::new(chassis::lease::Migration),
            Box::new(chassis::store::ledger::RevisionIndexes(&["components", "boot_tokens"])),
            Box::new(chassis::lease::RoleMigration),
        ]
    }
}

#[derive(DeriveMigrationName)]
struct FirstTables;

#[async_trait::async_trait]
impl MigrationTrait for FirstTables {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let artifacts = Table::create()
            .table("boot_artifacts")
            .col(string("digest").primary_key())
            .col(text_null("kernel"))
            .col(text_null("kernel_parameters"))
            .col(text_null("initrd"))
            .to_owned();
        // No index beside the key: reads are served from memory, and an index on a column of every change would make
        // PostgreSQL rewrite all indexes of the row.
        let components = Table::create()
            .table("components")
            .col(string("id").primary_key())
            .col(big_integer("revision"))
            .col(big_integer("generation"))
            .col(boolean_null("enabled"))
            .col(string_null("session"))
            .col(string_null("phase"))
            .col(text("status"))
            .col(string_null("actual_artifacts"))
            .col(string_null("desired_artifacts"))
            .col(string_null("staged_artifacts"))
            .col(binary("record"))
            .to_owned();
        let tokens = Table::create()
            .table("boot_tokens")
            .col(text("token").primary_key())
            .col(big_integer("revision"))
            .col(string("artifacts"))
            .col(big_integer("stored_at"))
            .to_owned();
        let options = Table::create()
            .table("options")
            .col(string("key").primary_key())
            .col(big_integer("revision"))
            .col(binary("record"))
            .to_owned();
        for table in [artifacts, components, tokens, options] {
            manager.create_table(table).await?;
        }
        Ok(())
    }
}
