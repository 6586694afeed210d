//! The schema of a part, from the declarations of its tables.
//!
//! The table of a kind is one migration, and so is each column that a later release adds. An earlier release may have
//! made the table by a migration of its own: then nothing is left to do, and the name of that migration stays on record.

use sea_orm::{DbBackend, DbErr, EntityTrait, Schema};
use sea_orm_migration::{
    MigrationName,
    prelude::{MigrationTrait, SchemaManager, async_trait},
    schema::{big_integer, binary, binary_null, boolean_null, text, text_null},
    sea_query::{self, ColumnDef, Index, TableCreateStatement},
};

use super::table::{Column, ColumnValue, REVISION, Table};
use crate::store::database::{ADDITIVE, LedgerTables};

/// Migrations of a part, in their order.
pub struct Migrations(Vec<Box<dyn MigrationTrait>>);

impl Default for Migrations {
    fn default() -> Self {
        Self(vec![Box::new(LedgerTables)])
    }
}

impl Migrations {
    /// Records the names of migrations by which earlier releases made the tables that are declared by now. Such a release
    /// starts beside this one only where it finds them.
    #[must_use]
    pub fn replacing(self, names: &[&'static str]) -> Self {
        names.iter().fold(self, |migrations, name| migrations.with(ReplacedMigration(name)))
    }

    /// Adds the table of a kind, indexed by revision where other replicas look for changes.
    #[must_use]
    pub fn kind<T: Table>(self) -> Self {
        let revision =
            TableIndex { name: format!("{}_{REVISION}", T::NAME), column: REVISION, only_shared: true };
        let indexed = T::INDEXED.iter().map(|column| TableIndex::by(T::NAME, column));
        let table = DeclaredTable {
            migration: format!("{ADDITIVE}{}", T::NAME),
            name: T::NAME,
            table: |_| kind_table::<T>(),
            indexes: [revision].into_iter().chain(indexed).collect(),
        };
        let later = T::COLUMNS.iter().filter(|column| column.is_later);
        later.fold(self.with(table), |migrations, column| migrations.with(LaterColumn::of(T::NAME, column)))
    }

    /// Adds a table beside those of kinds, with indexes by these columns.
    #[must_use]
    pub fn side_table<E: EntityTrait>(self, indexed: &[&'static str]) -> Self {
        let name = E::default().table_name();
        self.with(DeclaredTable {
            migration: format!("{ADDITIVE}{name}"),
            name,
            table: |backend| Schema::new(backend).create_table_from_entity(E::default()),
            indexes: indexed.iter().map(|column| TableIndex::by(name, column)).collect(),
        })
    }

    /// Adds any other migration.
    #[must_use]
    pub fn with(mut self, migration: impl MigrationTrait + 'static) -> Self {
        self.0.push(Box::new(migration));
        self
    }

    /// Returns the migrations.
    pub fn into_vec(self) -> Vec<Box<dyn MigrationTrait>> {
        self.0
    }
}

/// Migration of an earlier release whose work is declared by now.
struct ReplacedMigration(&'static str);

impl MigrationName for ReplacedMigration {
    fn name(&self) -> &str {
        self.0
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ReplacedMigration {
    async fn up(&self, _: &SchemaManager) -> Result<(), DbErr> {
        Ok(())
    }
}

/// Creates a table with its indexes.
struct DeclaredTable {
    migration: String,
    name: &'static str,
    table: fn(DbBackend) -> TableCreateStatement,
    indexes: Vec<TableIndex>,
}

/// Index of a table by one column.
struct TableIndex {
    name: String,
    column: &'static str,
    /// Whether only a shared database has the index: in another one it would only cost.
    only_shared: bool,
}

impl TableIndex {
    fn by(table: &str, column: &'static str) -> Self {
        Self { name: format!("{table}_by_{column}"), column, only_shared: false }
    }
}

impl MigrationName for DeclaredTable {
    fn name(&self) -> &str {
        &self.migration
    }
}

#[async_trait::async_trait]
impl MigrationTrait for DeclaredTable {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        manager.create_table((self.table)(backend).if_not_exists().to_owned()).await?;
        for index in &self.indexes {
            if backend == DbBackend::Postgres || !index.only_shared {
                let mut create = Index::create();
                create.if_not_exists().name(&index.name).table(self.name).col(index.column);
                manager.create_index(create).await?;
            }
        }
        Ok(())
    }
}

fn kind_table<T: Table>() -> TableCreateStatement {
    let mut table = sea_query::Table::create();
    table.table(T::NAME).col(text(T::KEY).primary_key()).col(big_integer(REVISION));
    for column in T::COLUMNS.iter().filter(|column| !column.is_later) {
        table.col(definition(column));
    }
    table
}

/// Adds a column to the table of an earlier release.
struct LaterColumn {
    migration: String,
    table: &'static str,
    column: &'static str,
    definition: ColumnDef,
}

impl LaterColumn {
    fn of<R, P>(table: &'static str, column: &Column<R, P>) -> Self {
        let mut definition = definition(column);
        match column.value {
            ColumnValue::Text(_) => definition.default(""),
            ColumnValue::Number(_) => definition.default(0),
            ColumnValue::Bytes(_) => definition.default(Vec::<u8>::new()),
            ColumnValue::OptionalText(_) | ColumnValue::OptionalFlag(_) | ColumnValue::OptionalBytes(_) => {
                &mut definition
            }
        };
        Self {
            migration: format!("{ADDITIVE}{table}_{}", column.name),
            table,
            column: column.name,
            definition,
        }
    }
}

impl MigrationName for LaterColumn {
    fn name(&self) -> &str {
        &self.migration
    }
}

#[async_trait::async_trait]
impl MigrationTrait for LaterColumn {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.has_column(self.table, self.column).await? {
            return Ok(());
        }
        let mut add = sea_query::Table::alter();
        manager.alter_table(add.table(self.table).add_column(self.definition.clone()).to_owned()).await
    }
}

fn definition<R, P>(column: &Column<R, P>) -> ColumnDef {
    match column.value {
        ColumnValue::Text(_) => text(column.name),
        ColumnValue::OptionalText(_) => text_null(column.name),
        ColumnValue::Number(_) => big_integer(column.name),
        ColumnValue::OptionalFlag(_) => boolean_null(column.name),
        ColumnValue::Bytes(_) => binary(column.name),
        ColumnValue::OptionalBytes(_) => binary_null(column.name),
    }
}
