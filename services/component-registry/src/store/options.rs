//! The options, a single record.

use std::{fmt::Display, sync::Arc};

use chassis::{
    kinds::options::{self as convert, OptionsRecord},
    store::{
        database::{self, Unreadable},
        ledger::Table,
        resource::Resource,
    },
};
use domain::boot::bos::options::Options;
use prost::Message;
use proto::option as wire;
use sea_orm::{ActiveValue::Set, ConnectionTrait, DatabaseTransaction, DbErr, entity::prelude::*};

/// The table of the options record.
pub struct StoredOptions;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "options")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    pub revision: i64,
    pub record: Vec<u8>,
}

impl ActiveModelBehavior for ActiveModel {}

impl Table for StoredOptions {
    type Kind = OptionsRecord;

    async fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> Result<Vec<Result<OptionsRecord, Unreadable>>, DbErr> {
        let read = |row: Model| {
            let unreadable = |why: &dyn Display| database::unreadable(OptionsRecord::KIND, &row.key, why);
            let stored = wire::Options::decode(row.record.as_slice()).map_err(|error| unreadable(&error))?;
            // An option that is newer than the record takes its default.
            let options = Options::default()
                .apply(convert::patch_from_wire(stored))
                .map_err(|error| unreadable(&error))?;
            Ok(OptionsRecord { options, revision: row.revision.cast_unsigned() })
        };
        database::rows::<Entity, _>(on, Column::Revision, after, read).await
    }

    async fn save(transaction: &DatabaseTransaction, records: &[Arc<OptionsRecord>]) -> Result<(), DbErr> {
        let rows = records.iter().map(|record| ActiveModel {
            key: Set(OptionsRecord::KEY.to_owned()),
            revision: Set(record.revision.cast_signed()),
            record: Set(convert::to_wire(record.options.clone()).encode_to_vec()),
        });
        database::upsert::<Entity, ActiveModel>(transaction, Column::Key, rows.collect()).await
    }

    async fn delete(_: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        if keys.is_empty() {
            return Ok(());
        }
        Err(DbErr::Custom("the options cannot be deleted".to_owned()))
    }
}
