//! The options, a single record.

use chassis::{
    kinds::options::{self as convert, OptionsRecord},
    store::{
        ledger::{Column, StoredRow, Table},
        resource::WireForm,
    },
};
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

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<OptionsRecord> {
        let options = Some(row.message("record")?);
        Ok(OptionsRecord::from_wire(wire::OptionsRecord { options, revision: row.revision() }, pool)?)
    }
}
