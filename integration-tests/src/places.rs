//! Storage of a mesh when it is not in SQLite files.

use chassis::Settings;

/// Gives every part that owns data a new database on the PostgreSQL server of the environment. Returns whether there is
/// such a server.
///
/// # Panics
/// When the server cannot be used.
pub async fn on_postgres(settings: &mut Settings) -> bool {
    let owners = [
        &mut settings.component_registry,
        &mut settings.session_manager,
        &mut settings.power_controller,
        &mut settings.config_coordinator,
        &mut settings.host_provisioner,
        &mut settings.fleet_manager,
    ];
    for owner in owners {
        let Some(url) = test_databases::on_postgres().await else { return false };
        owner.database_url = url;
    }
    true
}
