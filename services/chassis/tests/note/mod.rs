//! A kind of resource for tests: the ledger knows no kind.

use std::borrow::Cow;

use chassis::{
    lease,
    store::{
        ledger::{Column, EventRule, Migrations, StoredRow, Table},
        resource::{Resource, WireForm},
    },
};
use domain::core::{
    event::{Actor, EventContent},
    invalid::Invalid,
};
use proto::{
    Encoded, Message,
    configuration::{ConfigurationState, WatchConfigurationStatesResponse},
};
use sea_orm::DatabaseConnection;
use sea_orm_migration::{MigrationTrait, MigratorTrait};
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

impl WireForm for Note {
    type Message = ConfigurationState;
    type Pool = ();

    fn to_wire(&self) -> Cow<'_, ConfigurationState> {
        let (id, status, revision) = (self.name.clone(), self.text.clone(), self.revision);
        Cow::Owned(ConfigurationState { id, status, revision, ..ConfigurationState::default() })
    }

    fn from_wire(message: ConfigurationState, (): &mut ()) -> Result<Self, Invalid> {
        let ConfigurationState { id: name, status: text, revision, .. } = message;
        Ok(Self { name, text, revision, last_event: 0 })
    }
}

pub struct Notes;

impl Table for Notes {
    type Kind = Note;
    type Pool = ();

    const NAME: &'static str = "notes";

    const KEY: &'static str = "name";

    const COLUMNS: &'static [Column<Note>] = &[
        Column::text("text", |note, ()| note.text.clone()),
        Column::later(Column::number("last_event", |note, ()| note.last_event.cast_signed())),
    ];

    const EVENTS: Option<EventRule<Note>> = Some(events);

    const OWNER: Actor = Actor::Service("note-keeper");

    fn read(row: &StoredRow, (): &mut ()) -> anyhow::Result<Note> {
        let text: String = row.get("text")?;
        anyhow::ensure!(text != POISON, "it is poison");
        let last_event = row.get::<i64>("last_event")?.cast_unsigned();
        Ok(Note { name: row.key().to_owned(), text, revision: row.revision(), last_event })
    }

    fn after_loss(note: &Note, revision: u64) -> Option<Note> {
        (note.text == DOUBTFUL).then(|| Note::new(&note.name, &format!("as of {revision}")))
    }
}

/// Returns the names of the notes that an answer of a watch brings.
pub fn names(answer: &Encoded<WatchConfigurationStatesResponse>) -> String {
    let answer = WatchConfigurationStatesResponse::decode(answer.bytes().clone()).unwrap();
    answer.configuration_states.iter().map(|note| &*note.id).collect::<Vec<_>>().join(" ")
}

/// Text that is invalid once the database has lost commits.
pub const DOUBTFUL: &str = "doubtful";

/// Text that cannot be read.
pub const POISON: &str = "poison";

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
        Migrations::default().kind::<Notes>().with(lease::Migration).with(lease::RoleMigration).into_vec()
    }
}

/// Connects to `database` with the tables for notes.
pub async fn connect(database: &EmptyDatabase) -> DatabaseConnection {
    chassis::store::database::connect::<Migrator>(&database.url).await.unwrap()
}
