//! Session templates.

use std::sync::Arc;

use chassis::store::{
    database::{self, Unreadable},
    ledger::Table,
    resource::Resource,
};
use prost::Message;
use proto::template as wire;
use sea_orm::{ActiveValue::Set, ConnectionTrait, DatabaseTransaction, DbErr, entity::prelude::*};

use crate::{convert, record::TemplateRecord};

/// The table of session templates. The columns for tenant and name are for people who inspect the database.
pub(crate) struct TemplateTable;

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "session_templates")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    pub revision: i64,
    pub tenant: String,
    pub name: String,
    pub record: Vec<u8>,
}

impl ActiveModelBehavior for ActiveModel {}

impl Table for TemplateTable {
    type Kind = TemplateRecord;

    async fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> Result<Vec<Result<TemplateRecord, Unreadable>>, DbErr> {
        let read = |row: Model| {
            read(&row).map_err(|error| database::unreadable(TemplateRecord::KIND, &row.key, error))
        };
        database::rows::<Entity, _>(on, Column::Revision, after, read).await
    }

    async fn save(transaction: &DatabaseTransaction, records: &[Arc<TemplateRecord>]) -> Result<(), DbErr> {
        let rows = records.iter().map(|record| ActiveModel {
            key: Set(record.key.to_string()),
            revision: Set(record.template.revision.cast_signed()),
            tenant: Set(record.template.tenant.as_str().to_owned()),
            name: Set(record.template.name.clone()),
            record: Set(convert::template::to_wire(&record.template).encode_to_vec()),
        });
        database::upsert::<Entity, ActiveModel>(transaction, Column::Key, rows.collect()).await
    }

    async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        database::delete::<Entity>(transaction, Column::Key, keys).await
    }
}

fn read(row: &Model) -> anyhow::Result<TemplateRecord> {
    let template = convert::template::from_wire(wire::SessionTemplate::decode(row.record.as_slice())?)?;
    Ok(TemplateRecord::new(template))
}
