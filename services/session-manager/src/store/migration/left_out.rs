//! Adds the table of left-out nodes.

use sea_orm_migration::{
    prelude::{DbErr, DeriveMigrationName, MigrationTrait, SchemaManager, async_trait},
    schema::{binary, text},
    sea_query::{Index, Table},
};

#[derive(DeriveMigrationName)]
pub(super) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let left_out = Table::create()
            .table("left_out")
            .col(text("key").primary_key())
            .col(text("session_key"))
            .col(text("session_id"))
            .col(text("boot_set"))
            .col(text("reason"))
            .col(binary("names"))
            .to_owned();
        manager.create_table(left_out).await?;
        for column in ["session_key", "session_id"] {
            let index = Index::create()
                .name(format!("left_out_by_{column}"))
                .table("left_out")
                .col(column)
                .to_owned();
            manager.create_index(index).await?;
        }
        Ok(())
    }
}
