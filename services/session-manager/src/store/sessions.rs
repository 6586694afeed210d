//! Sessions and their saved status, one row each.

use std::sync::Arc;

use chassis::store::ledger::{Column, EventRule, StoredRow, Table, rows};
use domain::{boot::session::event, core::event::Actor};
use prost::Message;
use proto::{component::AssignSessionRequest, session as wire};
use sea_orm::{DatabaseTransaction, DbErr};

use super::left_out;
use crate::{convert, record::SessionRecord};

/// The table of sessions. The columns for tenant, name and progress are for people who inspect the database.
pub(crate) struct SessionTable;

impl Table for SessionTable {
    type Kind = SessionRecord;
    type Pool = ();

    const NAME: &'static str = "sessions";

    const KEY: &'static str = "key";

    const COLUMNS: &'static [Column<SessionRecord>] = &[
        Column::text("tenant", |record, ()| record.session.tenant.as_str().to_owned()),
        Column::text("name", |record, ()| record.session.name.clone()),
        Column::text("progress", |record, ()| record.session.progress.word().to_owned()),
        Column::bytes("record", |record, ()| stored(record).encode_to_vec()),
        Column::optional_bytes("saved_status", |record, ()| {
            record.saved_status.as_ref().map(Message::encode_to_vec)
        }),
        Column::later(Column::optional_bytes("intent", |record, ()| {
            record.intent.as_deref().map(Message::encode_to_vec)
        })),
    ];

    const EVENTS: Option<EventRule<SessionRecord>> = Some(|before, after, _, _| {
        let (before, after) = (before.map(|record| &record.session), after.map(|record| &record.session));
        let session = event::session(before, after);
        let events = event::events(before, after).into_iter();
        events.map(|event| event.content().within(session.clone())).collect()
    });

    const OWNER: Actor = Actor::Service("session-manager");

    fn read(row: &StoredRow, (): &mut ()) -> anyhow::Result<SessionRecord> {
        let stored: wire::Session = row.message("record")?;
        let last_event = stored.last_event;
        let session = convert::session::from_wire(stored)?;
        let saved_status = message::<wire::SessionStatus>(row, "saved_status")?;
        let intent = message::<AssignSessionRequest>(row, "intent")?.map(Arc::new);
        Ok(SessionRecord { intent, saved_status, last_event, ..SessionRecord::new(session) })
    }

    async fn save(transaction: &DatabaseTransaction, records: &[Arc<SessionRecord>]) -> Result<(), DbErr> {
        rows::save(transaction, rows::of::<Self>(records, &mut ())).await?;
        for record in records {
            left_out::save(transaction, record).await?;
        }
        Ok(())
    }

    async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        left_out::delete(transaction, keys).await?;
        rows::delete::<Self>(transaction, keys).await
    }
}

fn stored(record: &SessionRecord) -> wire::Session {
    wire::Session { last_event: record.last_event, ..convert::session::to_wire(&record.session) }
}

fn message<M: Message + Default>(row: &StoredRow, column: &str) -> anyhow::Result<Option<M>> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    Ok(bytes.as_deref().map(M::decode).transpose()?)
}
