//! Tables of the fleet manager. Only this module knows SQL.

mod enrolments;
mod fleets;
mod versions;

use chassis::{
    lease,
    store::ledger::{Ledger, Migrations},
};
use sea_orm_migration::{MigrationTrait, MigratorTrait};

pub(crate) use enrolments::{AuthorityTable, EnrolmentTable, RevocationTable};
pub(crate) use fleets::FleetTable;
pub(crate) use versions::TemplateVersionTable;

/// Brings the fleet manager's database up to date.
pub struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        Migrations::default()
            .kind::<FleetTable>()
            .kind::<TemplateVersionTable>()
            .kind::<EnrolmentTable>()
            .kind::<AuthorityTable>()
            .kind::<RevocationTable>()
            .with(lease::Migration)
            .with(lease::RoleMigration)
            .into_vec()
    }
}

/// Fleets and the versions of their templates. Clones share them.
#[derive(Clone)]
pub(crate) struct FleetLedgers {
    pub(crate) fleets: Ledger<FleetTable>,
    pub(crate) versions: Ledger<TemplateVersionTable>,
}
