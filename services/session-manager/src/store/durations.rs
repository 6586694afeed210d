//! Durations that were learned from sessions.

use chassis::store::ledger::{Column, StoredRow, Table};
use domain::core::event::Actor;

use crate::record::DurationRecord;

/// The table of durations, one row for each operation and template. The column for the operation is for people who inspect
/// the database.
pub(crate) struct DurationTable;

impl Table for DurationTable {
    type Kind = DurationRecord;
    type Pool = ();

    const NAME: &'static str = "session_durations";

    const KEY: &'static str = "key";

    const COLUMNS: &'static [Column<DurationRecord>] = &[
        Column::text("operation", |record, ()| record.learned.operation.word().to_owned()),
        Column::record(),
    ];

    const OWNER: Actor = Actor::Service("session-manager");

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<DurationRecord> {
        row.record(pool)
    }
}
