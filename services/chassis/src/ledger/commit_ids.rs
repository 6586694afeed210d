//! The ids by which commits of the same revision are told from one another.

use sea_orm::DbErr;
use sea_orm_migration::{
    prelude::{DeriveMigrationName, MigrationTrait, SchemaManager, async_trait},
    schema::string,
    sea_query::Table,
};

/// Gives the rows of revisions a place for the id of their last commit. Every database that has such rows gets it.
#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // A replica of before leaves it out.
        let place = string("last_commit").default("").to_owned();
        manager.alter_table(Table::alter().table("revisions").add_column(place).to_owned()).await
    }
}
