//! The options, a single record.

use chassis::{
    kinds::options::{self as convert, OptionsRecord},
    store::{
        ledger::{Column, EventRule, StoredRow, Table},
        resource::WireForm,
    },
};
use domain::{boot::bos::option_event, core::event::Actor};
use proto::{Message, option as wire};

/// The table of the options record.
pub struct StoredOptions;

impl Table for StoredOptions {
    type Kind = OptionsRecord;
    type Pool = ();

    const NAME: &'static str = "options";

    const KEY: &'static str = "key";

    const COLUMNS: &'static [Column<OptionsRecord>] =
        &[Column::bytes("record", |record, ()| convert::to_wire(record.options.clone()).encode_to_vec())];

    const EVENTS: Option<EventRule<OptionsRecord>> = Some(|before, after, _, _| {
        let event =
            option_event::event(before.map(|record| &record.options), after.map(|record| &record.options));
        event.into_iter().collect()
    });

    const OWNER: Actor = Actor::Service("component-registry");

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<OptionsRecord> {
        let options = Some(row.message("record")?);
        Ok(OptionsRecord::from_wire(wire::OptionsRecord { options, revision: row.revision() }, pool)?)
    }
}
