//! The requests to the power upstream.

use std::sync::Arc;

use chassis::store::{
    database::{self, Unreadable},
    ledger::Table,
    resource::Resource,
};
use prost::Message;
use proto::power::Transition;
use sea_orm::{ActiveValue::Set, ConnectionTrait, DatabaseTransaction, DbErr, entity::prelude::*};

/// Table of transitions. The columns beside `record` are for people who read the database.
pub struct Transitions;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "transitions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub revision: i64,
    pub action: String,
    pub delivery: String,
    pub record: Vec<u8>,
}

impl ActiveModelBehavior for ActiveModel {}

impl Table for Transitions {
    type Kind = Transition;

    async fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> Result<Vec<Result<Transition, Unreadable>>, DbErr> {
        let read = |row: Model| {
            let mut transition = Transition::decode(row.record.as_slice())
                .map_err(|error| database::unreadable(Transition::KIND, &row.id, error))?;
            // Decoding adds members one by one, which leaves room for as many more.
            transition.members.shrink_to_fit();
            Ok(transition)
        };
        database::rows::<Entity, _>(on, Column::Revision, after, read).await
    }

    async fn save(transaction: &DatabaseTransaction, transitions: &[Arc<Transition>]) -> Result<(), DbErr> {
        let rows = transitions.iter().map(|transition| ActiveModel {
            id: Set(transition.id.clone()),
            revision: Set(transition.revision.cast_signed()),
            action: Set(transition.action().as_str_name().to_owned()),
            delivery: Set(transition.delivery().as_str_name().to_owned()),
            record: Set(transition.encode_to_vec()),
        });
        database::upsert::<Entity, ActiveModel>(transaction, Column::Id, rows.collect()).await
    }

    async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        database::delete::<Entity>(transaction, Column::Id, keys).await
    }
}
