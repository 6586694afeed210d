//! Empty databases for tests: an SQLite file always, and PostgreSQL where the environment offers a server.

use sea_orm::{ConnectionTrait, Database};
use tempfile::TempDir;
use uuid::Uuid;

/// Address of a PostgreSQL server on which tests may create databases, such as
/// `postgres://postgres@127.0.0.1:5432/postgres`.
pub const POSTGRES: &str = "REVEILLE_TEST_POSTGRES";

/// A database that no other test uses.
pub struct EmptyDatabase {
    /// Database system, for messages.
    pub kind: &'static str,
    /// Address of the database.
    pub url: String,
    /// Goes with the value.
    _directory: Option<TempDir>,
}

impl EmptyDatabase {
    /// An existing database at `url`.
    pub fn at(url: String) -> Self {
        let kind = if url.starts_with("sqlite:") { "sqlite" } else { "postgresql" };
        Self { kind, url, _directory: None }
    }
}

/// An empty database of every kind.
///
/// # Panics
/// When the PostgreSQL server of the environment cannot be used.
pub async fn every_kind() -> Vec<EmptyDatabase> {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("sqlite://{}?mode=rwc", directory.path().join("test.sqlite").display());
    let sqlite = EmptyDatabase { kind: "sqlite", url, _directory: Some(directory) };
    let postgres = on_postgres().await.map(|url| EmptyDatabase { kind: "postgresql", url, _directory: None });
    [sqlite].into_iter().chain(postgres).collect()
}

/// Returns the address of a new database on the PostgreSQL server of the environment; `None` without a server. The
/// database stays as long as the server, which is a throw-away one in tests.
///
/// # Panics
/// When the server cannot be used.
pub async fn on_postgres() -> Option<String> {
    let server = std::env::var(POSTGRES).ok()?;
    Some(create_on(&server).await)
}

/// Address of a new database on the PostgreSQL server at `server`, an address of the same form.
///
/// # Panics
/// When the server cannot be used.
pub async fn create_on(server: &str) -> String {
    let name = format!("reveille_{}", Uuid::new_v4().simple());
    let admin = Database::connect(server).await.expect("a server to connect to");
    admin.execute_unprepared(&format!("CREATE DATABASE {name}")).await.expect("a new database");
    let (base, _) = server.rsplit_once('/').expect("an address that names a database");
    format!("{base}/{name}")
}
