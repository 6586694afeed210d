//! The last state of each node at the configuration upstream.

use std::sync::Arc;

use chassis::store::{
    database::{self, Unreadable},
    ledger::Table,
    resource::Resource,
};
use prost::Message;
use proto::configuration::ConfigurationState;
use sea_orm::{ActiveValue::Set, ConnectionTrait, DatabaseTransaction, DbErr, entity::prelude::*};

/// Table of configuration states. The columns beside `record` are for people who read the database.
pub(crate) struct ConfigurationStates;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "configuration_states")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub revision: i64,
    pub generation: i64,
    pub reading: String,
    pub status: String,
    pub record: Vec<u8>,
}

impl ActiveModelBehavior for ActiveModel {}

impl Table for ConfigurationStates {
    type Kind = ConfigurationState;

    async fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> Result<Vec<Result<ConfigurationState, Unreadable>>, DbErr> {
        let read = |row: Model| {
            ConfigurationState::decode(row.record.as_slice())
                .map_err(|error| database::unreadable(ConfigurationState::KIND, &row.id, error))
        };
        database::rows::<Entity, _>(on, Column::Revision, after, read).await
    }

    async fn save(
        transaction: &DatabaseTransaction,
        states: &[Arc<ConfigurationState>],
    ) -> Result<(), DbErr> {
        let rows = states.iter().map(|state| ActiveModel {
            id: Set(state.id.clone()),
            revision: Set(state.revision.cast_signed()),
            generation: Set(state.generation.cast_signed()),
            reading: Set(state.reading().as_str_name().to_owned()),
            status: Set(state.status.clone()),
            record: Set(state.encode_to_vec()),
        });
        database::upsert::<Entity, ActiveModel>(transaction, Column::Id, rows.collect()).await
    }

    async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        database::delete::<Entity>(transaction, Column::Id, keys).await
    }
}
