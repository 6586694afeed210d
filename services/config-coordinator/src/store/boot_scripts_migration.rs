//! Tables for our own boot scripts, and the column for the time of a preparation's progress.

use sea_orm_migration::{
    prelude::{DbErr, DeriveMigrationName, MigrationTrait, SchemaManager, async_trait},
    schema::{big_integer, string, text_null},
    sea_query::{Index, Table},
};

#[derive(DeriveMigrationName)]
pub(super) struct BootScriptTables;

#[async_trait::async_trait]
impl MigrationTrait for BootScriptTables {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let data = Table::create()
            .table("boot_data")
            .col(string("token").primary_key())
            .col(text_null("kernel"))
            .col(text_null("kernel_parameters"))
            .col(text_null("initrd"))
            .to_owned();
        let scripts = Table::create()
            .table("boot_scripts")
            .col(string("id").primary_key())
            .col(big_integer("revision"))
            .col(string("token"))
            .to_owned();
        // Data are deleted when no node refers to them.
        let by_token =
            Index::create().name("boot_scripts_by_token").table("boot_scripts").col("token").to_owned();
        let since =
            Table::alter().table("boot_preparations").add_column(big_integer("since").default(0)).to_owned();
        manager.create_table(data).await?;
        manager.create_table(scripts).await?;
        manager.create_index(by_token).await?;
        manager.alter_table(since).await
    }
}
