//! Columns for the kind of a preparation's trouble and for the step that failed.

use sea_orm_migration::{
    prelude::{DbErr, MigrationName, MigrationTrait, SchemaManager, async_trait},
    schema::string_null,
    sea_query::Table,
};

/// Adds two columns that earlier versions neither read nor write.
pub(super) struct TroubleColumns;

impl MigrationName for TroubleColumns {
    fn name(&self) -> &str {
        "additive_preparation_trouble"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for TroubleColumns {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // SQLite takes one new column at a time.
        for column in ["error_kind", "failed_step"] {
            let add = Table::alter().table("boot_preparations").add_column(string_null(column)).to_owned();
            manager.alter_table(add).await?;
        }
        Ok(())
    }
}
