//! Where databases go: SQLite files, and the PostgreSQL server that the environment names, if any.

use chassis::Settings;
use sea_orm::{ConnectionTrait, Database};

/// Address of a PostgreSQL server on which tests may create databases.
pub const POSTGRES: &str = "REVEILLE_TEST_POSTGRES";

/// Gives every part that owns data a new database on the PostgreSQL server of the environment. Says whether
/// there is one.
///
/// # Panics
/// When the server cannot be used.
pub async fn on_postgres(settings: &mut Settings) -> bool {
    let Ok(server) = std::env::var(POSTGRES) else { return false };
    let owners = [
        &mut settings.component_registry,
        &mut settings.session_manager,
        &mut settings.power_controller,
        &mut settings.config_coordinator,
    ];
    let admin = Database::connect(server.as_str()).await.expect("a server to connect to");
    let (base, _) = server.rsplit_once('/').expect("an address that names a database");
    for owner in owners {
        let name = format!("reveille_{}", uuid::Uuid::new_v4().simple());
        admin.execute_unprepared(&format!("CREATE DATABASE {name}")).await.expect("a new database");
        owner.database_url = format!("{base}/{name}");
    }
    true
}
