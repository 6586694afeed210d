//! Tokens of the boot script server, with their boot artifacts.

use std::sync::Arc;

use chassis::store::{
    database::{self, Unreadable},
    ledger::Table,
    resource::Resource,
};
use domain::{boot::component::artifacts::BootArtifacts, core::time::Timestamp};
use sea_orm::{ActiveValue::Set, ConnectionTrait, DatabaseTransaction, DbErr, entity::prelude::*};

use super::artifacts::{self, ArtifactSets};

/// The table of tokens.
pub struct BootTokens;

/// A token and its boot artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootToken {
    /// Token as nodes report it.
    pub token: String,
    /// Artifacts that were sent to the boot script server; their time stamp is the time of that call.
    pub boot_artifacts: Arc<BootArtifacts>,
    /// Revision of the last change.
    pub revision: u64,
}

impl Resource for BootToken {
    const KIND: &'static str = "boot_token";

    fn key(&self) -> &str {
        &self.token
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }
}

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "boot_tokens")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub token: String,
    pub revision: i64,
    pub artifacts: String,
    pub stored_at: i64,
}

impl ActiveModelBehavior for ActiveModel {}

impl Table for BootTokens {
    type Kind = BootToken;

    async fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> Result<Vec<Result<BootToken, Unreadable>>, DbErr> {
        let sets = artifacts::load(on).await?;
        let read = |row: Model| {
            let Some(set) = sets.get(&row.artifacts) else {
                let reason = "its boot artifacts are missing";
                return Err(database::unreadable(BootToken::KIND, &row.token, reason));
            };
            let stored_at = Some(Timestamp(row.stored_at));
            let boot_artifacts = Arc::new(BootArtifacts { timestamp: stored_at, ..set.clone() });
            Ok(BootToken { token: row.token, boot_artifacts, revision: row.revision.cast_unsigned() })
        };
        database::rows::<Entity, _>(on, Column::Revision, after, read).await
    }

    async fn save(transaction: &DatabaseTransaction, tokens: &[Arc<BootToken>]) -> Result<(), DbErr> {
        let mut sets = ArtifactSets::default();
        let rows = tokens.iter().map(|token| ActiveModel {
            token: Set(token.token.clone()),
            revision: Set(token.revision.cast_signed()),
            artifacts: Set(sets.digest(&token.boot_artifacts)),
            stored_at: Set(token.boot_artifacts.timestamp.unwrap_or_default().0),
        });
        let rows = rows.collect();
        sets.save(transaction).await?;
        database::upsert::<Entity, ActiveModel>(transaction, Column::Token, rows).await
    }

    async fn delete(transaction: &DatabaseTransaction, keys: &[Arc<str>]) -> Result<(), DbErr> {
        database::delete::<Entity>(transaction, Column::Token, keys).await
    }
}
