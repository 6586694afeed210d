//! Versions of the templates of fleets.

use chassis::{
    kinds::{Interner, fleet::version::TemplateVersionRecord},
    store::ledger::{Column, StoredRow, Table},
};

/// Table of template versions.
pub(crate) struct TemplateVersionTable;

impl Table for TemplateVersionTable {
    type Kind = TemplateVersionRecord;
    type Pool = Interner;
    const NAME: &'static str = "template_versions";
    const COLUMNS: &'static [Column<TemplateVersionRecord, Interner>] = &[Column::record()];

    fn read(row: &StoredRow, texts: &mut Interner) -> anyhow::Result<TemplateVersionRecord> {
        row.record(texts)
    }
}
