//! Boot artifact sets, stored once however many components share them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use anyhow::Context;
use chassis::kinds::{Digests, Interner};
use domain::boot::component::artifacts::BootArtifacts;
use sea_orm::{
    ActiveValue::Set, ConnectionTrait, DatabaseTransaction, DbErr, QuerySelect, entity::prelude::*,
    sea_query::OnConflict,
};

#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "boot_artifacts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub digest: String,
    pub kernel: Option<String>,
    pub kernel_parameters: Option<String>,
    pub initrd: Option<String>,
}

impl ActiveModelBehavior for ActiveModel {}

/// Artifact sets that the rows of one load or one save share.
#[derive(Default)]
pub struct ArtifactSets {
    /// Stored sets by their digest, with shared texts.
    stored: HashMap<String, BootArtifacts>,
    /// Texts and records that loaded components share.
    pub(super) interner: Interner,
    digests: Digests,
    /// Sets of the rows to save.
    rows: HashMap<Arc<str>, ActiveModel>,
}

impl ArtifactSets {
    /// Loads every stored set.
    pub(super) async fn load(on: &impl ConnectionTrait) -> Result<Self, DbErr> {
        let sets = Entity::find().all(on).await?.into_iter().map(|set| {
            let artifacts = BootArtifacts {
                kernel: set.kernel.map(Arc::from),
                kernel_parameters: set.kernel_parameters.map(Arc::from),
                initrd: set.initrd.map(Arc::from),
                timestamp: None,
            };
            (set.digest, artifacts)
        });
        Ok(Self { stored: sets.collect(), ..Self::default() })
    }

    /// Returns the stored set of that digest.
    pub(super) fn stored(&self, digest: &str) -> anyhow::Result<&BootArtifacts> {
        self.stored.get(digest).context("its boot artifacts are missing")
    }

    /// Returns the digest of `artifacts`, and adds their set to the sets to store.
    pub(super) fn digest(&mut self, artifacts: &BootArtifacts) -> String {
        let digest = self.digests.of(artifacts);
        let text = |text: &Option<Arc<str>>| Set(text.as_deref().map(str::to_owned));
        self.rows.entry(Arc::clone(&digest)).or_insert_with(|| ActiveModel {
            digest: Set(digest.to_string()),
            kernel: text(&artifacts.kernel),
            kernel_parameters: text(&artifacts.kernel_parameters),
            initrd: text(&artifacts.initrd),
        });
        digest.to_string()
    }

    /// Returns the digest of the artifacts of a state, if it has some, and adds their set to the sets to store.
    pub(super) fn digest_of(&mut self, artifacts: Option<&Option<Arc<BootArtifacts>>>) -> Option<String> {
        artifacts?.as_deref().map(|artifacts| self.digest(artifacts))
    }

    /// Stores the new sets.
    pub(super) async fn save(self, transaction: &DatabaseTransaction) -> Result<(), DbErr> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let present = self.present(transaction).await?;
        let rows: Vec<_> = self.rows.into_iter().filter(|(digest, _)| !present.contains(&**digest)).collect();
        for chunk in rows.chunks(500) {
            let rows = chunk.iter().map(|(_, row)| row.clone());
            let keep = OnConflict::column(Column::Digest).do_nothing().to_owned();
            Entity::insert_many(rows).on_conflict(keep).exec_without_returning(transaction).await?;
        }
        Ok(())
    }

    async fn present(&self, transaction: &DatabaseTransaction) -> Result<HashSet<String>, DbErr> {
        let mut present = HashSet::new();
        let digests: Vec<&str> = self.rows.keys().map(|digest| &**digest).collect();
        for chunk in digests.chunks(1000) {
            // The lock keeps the sets from deletion until the rows that refer to them are committed.
            let used = Entity::find().filter(Column::Digest.is_in(chunk.iter().copied()));
            let found = used.lock_shared().all(transaction).await?;
            present.extend(found.into_iter().map(|row| row.digest));
        }
        Ok(present)
    }
}
