//! The schema of a part's database: the part's own tables, and those that each of its ledgers needs beside them.

use std::marker::PhantomData;

use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, TransactionTrait};
use sea_orm_migration::{
    MigrationName, MigratorTrait,
    prelude::{MigrationTrait, SchemaManager, async_trait},
    schema::{big_integer, string},
    sea_query::{DynIden, Index, Table},
    seaql_migrations,
};

use super::is_shared;
use crate::process::pause;

/// Attempts to migrate the tables. Replicas that start together collide.
const MIGRATIONS: u32 = 8;

/// Prefix of the names of migrations that earlier versions may ignore. Such a migration adds tables, indexes, or
/// columns that are nullable or have a default, and writers may omit its additions. Its name stays in the database, so
/// that earlier versions keep working, beside the later one and after it. Any other unknown migration keeps earlier
/// versions from starting.
pub const ADDITIVE: &str = "additive_";

/// Creates the tables for revisions and deletions. Every part that has a ledger runs it first.
pub struct LedgerTables;

impl MigrationName for LedgerTables {
    fn name(&self) -> &str {
        // Databases in use have it on record.
        "bookkeeping"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for LedgerTables {
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

/// Brings the tables up to date. Replicas that start together and disturb one another try again.
pub(super) async fn migrate<M: MigratorTrait>(database: &DatabaseConnection) -> Result<(), DbErr> {
    let mut tries = 0;
    loop {
        tries += 1;
        match up::<M>(database).await {
            Err(error @ DbErr::Migration(_)) => return Err(error),
            Err(error) if is_shared(database) && tries < MIGRATIONS => {
                tracing::debug!(%error, "another replica may be bringing the tables up to date");
                tokio::time::sleep(pause::after(tries)).await;
            }
            outcome => return outcome,
        }
    }
}

/// Migrates the tables in one transaction: an interrupted migration leaves nothing half done, and a second replica
/// finds it finished. Left to itself SQLite would commit statement by statement.
async fn up<M: MigratorTrait>(database: &DatabaseConnection) -> Result<(), DbErr> {
    let transaction = database.begin().await?;
    CompleteMigrator::<M>::install(&transaction).await?;
    refuse_tables_of_others::<M>(&transaction).await?;
    CompleteMigrator::<M>::up(&transaction, None).await?;
    transaction.commit().await
}

/// Refuses a database of another part or of a later version.
///
/// A later version has applied all migrations of this one, and others that may be ignored if they are [`ADDITIVE`]. The
/// database of another part lacks some migrations of this one.
async fn refuse_tables_of_others<M: MigratorTrait>(database: &impl ConnectionTrait) -> Result<(), DbErr> {
    let ours = CompleteMigrator::<M>::migrations();
    let applied = M::get_migration_models(database).await?;
    let is_ours = |name: &str| ours.iter().any(|migration| migration.name() == name);
    let is_applied = |name: &str| applied.iter().any(|one| one.version == name);
    let unknown: Vec<_> =
        applied.iter().map(|one| one.version.as_str()).filter(|name| !is_ours(name)).collect();
    let is_later = unknown.iter().all(|name| name.starts_with(ADDITIVE))
        && ours.iter().all(|migration| is_applied(migration.name()));
    if unknown.is_empty() || is_later {
        return Ok(());
    }
    Err(DbErr::Migration(format!(
        "the database has tables that this part does not know (migrations {}). If they are of another part, give each part \
         a database_url of its own; if they are of a later version, start that version",
        unknown.join(", ")
    )))
}

/// The migrations of a part and those that ledgers got after [`LedgerTables`], which no part has to name.
struct CompleteMigrator<M>(PhantomData<M>);

#[async_trait::async_trait]
impl<M: MigratorTrait> MigratorTrait for CompleteMigrator<M> {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        let mut migrations = M::migrations();
        if migrations.iter().any(|migration| migration.name() == LedgerTables.name()) {
            migrations.push(Box::new(CommitIds));
            migrations.push(Box::new(LineagesMigration));
            migrations.push(Box::new(IncarnationsMigration));
            migrations.push(Box::new(EventsMigration));
        }
        migrations
    }

    fn migration_table_name() -> DynIden {
        M::migration_table_name()
    }

    /// Applied migrations, without those of a later version.
    async fn get_migration_models<C: ConnectionTrait>(on: &C) -> Result<Vec<seaql_migrations::Model>, DbErr> {
        let ours = Self::migrations();
        let is_ours = |name: &str| ours.iter().any(|migration| migration.name() == name);
        let mut applied = M::get_migration_models(on).await?;
        applied.retain(|one| is_ours(&one.version) || !one.version.starts_with(ADDITIVE));
        Ok(applied)
    }
}

/// Adds the column of the last commit's id to the revisions. Every database with revisions gets it.
struct CommitIds;

impl MigrationName for CommitIds {
    fn name(&self) -> &str {
        "commit_ids"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for CommitIds {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // A replica of before leaves it out.
        let place = string("last_commit").default("").to_owned();
        manager.alter_table(Table::alter().table("revisions").add_column(place).to_owned()).await
    }
}

/// Adds the column of the lineage to the revisions. Every database with revisions gets it.
struct LineagesMigration;

impl MigrationName for LineagesMigration {
    fn name(&self) -> &str {
        "additive_lineages"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for LineagesMigration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let place = string("lineage").default("").to_owned();
        manager.alter_table(Table::alter().table("revisions").add_column(place).to_owned()).await
    }
}

/// Adds the column of the incarnation to the revisions. Earlier rows have the nil incarnation until the first loss.
struct IncarnationsMigration;

impl MigrationName for IncarnationsMigration {
    fn name(&self) -> &str {
        "additive_incarnations"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for IncarnationsMigration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let place = string("incarnation").default("").to_owned();
        manager.alter_table(Table::alter().table("revisions").add_column(place).to_owned()).await
    }
}

/// Creates the table of events. Every database with revisions gets it.
struct EventsMigration;

impl MigrationName for EventsMigration {
    fn name(&self) -> &str {
        "additive_events"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for EventsMigration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let bytes = if manager.get_database_backend() == DbBackend::Postgres { "bytea" } else { "blob" };
        let sql = format!(
            "CREATE TABLE events (kind varchar NOT NULL, revision bigint NOT NULL, time bigint NOT NULL, \
             record {bytes} NOT NULL, PRIMARY KEY (kind, revision))"
        );
        manager.get_connection().execute_unprepared(&sql).await.map(drop)
    }
}
