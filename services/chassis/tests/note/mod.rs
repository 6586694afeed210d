//! A kind of resource for tests: the ledger knows no kind.

use std::sync::Arc;

use chassis::store::{
    database::{self, Unreadable},
    ledger::{EventRule, RevisionIndexes, Table, Watched},
    resource::{Batch, Resource},
};
use domain::core::event::{Actor, EventContent};
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
    pub last_event: u64,
}

impl Note {
    pub fn new(name: &str, text: &str) -> Self {
        Self { name: name.into(), text: text.into(), revision: 0, last_event: 0 }
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

    fn last_event(&self) -> u64 {
        self.last_event
    }

    fn set_last_event(&mut self, revision: u64) {
        self.last_event = revision;
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
    pub last_event: i64,
}

impl ActiveModelBehavior for ActiveModel {}

impl Table for Notes {
    type Kind = Note;

    const EVENTS: Option<EventRule<Note>> = Some(events);

    const OWNER: Actor = Actor::Service("note-keeper");

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
            last_event: Set(note.last_event.cast_signed()),
        });
        chassis::store::database::upsert::<Entity, ActiveModel>(transaction, Column::Name, rows.collect())
            .await
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

/// Text that is invalid once the database has lost commits.
pub const DOUBTFUL: &str = "doubtful";

/// Text that cannot be read.
pub const POISON: &str = "poison";

fn read(row: Model) -> Result<Note, Unreadable> {
    if row.text == POISON {
        return Err(database::unreadable(Note::KIND, &row.name, "it is poison"));
    }
    let (revision, last_event) = (row.revision.cast_unsigned(), row.last_event.cast_unsigned());
    Ok(Note { name: row.name, text: row.text, revision, last_event })
}

/// A note is written, and erased at last; the same text again is no event.
fn events(before: Option<&Note>, after: Option<&Note>, _: Actor, reason: &str) -> Vec<EventContent> {
    match (before, after) {
        (Some(before), Some(after)) if before.text == after.text => Vec::new(),
        (_, Some(after)) => {
            vec![EventContent::of("written").because(reason.to_owned()).saying(&after.text.as_str().into())]
        }
        (_, None) => vec![EventContent::of("erased")],
    }
}

struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(chassis::store::database::LedgerTables),
            Box::new(NotesTable),
            Box::new(chassis::lease::Migration),
            Box::new(RevisionIndexes(&["notes"])),
            Box::new(chassis::lease::RoleMigration),
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
            .col(big_integer("last_event").default(0))
            .to_owned();
        manager.create_table(notes).await
    }
}

/// Connects to `database` with the tables for notes.
pub async fn connect(database: &EmptyDatabase) -> DatabaseConnection {
    chassis::store::database::connect::<Migrator>(&database.url).await.unwrap()
}
