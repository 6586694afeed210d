//! Session templates.

use chassis::store::ledger::{Column, EventRule, StoredRow, Table};
use domain::{boot::template::event, core::event::Actor};

use crate::record::TemplateRecord;

/// The table of session templates. The columns for tenant and name are for people who inspect the database.
pub(crate) struct TemplateTable;

impl Table for TemplateTable {
    type Kind = TemplateRecord;
    type Pool = ();

    const NAME: &'static str = "session_templates";

    const KEY: &'static str = "key";

    const COLUMNS: &'static [Column<TemplateRecord>] = &[
        Column::text("tenant", |record, ()| record.template.tenant.as_str().to_owned()),
        Column::text("name", |record, ()| record.template.name.clone()),
        Column::record(),
    ];

    const EVENTS: Option<EventRule<TemplateRecord>> = Some(|before, after, _, _| {
        let event = event::event(before.map(|record| &record.template), after.map(|record| &record.template));
        event.into_iter().collect()
    });

    const OWNER: Actor = Actor::Service("session-manager");

    fn read(row: &StoredRow, pool: &mut ()) -> anyhow::Result<TemplateRecord> {
        row.record(pool)
    }
}
