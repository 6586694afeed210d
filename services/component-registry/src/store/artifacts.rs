//! Boot artifact sets, stored once however many components share them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use chassis::convert::Digests;
use domain::artifacts::BootArtifacts;
use sea_orm::{
    ActiveValue::Set,
    Condition, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, QuerySelect,
    TransactionTrait,
    entity::prelude::*,
    sea_query::{LockBehavior, LockType, OnConflict, Query},
};

use super::{components, tokens};

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

/// Loads every stored set by its digest, with shared texts.
pub(super) async fn load(on: &impl ConnectionTrait) -> Result<HashMap<String, BootArtifacts>, DbErr> {
    let sets = Entity::find().all(on).await?.into_iter().map(|set| {
        let artifacts = BootArtifacts {
            kernel: set.kernel.map(Arc::from),
            kernel_parameters: set.kernel_parameters.map(Arc::from),
            initrd: set.initrd.map(Arc::from),
            timestamp: None,
        };
        (set.digest, artifacts)
    });
    Ok(sets.collect())
}

/// Artifact sets of one transaction.
#[derive(Default)]
pub(super) struct ArtifactSets {
    digests: Digests,
    rows: HashMap<Arc<str>, ActiveModel>,
}

impl ArtifactSets {
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

/// Most sets that are deleted at once.
const BATCH: u64 = 1_000;

/// Deletes unreferenced sets and returns their number. Sets that another transaction is about to refer to are
/// skipped.
pub(crate) async fn delete_unused(database: &DatabaseConnection) -> Result<u64, DbErr> {
    let transaction = database.begin().await?;
    let unused = Entity::find().filter(is_unused()).limit(BATCH);
    // A transaction that is about to refer to a set has locked it. A set that is locked here is deleted before
    // another transaction can refer to it, and is then stored again.
    let unused = unused.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
    let digests: Vec<_> = unused.all(&transaction).await?.into_iter().map(|set| set.digest).collect();
    if digests.is_empty() {
        return Ok(0);
    }
    // The condition is checked again, because a set may have been referred to between the query and the lock.
    let delete = Entity::delete_many().filter(Column::Digest.is_in(digests)).filter(is_unused());
    let deleted = delete.exec(&transaction).await?.rows_affected;
    transaction.commit().await?;
    Ok(deleted)
}

fn is_unused() -> Condition {
    let of_components = [
        components::Column::ActualArtifacts,
        components::Column::DesiredArtifacts,
        components::Column::StagedArtifacts,
    ];
    let mut unused = Condition::all();
    for column in of_components {
        let mut used = Query::select();
        used.column(column).from(components::Entity).and_where(column.is_not_null());
        unused = unused.add(Column::Digest.not_in_subquery(used));
    }
    let tokens = Query::select().column(tokens::Column::Artifacts).from(tokens::Entity).to_owned();
    unused.add(Column::Digest.not_in_subquery(tokens))
}
