//! How records go to the database and come back. Nothing else here knows SQL.

use std::{fmt::Display, sync::Arc};

use chassis::{database::upsert, ledger::Stored, resource::Resource};
use prost::Message;
use sea_orm::{ActiveValue::Set, DatabaseConnection, DatabaseTransaction, DbErr, entity::prelude::*};
use sea_orm_migration::{
    prelude::{DeriveMigrationName, MigrationTrait, MigratorTrait, SchemaManager, async_trait},
    schema::{big_integer, binary, binary_null, text},
    sea_query::Table,
};

use crate::{
    convert,
    record::{SessionRecord, TemplateRecord},
};

/// Keys in one statement of a deletion.
const KEYS: usize = 500;

#[expect(unreachable_pub, reason = "the derived code is public")]
mod session {
    use sea_orm::entity::prelude::*;

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
    }

    impl ActiveModelBehavior for ActiveModel {}
}

#[expect(unreachable_pub, reason = "the derived code is public")]
mod template {
    use sea_orm::entity::prelude::*;

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
}

/// The tables of this service, from the first release on.
pub(crate) struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(chassis::ledger::Migration), Box::new(FirstTables)]
    }
}

#[derive(DeriveMigrationName)]
struct FirstTables;

#[async_trait::async_trait]
impl MigrationTrait for FirstTables {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sessions = Table::create()
            .table("sessions")
            .col(text("key").primary_key())
            .col(big_integer("revision"))
            .col(text("tenant"))
            .col(text("name"))
            .col(text("progress"))
            .col(binary("record"))
            .col(binary_null("saved_status"))
            .to_owned();
        let templates = Table::create()
            .table("session_templates")
            .col(text("key").primary_key())
            .col(big_integer("revision"))
            .col(text("tenant"))
            .col(text("name"))
            .col(binary("record"))
            .to_owned();
        manager.create_table(sessions).await?;
        manager.create_table(templates).await
    }
}

impl Stored for SessionRecord {
    fn set_revision(&mut self, revision: u64) {
        self.session.revision = revision;
    }

    async fn load(database: &DatabaseConnection) -> Result<Vec<Self>, DbErr> {
        let rows = session::Entity::find().all(database).await?;
        Ok(rows.into_iter().filter_map(|row| readable::<Self, _>(&row.key.clone(), row.try_into())).collect())
    }

    async fn save(transaction: &DatabaseTransaction, records: &[Arc<Self>]) -> Result<(), DbErr> {
        let rows = records.iter().map(|record| session::ActiveModel {
            key: Set(record.key.to_string()),
            revision: Set(signed(record.session.revision)),
            tenant: Set(record.session.tenant.as_str().to_owned()),
            name: Set(record.session.name.clone()),
            progress: Set(record.session.progress.word().to_owned()),
            record: Set(convert::session::to_wire(&record.session).encode_to_vec()),
            saved_status: Set(record.saved_status.as_ref().map(Message::encode_to_vec)),
        });
        upsert::<session::Entity, _>(transaction, session::Column::Key, rows.collect()).await
    }

    async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        for keys in keys.chunks(KEYS) {
            let these = session::Column::Key.is_in(keys.iter().map(|key| &**key));
            session::Entity::delete_many().filter(these).exec(transaction).await?;
        }
        Ok(())
    }
}

impl TryFrom<session::Model> for SessionRecord {
    type Error = anyhow::Error;

    fn try_from(row: session::Model) -> anyhow::Result<Self> {
        let session = convert::session::from_wire(Message::decode(row.record.as_slice())?)?;
        let saved_status = row.saved_status.map(|status| Message::decode(status.as_slice())).transpose()?;
        Ok(Self { saved_status, ..Self::new(session) })
    }
}

impl Stored for TemplateRecord {
    fn set_revision(&mut self, revision: u64) {
        self.template.revision = revision;
    }

    async fn load(database: &DatabaseConnection) -> Result<Vec<Self>, DbErr> {
        let rows = template::Entity::find().all(database).await?;
        Ok(rows.into_iter().filter_map(|row| readable::<Self, _>(&row.key.clone(), row.try_into())).collect())
    }

    async fn save(transaction: &DatabaseTransaction, records: &[Arc<Self>]) -> Result<(), DbErr> {
        let rows = records.iter().map(|record| template::ActiveModel {
            key: Set(record.key.to_string()),
            revision: Set(signed(record.template.revision)),
            tenant: Set(record.template.tenant.as_str().to_owned()),
            name: Set(record.template.name.clone()),
            record: Set(convert::template::to_wire(&record.template).encode_to_vec()),
        });
        upsert::<template::Entity, _>(transaction, template::Column::Key, rows.collect()).await
    }

    async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        for keys in keys.chunks(KEYS) {
            let these = template::Column::Key.is_in(keys.iter().map(|key| &**key));
            template::Entity::delete_many().filter(these).exec(transaction).await?;
        }
        Ok(())
    }
}

impl TryFrom<template::Model> for TemplateRecord {
    type Error = anyhow::Error;

    fn try_from(row: template::Model) -> anyhow::Result<Self> {
        Ok(Self::new(convert::template::from_wire(Message::decode(row.record.as_slice())?)?))
    }
}

/// The record, unless its row cannot be read: that one is left aside for a person to look at, because the
/// sessions of everybody else must go on.
fn readable<R: Resource, E: Display>(key: &str, record: Result<R, E>) -> Option<R> {
    record
        .inspect_err(|error| tracing::error!(kind = R::KIND, key, %error, "a stored row cannot be read"))
        .ok()
}

fn signed(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}
