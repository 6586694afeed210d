//! Nodes that sessions leave out, one row for each boot set and reason. The names of all sessions would not fit into
//! memory, so they are read on request.

use std::sync::Arc;

use chassis::{Fault, store::database};
use domain::boot::session::membership::{LeftOut, LeftOutReason};
use prost::Message;
use proto::template::StringList;
use sea_orm::{ActiveValue::Set, DatabaseConnection, DatabaseTransaction, DbErr, entity::prelude::*};
use tokio::sync::Semaphore;

use crate::record::SessionRecord;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "left_out")]
pub struct Model {
    /// Session id, boot set and reason.
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    /// Key of the session, for its deletion.
    pub session_key: String,
    /// Id of the session; an earlier session of the same name has another id.
    pub session_id: String,
    pub boot_set: String,
    pub reason: String,
    pub names: Vec<u8>,
}

impl ActiveModelBehavior for ActiveModel {}

/// Reader of left-out nodes. Clones share the connections.
#[derive(Clone)]
pub(crate) struct LeftOutMembers {
    database: DatabaseConnection,
    /// Permits one reader at a time: many concurrent readers would take every connection from the writers.
    turn: Arc<Semaphore>,
}

impl LeftOutMembers {
    pub(crate) fn new(database: DatabaseConnection) -> Self {
        Self { database, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Returns the nodes that the session of that id leaves out, by boot set and reason.
    ///
    /// # Errors
    /// The database does not answer, or a row cannot be read.
    pub(crate) async fn of(&self, session_id: &str) -> Result<Vec<LeftOut>, Fault> {
        let turn = self.turn.acquire().await;
        let rows = Entity::find().filter(Column::SessionId.eq(session_id)).all(&self.database).await;
        drop(turn);
        let rows = rows.map_err(|error| Fault::unavailable("database", error.to_string()))?;
        let mut all = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        all.sort_unstable_by(|one, other| (&one.boot_set, one.reason).cmp(&(&other.boot_set, other.reason)));
        Ok(all)
    }
}

fn read(row: Model) -> Result<LeftOut, Fault> {
    let unreadable = || Fault::Internal(format!("the row '{}' of those left out is unreadable", row.key));
    let names = StringList::decode(row.names.as_slice()).map_err(|_| unreadable())?.values;
    let reason = LeftOutReason::read(&row.reason).ok_or_else(unreadable)?;
    Ok(LeftOut { boot_set: row.boot_set, reason, names })
}

/// Replaces the left-out nodes of the session, if `record` has new ones.
pub(super) async fn save(transaction: &DatabaseTransaction, record: &SessionRecord) -> Result<(), DbErr> {
    let Some(left_out) = &record.left_out else { return Ok(()) };
    let id = &record.session.id;
    database::delete::<Entity>(transaction, Column::SessionId, &[id.as_str().into()]).await?;
    let rows = left_out.iter().map(|one| ActiveModel {
        key: Set(format!("{id}\n{}\n{}", one.boot_set, one.reason.word())),
        session_key: Set(record.key.to_string()),
        session_id: Set(id.clone()),
        boot_set: Set(one.boot_set.clone()),
        reason: Set(one.reason.word().to_owned()),
        names: Set(StringList { values: one.names.clone() }.encode_to_vec()),
    });
    database::upsert::<Entity, ActiveModel>(transaction, Column::Key, rows.collect()).await
}

/// Deletes the left-out nodes of the sessions with these keys.
pub(super) async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
    database::delete::<Entity>(transaction, Column::SessionKey, keys).await
}
