//! The last reading of each node.

use std::sync::Arc;

use chassis::store::{
    database::{self, Unreadable},
    ledger::Table,
    resource::Resource,
};
use prost::Message;
use proto::power::PowerState;
use sea_orm::{ActiveValue::Set, ConnectionTrait, DatabaseTransaction, DbErr, entity::prelude::*};

/// Table of power states. The columns beside `record` are for people who read the database.
pub struct PowerStates;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "power_states")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub revision: i64,
    pub generation: i64,
    pub reading: String,
    pub record: Vec<u8>,
}

impl ActiveModelBehavior for ActiveModel {}

impl Table for PowerStates {
    type Kind = PowerState;

    async fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> Result<Vec<Result<PowerState, Unreadable>>, DbErr> {
        let read = |row: Model| {
            PowerState::decode(row.record.as_slice())
                .map_err(|error| database::unreadable(PowerState::KIND, &row.id, error))
        };
        database::rows::<Entity, _>(on, Column::Revision, after, read).await
    }

    async fn save(transaction: &DatabaseTransaction, states: &[Arc<PowerState>]) -> Result<(), DbErr> {
        let rows = states.iter().map(|state| ActiveModel {
            id: Set(state.id.clone()),
            revision: Set(state.revision.cast_signed()),
            generation: Set(state.generation.cast_signed()),
            reading: Set(state.reading().as_str_name().to_owned()),
            record: Set(state.encode_to_vec()),
        });
        database::upsert::<Entity, ActiveModel>(transaction, Column::Id, rows.collect()).await
    }

    async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        database::delete::<Entity>(transaction, Column::Id, keys).await
    }
}
