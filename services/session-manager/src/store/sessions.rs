//! Sessions and their saved status, one row each.

use std::sync::Arc;

use chassis::store::{
    database::{self, Unreadable},
    ledger::{EventRule, Table},
    resource::Resource,
};
use domain::{
    boot::session::event::{self, SessionEvent},
    core::event::Actor,
};
use prost::Message;
use proto::{component::AssignSessionRequest, session as wire};
use sea_orm::{ActiveValue::Set, ConnectionTrait, DatabaseTransaction, DbErr, entity::prelude::*};

use super::left_out;
use crate::{convert, record::SessionRecord};

/// The table of sessions. The columns for tenant, name and progress are for people who inspect the database.
pub(crate) struct SessionTable;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "sessions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    pub revision: i64,
    pub tenant: String,
    pub name: String,
    pub progress: String,
    pub record: Vec<u8>,
    pub saved_status: Option<Vec<u8>>,
    pub intent: Option<Vec<u8>>,
}

impl ActiveModelBehavior for ActiveModel {}

impl Table for SessionTable {
    type Kind = SessionRecord;

    const EVENTS: Option<EventRule<SessionRecord>> = Some(|before, after, _, _| {
        let events = event::events(before.map(|record| &record.session), after.map(|record| &record.session));
        events.into_iter().map(SessionEvent::content).collect()
    });

    const OWNER: Actor = Actor::Service("session-manager");

    async fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> Result<Vec<Result<SessionRecord, Unreadable>>, DbErr> {
        let read = |row: Model| {
            read(&row).map_err(|error| database::unreadable(SessionRecord::KIND, &row.key, error))
        };
        database::rows::<Entity, _>(on, Column::Revision, after, read).await
    }

    async fn save(transaction: &DatabaseTransaction, records: &[Arc<SessionRecord>]) -> Result<(), DbErr> {
        let rows = records.iter().map(|record| ActiveModel {
            key: Set(record.key.to_string()),
            revision: Set(record.session.revision.cast_signed()),
            tenant: Set(record.session.tenant.as_str().to_owned()),
            name: Set(record.session.name.clone()),
            progress: Set(record.session.progress.word().to_owned()),
            record: Set(stored(record).encode_to_vec()),
            saved_status: Set(record.saved_status.as_ref().map(Message::encode_to_vec)),
            intent: Set(record.intent.as_deref().map(Message::encode_to_vec)),
        });
        database::upsert::<Entity, ActiveModel>(transaction, Column::Key, rows.collect()).await?;
        for record in records {
            left_out::save(transaction, record).await?;
        }
        Ok(())
    }

    async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        left_out::delete(transaction, keys).await?;
        database::delete::<Entity>(transaction, Column::Key, keys).await
    }
}

fn stored(record: &SessionRecord) -> wire::Session {
    wire::Session { last_event: record.last_event, ..convert::session::to_wire(&record.session) }
}

fn read(row: &Model) -> anyhow::Result<SessionRecord> {
    let stored = wire::Session::decode(row.record.as_slice())?;
    let last_event = stored.last_event;
    let session = convert::session::from_wire(stored)?;
    let saved_status = row.saved_status.as_deref().map(wire::SessionStatus::decode).transpose()?;
    let intent = row.intent.as_deref().map(AssignSessionRequest::decode).transpose()?.map(Arc::new);
    Ok(SessionRecord { intent, saved_status, last_event, ..SessionRecord::new(session) })
}
