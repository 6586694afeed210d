//! The power controller's tables. Only this module knows SQL.

use chassis::{
    kinds::{host::HostPowerRecord, power::PowerStateRecord},
    lease,
    store::ledger::{Column, EventRule, Migrations, StoredRow, Table},
};
use domain::{
    boot::power::{event, transition::PowerTransition},
    core::{event::Actor, shared_part::PartPool},
};
use proto::power::PowerState;
use sea_orm_migration::{MigrationTrait, MigratorTrait};

use crate::convert;

/// Brings the power controller's database up to date.
pub struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        Migrations::default()
            .replacing(&["migration", "revision_indexes"])
            .kind::<PowerStateTable>()
            .kind::<TransitionTable>()
            .kind::<HostPowerTable>()
            .with(lease::Migration)
            .with(lease::RoleMigration)
            .into_vec()
    }
}

/// Table of the last reading of each node. The columns beside `record` are for people who read the database.
pub struct PowerStateTable;

impl Table for PowerStateTable {
    type Kind = PowerStateRecord;
    type Pool = PartPool<PowerState>;

    const NAME: &'static str = "power_states";

    const COLUMNS: &'static [Column<PowerStateRecord, Self::Pool>] = &[
        Column::number("generation", |state, _| state.content().generation.cast_signed()),
        Column::text("reading", |state, _| state.content().reading().as_str_name().to_owned()),
        Column::record(),
    ];

    fn read(row: &StoredRow, pool: &mut Self::Pool) -> anyhow::Result<PowerStateRecord> {
        row.record(pool)
    }

    fn share(state: &mut PowerStateRecord, pool: &mut Self::Pool) {
        state.share(pool);
    }
}

/// Table of the requests to the power upstream. The columns beside `record` are for people who read the database.
pub struct TransitionTable;

impl Table for TransitionTable {
    type Kind = PowerTransition;
    type Pool = ();

    const NAME: &'static str = "transitions";

    const COLUMNS: &'static [Column<PowerTransition>] = &[
        Column::text("action", |one, ()| convert::action_name(one.action).to_owned()),
        Column::text("delivery", |one, ()| convert::delivery_name(one.delivery).to_owned()),
        Column::record(),
    ];

    const EVENTS: Option<EventRule<PowerTransition>> =
        Some(|before, after, _, _| event::event(before, after).into_iter().collect());

    const OWNER: Actor = Actor::Service("power-controller");

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<PowerTransition> {
        row.record(pool)
    }
}

/// Table of the last power call of each host.
pub struct HostPowerTable;

impl Table for HostPowerTable {
    type Kind = HostPowerRecord;
    type Pool = ();

    const NAME: &'static str = "host_powers";

    const COLUMNS: &'static [Column<HostPowerRecord>] = &[Column::record()];

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<HostPowerRecord> {
        row.record(pool)
    }
}

#[cfg(test)]
mod tests;
