//! Devices, and the times at which their agents were last seen.

use std::time::Duration;

use chassis::{
    kinds::{
        Interner,
        device::{DeviceRecord, evidence, sight::SightRecord},
    },
    process::clock,
    store::ledger::{Column, EventRule, StoredRow, Table},
};
use domain::{
    core::{event::Actor, time::Timestamp},
    device::{
        evaluation::evaluate,
        event::{DeviceEvent, events},
        restore::mark_restored,
    },
};

/// Author of writes that name none.
const OWNER: Actor = Actor::Service("component-registry");

/// The table of devices.
pub struct DeviceTable;

impl Table for DeviceTable {
    type Kind = DeviceRecord;
    type Pool = Interner;
    const NAME: &'static str = "devices";
    const COLUMNS: &'static [Column<DeviceRecord, Interner>] = &[Column::record()];
    const EVENTS: Option<EventRule<DeviceRecord>> = Some(|before, after, _, _| {
        let events = events(before.map(|record| &record.device), after.map(|record| &record.device));
        events.iter().map(DeviceEvent::content).collect()
    });
    const OWNER: Actor = OWNER;

    fn read(row: &StoredRow, texts: &mut Interner) -> anyhow::Result<DeviceRecord> {
        row.record(texts)
    }

    /// A device may run a newer spec than the database knows by now, so it awaits its agent (device reference 2.7).
    fn after_loss(record: &DeviceRecord, _revision: u64) -> Option<DeviceRecord> {
        let mut marked = mark_restored(&record.device)?;
        // The mark alone decides: the agent was not seen since.
        let evidence = evidence(&marked, None, Duration::ZERO, clock::now());
        marked.status = evaluate(&marked, &evidence).status;
        Some(record.changed(marked, &mut Interner::default()))
    }
}

/// The table of the times at which agents were last seen.
pub struct SightTable;

/// Column of the time, in milliseconds.
const SEEN_AT: &str = "seen_at";

impl Table for SightTable {
    type Kind = SightRecord;
    type Pool = ();
    const NAME: &'static str = "device_sights";
    const COLUMNS: &'static [Column<SightRecord>] = &[Column::number(SEEN_AT, |sight, ()| sight.seen_at.0)];
    const OWNER: Actor = OWNER;

    fn read(row: &StoredRow, (): &mut ()) -> anyhow::Result<SightRecord> {
        let seen_at = Timestamp(row.get(SEEN_AT)?);
        Ok(SightRecord { name: row.key().into(), seen_at, revision: row.revision() })
    }
}
