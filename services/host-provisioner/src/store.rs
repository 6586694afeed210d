//! The host provisioner's table. Only this module knows SQL.

use chassis::{
    kinds::host::SightRecord,
    lease,
    store::ledger::{Column, Migrations, StoredRow, Table},
};
use sea_orm_migration::{MigrationTrait, MigratorTrait};

/// Brings the host provisioner's database up to date.
pub struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        Migrations::default()
            .kind::<HostSightTable>()
            .with(lease::Migration)
            .with(lease::RoleMigration)
            .into_vec()
    }
}

/// Table of the latest news of the driver of each host.
pub struct HostSightTable;

impl Table for HostSightTable {
    type Kind = SightRecord;
    type Pool = ();

    const NAME: &'static str = "host_sights";

    const COLUMNS: &'static [Column<SightRecord>] = &[Column::record()];

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<SightRecord> {
        row.record(pool)
    }
}
