//! Adds the intent of pending sessions.

use sea_orm_migration::{
    prelude::{DbErr, DeriveMigrationName, MigrationTrait, SchemaManager, async_trait},
    schema::binary_null,
    sea_query::Table,
};

#[derive(DeriveMigrationName)]
pub(super) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .alter_table(Table::alter().table("sessions").add_column(binary_null("intent")).to_owned())
            .await
    }
}
