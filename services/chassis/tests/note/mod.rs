//! A kind of resource of its own: the ledger knows no kind.

use std::sync::Arc;

use chassis::{
    database::{self, Unreadable},
    ledger::{RevisionIndexes, Table, Watched},
    resource::{Batch, Resource},
};
use sea_orm::{
    ActiveValue::Set, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, entity::prelude::*,
};
use sea_orm_migration::{
    MigratorTrait,
    prelude::{DeriveMigrationName, MigrationTrait, SchemaManager, async_trait},
    schema::{big_integer, string, text},
    sea_query::Table as SqlTable,
};
use test_databases::EmptyDatabase;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub name: String,
    pub text: String,
    pub revision: u64,
}

impl Note {
    pub fn new(name: &str, text: &str) -> Self {
        Self { name: name.into(), text: text.into(), revision: 0 }
    }
}

impl Resource for Note {
    const KIND: &'static str = "note";

    fn key(&self) -> &str {
        &self.name
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }
}

pub struct Notes;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "notes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    pub text: String,
    pub revision: i64,
}

impl ActiveModelBehavior for ActiveModel {}

impl Table for Notes {
    type Kind = Note;

    async fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> Result<Vec<Result<Note, Unreadable>>, DbErr> {
        database::rows::<Entity, _>(on, Column::Revision, after, read).await
    }

    async fn save(transaction: &DatabaseTransaction, notes: &[Arc<Note>]) -> Result<(), DbErr> {
        let rows = notes.iter().map(|note| ActiveModel {
            name: Set(note.name.clone()),
            text: Set(note.text.clone()),
            revision: Set(note.revision.cast_signed()),
        });
        chassis::database::upsert::<Entity, ActiveModel>(transaction, Column::Name, rows.collect()).await
    }

    async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        let names = keys.iter().map(|key| &**key);
        Entity::delete_many().filter(Column::Name.is_in(names)).exec(transaction).await?;
        Ok(())
    }

    fn after_loss(note: &Note, revision: u64) -> Option<Note> {
        (note.text == DOUBTFUL).then(|| Note::new(&note.name, &format!("as of {revision}")))
    }
}

impl Watched for Notes {
    type Message = String;

    fn message(batch: &Batch<Note>) -> String {
        let names: Vec<_> = batch.changed.iter().map(|note| &*note.name).collect();
        names.join(" ")
    }
}

/// A text that means nothing any more once the database has lost commits.
pub const DOUBTFUL: &str = "doubtful";

/// A text that no note has.
pub const POISON: &str = "poison";

fn read(row: Model) -> Result<Note, Unreadable> {
    if row.text == POISON {
        return Err(database::unreadable(Note::KIND, &row.name, "it is poison"));
    }
    Ok(Note { name: row.name, text: row.text, revision: row.revision.cast_unsigned() })
}

struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(chassis::database::LedgerTables),
            Box::new(NotesTable),
            Box::new(chassis::lease::Migration),
            Box::new(RevisionIndexes(&["notes"])),
        ]
    }
}

#[derive(DeriveMigrationName)]
struct NotesTable;

#[async_trait::async_trait]
impl MigrationTrait for NotesTable {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let notes = SqlTable::create()
            .table("notes")
            .col(string("name").primary_key())
            .col(text("text"))
            .col(big_integer("revision"))
            .to_owned();
        manager.create_table(notes).await
    }
}

/// Connects to `database` with the tables for notes.
pub async fn connect(database: &EmptyDatabase) -> DatabaseConnection {
    chassis::database::connect::<Migrator>(&database.url).await.unwrap()
}
