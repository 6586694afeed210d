//! Tables of the registry. No other module knows SQL.

mod artifacts;
mod components;
mod devices;
mod hosts;
mod options;
mod tokens;
mod unused_artifacts;

use chassis::{lease, store::ledger::Migrations};
use sea_orm_migration::{MigrationTrait, MigratorTrait};

pub use components::ComponentTable;
pub(crate) use components::create;
pub use devices::{DeviceTable, SightTable};
pub use hosts::{DocumentTable, HostTable, SecretTable, StoredSecret};
pub use options::StoredOptions;
pub use tokens::{BootToken, BootTokens};
pub(crate) use unused_artifacts::delete_unused_artifacts;

/// Migrates the registry's database.
pub struct RegistryMigrator;

impl MigratorTrait for RegistryMigrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        Migrations::default()
            .replacing(&["migration", "revision_indexes"])
            .side_table::<artifacts::Entity>(&[])
            .kind::<ComponentTable>()
            .kind::<BootTokens>()
            .kind::<StoredOptions>()
            .kind::<HostTable>()
            .kind::<DocumentTable>()
            .kind::<SecretTable>()
            .kind::<DeviceTable>()
            .kind::<SightTable>()
            .with(lease::Migration)
            .with(lease::RoleMigration)
            .into_vec()
    }
}

#[cfg(test)]
mod tests;
