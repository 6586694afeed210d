//! Fleets.

use chassis::{
    kinds::{Interner, fleet::FleetRecord},
    store::ledger::{Column, EventRule, StoredRow, Table},
};
use domain::{core::event::Actor, device::fleet::event::event};

/// Table of fleets.
pub(crate) struct FleetTable;

impl Table for FleetTable {
    type Kind = FleetRecord;
    type Pool = Interner;
    const NAME: &'static str = "fleets";
    const COLUMNS: &'static [Column<FleetRecord, Interner>] = &[Column::record()];
    const EVENTS: Option<EventRule<FleetRecord>> = Some(|before, after, _, _| {
        let event = event(before.map(|record| &record.fleet), after.map(|record| &record.fleet));
        event.into_iter().collect()
    });
    const OWNER: Actor = Actor::Service("fleet-manager");

    fn read(row: &StoredRow, texts: &mut Interner) -> anyhow::Result<FleetRecord> {
        row.record(texts)
    }
}
