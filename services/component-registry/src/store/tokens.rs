//! Tokens of the boot script server, with their boot artifacts.

use std::sync::Arc;

use chassis::store::{
    database::UnreadableRow,
    ledger::{Column, StoredRow, Table, rows},
    resource::Resource,
};
use domain::{boot::component::artifacts::BootArtifacts, core::time::Timestamp};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr};

use super::artifacts::ArtifactSets;

/// Column of the digest of the artifacts.
pub(super) const ARTIFACTS: &str = "artifacts";

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

impl Table for BootTokens {
    type Kind = BootToken;
    type Pool = ArtifactSets;

    const NAME: &'static str = "boot_tokens";

    const KEY: &'static str = "token";

    const COLUMNS: &'static [Column<BootToken, ArtifactSets>] = &[
        Column::text(ARTIFACTS, |token, sets| sets.digest(&token.boot_artifacts)),
        Column::number("stored_at", |token, _| token.boot_artifacts.timestamp.unwrap_or_default().0),
    ];

    fn read(row: &StoredRow, sets: &mut ArtifactSets) -> anyhow::Result<BootToken> {
        let timestamp = Some(Timestamp(row.get("stored_at")?));
        let set = sets.stored(&row.get::<String>(ARTIFACTS)?)?;
        Ok(BootToken {
            token: row.key().to_owned(),
            boot_artifacts: Arc::new(BootArtifacts { timestamp, ..set.clone() }),
            revision: row.revision(),
        })
    }

    async fn load(
        on: &impl ConnectionTrait,
        after: Option<u64>,
    ) -> Result<Vec<Result<BootToken, UnreadableRow>>, DbErr> {
        rows::load::<Self>(on, after, ArtifactSets::load(on).await?).await
    }

    async fn save(transaction: &DatabaseTransaction, tokens: &[Arc<BootToken>]) -> Result<(), DbErr> {
        let mut sets = ArtifactSets::default();
        let rows = rows::of::<Self>(tokens, &mut sets);
        sets.save(transaction).await?;
        rows::save(transaction, rows).await
    }
}
