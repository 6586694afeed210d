//! The guarantees of replicas that share a PostgreSQL. Without one in the environment, these tests check nothing.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod faults;
mod leases;
mod ledgers;
#[path = "../note/mod.rs"]
mod note;
mod proxy;
#[path = "../served/mod.rs"]
mod served;

use std::{future::Future, time::Duration};

use chassis::{Context, Settings, settings, store::ledger::Ledger};
use note::{Note, Notes};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, QueryResult, Statement};
use test_databases::EmptyDatabase;

/// Timeout that only a lost event exceeds.
const PATIENCE: Duration = Duration::from_secs(150);

/// Returns a database that replicas may share, if there is a server.
async fn shared_database() -> Option<EmptyDatabase> {
    test_databases::every_kind().await.into_iter().find(|database| database.kind == "postgresql")
}

/// Replica with the parts that this crate has.
struct Replica {
    context: Context,
    database: DatabaseConnection,
    ledger: Ledger<Notes>,
}

impl Replica {
    async fn start(database: &EmptyDatabase) -> Self {
        Self::with(Settings::default(), database).await
    }

    async fn with(settings: Settings, database: &EmptyDatabase) -> Self {
        let context = Context::new(settings);
        let database = note::connect(database).await;
        let ledger = Ledger::open(&context, database.clone()).await.unwrap();
        Self { context, database, ledger }
    }

    async fn put(&self, name: &str, text: &str) -> u64 {
        let note = Note::new(name, text);
        let put = self.ledger.write(move |draft| {
            draft.put(note);
            Ok(())
        });
        put.await.unwrap().1
    }

    /// Adds `text` to a note that may not exist yet.
    async fn append(&self, name: &'static str, text: &'static str) -> Result<u64, chassis::Fault> {
        let append = self.ledger.write(move |draft| {
            let before = draft.get(name).map(|note| note.text.clone()).unwrap_or_default();
            draft.put(Note::new(name, &(before + text)));
            Ok(())
        });
        append.await.map(|((), revision)| revision)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.ledger.view().get(name).map(|note| note.text.clone())
    }

    async fn sql(&self, sql: &str) {
        self.database.execute_unprepared(sql).await.unwrap();
    }

    async fn row(&self, sql: &str) -> QueryResult {
        let statement = Statement::from_string(DbBackend::Postgres, sql);
        self.database.query_one_raw(statement).await.unwrap().unwrap()
    }

    async fn stop(self) {
        self.context.tasks.shutdown().cancel();
        self.context.tasks.finished(PATIENCE).await.unwrap();
    }
}

/// Returns leases that are short enough for a test.
fn short_leases() -> Settings {
    let leases = settings::LeaseSettings {
        ttl_seconds: 3.0,
        renewal_seconds: 0.3,
        margin_seconds: 1.0,
        stall_seconds: 1.0,
    };
    Settings { leases, ..Settings::default() }
}

/// Returns leases that do not expire within a test.
fn long_leases() -> Settings {
    let leases = settings::LeaseSettings {
        ttl_seconds: 3000.0,
        renewal_seconds: 900.0,
        margin_seconds: 10.0,
        stall_seconds: 900.0,
    };
    Settings { leases, ..Settings::default() }
}

/// Waits until `holds` returns true.
async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "it never came about that {what}");
}
