//! The config coordinator's tables. Only this module knows SQL.

mod boot_scripts;
mod preparations;

use chassis::{
    kinds::configuration::ConfigurationStateRecord,
    lease,
    store::ledger::{Column, Migrations, StoredRow, Table},
};
use domain::core::shared_part::PartPool;
use proto::configuration::ConfigurationState;
use sea_orm_migration::{MigrationTrait, MigratorTrait};

pub(crate) use boot_scripts::{BootScript, BootScriptTable};
pub(crate) use preparations::PreparationTable;

/// Migrations of earlier releases, whose tables are declared by now.
const REPLACED: &[&str] =
    &["migration", "boot_scripts_migration", "revision_indexes", "additive_preparation_trouble"];

/// Brings the config coordinator's database up to date.
pub(crate) struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        Migrations::default()
            .replacing(REPLACED)
            .kind::<ConfigurationStateTable>()
            .kind::<PreparationTable>()
            .kind::<BootScriptTable>()
            .side_table::<boot_scripts::data::Entity>(&[])
            .with(lease::Migration)
            .with(lease::RoleMigration)
            .into_vec()
    }
}

/// Table of the last state of each node at the configuration upstream. The columns beside `record` are for people who
/// read the database.
pub(crate) struct ConfigurationStateTable;

impl Table for ConfigurationStateTable {
    type Kind = ConfigurationStateRecord;
    type Pool = PartPool<ConfigurationState>;

    const NAME: &'static str = "configuration_states";

    const COLUMNS: &'static [Column<ConfigurationStateRecord, Self::Pool>] = &[
        Column::number("generation", |state, _| state.content().generation.cast_signed()),
        Column::text("reading", |state, _| state.content().reading().as_str_name().to_owned()),
        Column::text("status", |state, _| state.content().status.clone()),
        Column::record(),
    ];

    fn read(row: &StoredRow, pool: &mut Self::Pool) -> anyhow::Result<ConfigurationStateRecord> {
        row.record(pool)
    }

    fn share(state: &mut ConfigurationStateRecord, pool: &mut Self::Pool) {
        state.share(pool);
    }
}

#[cfg(test)]
mod tests;
