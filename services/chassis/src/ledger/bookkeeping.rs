//! The tables that every part's database has beside its own: revisions and deletions per kind.

use sea_orm::{
    ActiveValue::Set, ConnectionTrait, DatabaseTransaction, DbErr, QueryFilter, QueryOrder,
    entity::prelude::*,
};
use sea_orm_migration::prelude::{DeriveMigrationName, MigrationTrait, SchemaManager, async_trait};
use sea_orm_migration::schema::{big_integer, string};
use sea_orm_migration::sea_query::{Index, Table};

use crate::resource::Deletion;

pub(super) mod revision {
    use super::*;

    /// The newest revision of a kind.
    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "revisions")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub kind: String,
        pub revision: i64,
        /// Deletions up to here may have been forgotten.
        pub compacted: i64,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub(super) mod deletion {
    use super::*;

    /// A key that was deleted.
    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "deletions")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub kind: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub revision: i64,
        pub key: String,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// Creates the tables for revisions and deletions. Every part that has a ledger runs it first.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let revisions = Table::create()
            .table("revisions")
            .col(string("kind").primary_key())
            .col(big_integer("revision"))
            .col(big_integer("compacted"))
            .to_owned();
        let deletions = Table::create()
            .table("deletions")
            .col(string("kind"))
            .col(big_integer("revision"))
            .col(string("key"))
            .primary_key(Index::create().col("kind").col("revision"))
            .to_owned();
        manager.create_table(revisions).await?;
        manager.create_table(deletions).await
    }
}

/// Where a kind stands.
pub(super) struct Position {
    pub(super) revision: u64,
    pub(super) compacted: u64,
}

/// Reads where `kind` stands; makes its row on the first use.
pub(super) async fn position(on: &impl ConnectionTrait, kind: &str) -> Result<Position, DbErr> {
    if let Some(found) = revision::Entity::find_by_id(kind).one(on).await? {
        return Ok(Position { revision: unsigned(found.revision), compacted: unsigned(found.compacted) });
    }
    let first = revision::ActiveModel { kind: Set(kind.to_owned()), revision: Set(0), compacted: Set(0) };
    revision::Entity::insert(first).exec_without_returning(on).await?;
    Ok(Position { revision: 0, compacted: 0 })
}

/// Moves `kind` from one revision to another, if it is still there. This is the fence: it also takes the
/// lock that makes a second writer wait for the end of the transaction.
pub(super) async fn advance(on: &DatabaseTransaction, kind: &str, from: u64, to: u64) -> Result<bool, DbErr> {
    let moved = revision::Entity::update_many()
        .col_expr(revision::Column::Revision, Expr::value(signed(to)))
        .filter(revision::Column::Kind.eq(kind))
        .filter(revision::Column::Revision.eq(signed(from)))
        .exec(on)
        .await?;
    Ok(moved.rows_affected == 1)
}

/// The deletions that are remembered, oldest first.
pub(super) async fn deletions(on: &impl ConnectionTrait, kind: &str) -> Result<Vec<Deletion>, DbErr> {
    let rows = deletion::Entity::find()
        .filter(deletion::Column::Kind.eq(kind))
        .order_by_asc(deletion::Column::Revision)
        .all(on)
        .await?;
    Ok(rows
        .into_iter()
        .map(|row| Deletion { key: row.key.into(), revision: unsigned(row.revision) })
        .collect())
}

/// Remembers deletions.
pub(super) async fn remember(
    on: &DatabaseTransaction,
    kind: &str,
    deleted: &[Deletion],
) -> Result<(), DbErr> {
    for chunk in deleted.chunks(1000) {
        let rows = chunk.iter().map(|deletion| deletion::ActiveModel {
            kind: Set(kind.to_owned()),
            revision: Set(signed(deletion.revision)),
            key: Set(deletion.key.to_string()),
        });
        deletion::Entity::insert_many(rows).exec_without_returning(on).await?;
    }
    Ok(())
}

/// Forgets the deletions up to a revision.
pub(super) async fn forget(on: &DatabaseTransaction, kind: &str, up_to: u64) -> Result<(), DbErr> {
    deletion::Entity::delete_many()
        .filter(deletion::Column::Kind.eq(kind))
        .filter(deletion::Column::Revision.lte(signed(up_to)))
        .exec(on)
        .await?;
    revision::Entity::update_many()
        .col_expr(revision::Column::Compacted, Expr::value(signed(up_to)))
        .filter(revision::Column::Kind.eq(kind))
        .exec(on)
        .await?;
    Ok(())
}

fn signed(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

fn unsigned(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or_default()
}
