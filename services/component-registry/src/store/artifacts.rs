//! Boot artifact sets, stored once however many components share them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use domain::artifacts::BootArtifacts;
use sea_orm::{
    ActiveValue::Set, DatabaseConnection, DatabaseTransaction, DbErr, entity::prelude::*,
    sea_query::OnConflict,
};
use sha2::{Digest, Sha256};

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

/// Every stored set by its digest, sharing texts.
pub(super) async fn load(database: &DatabaseConnection) -> Result<HashMap<String, BootArtifacts>, DbErr> {
    let share = |text: Option<String>| text.map(Arc::from);
    let sets = Entity::find().all(database).await?.into_iter().map(|set| {
        let artifacts = BootArtifacts {
            kernel: share(set.kernel),
            kernel_parameters: share(set.kernel_parameters),
            initrd: share(set.initrd),
            timestamp: None,
        };
        (set.digest, artifacts)
    });
    Ok(sets.collect())
}

/// Digests of the sets that one transaction refers to, and the sets to store.
#[derive(Default)]
pub(super) struct Sets {
    /// By the addresses of the texts: components that share an image share them, and hashing kilobytes for
    /// every component would cost more than the rest of the write.
    known: HashMap<[Option<usize>; 3], String>,
    rows: HashMap<String, ActiveModel>,
}

impl Sets {
    /// Digest of `artifacts`, whose set will be stored. The texts must outlive this value.
    pub(super) fn digest(&mut self, artifacts: &BootArtifacts) -> String {
        let texts = [&artifacts.kernel, &artifacts.kernel_parameters, &artifacts.initrd];
        let addresses = texts.map(|text| text.as_ref().map(|text| Arc::as_ptr(text).cast::<u8>().addr()));
        if let Some(digest) = self.known.get(&addresses) {
            return digest.clone();
        }
        let digest = digest(texts.map(Option::as_deref));
        self.known.insert(addresses, digest.clone());
        let [kernel, kernel_parameters, initrd] = texts.map(|text| Set(text.as_deref().map(str::to_owned)));
        let row = ActiveModel { digest: Set(digest.clone()), kernel, kernel_parameters, initrd };
        self.rows.insert(digest.clone(), row);
        digest
    }

    /// Stores the sets that are new.
    pub(super) async fn save(self, transaction: &DatabaseTransaction) -> Result<(), DbErr> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let present = self.present(transaction).await?;
        let rows: Vec<_> = self.rows.into_iter().filter(|(digest, _)| !present.contains(digest)).collect();
        for chunk in rows.chunks(500) {
            let rows = chunk.iter().map(|(_, row)| row.clone());
            let keep = OnConflict::column(Column::Digest).do_nothing().to_owned();
            Entity::insert_many(rows).on_conflict(keep).exec_without_returning(transaction).await?;
        }
        Ok(())
    }

    async fn present(&self, transaction: &DatabaseTransaction) -> Result<HashSet<String>, DbErr> {
        let mut present = HashSet::new();
        let digests: Vec<&String> = self.rows.keys().collect();
        for chunk in digests.chunks(1000) {
            let found =
                Entity::find().filter(Column::Digest.is_in(chunk.iter().copied())).all(transaction).await?;
            present.extend(found.into_iter().map(|row| row.digest));
        }
        Ok(present)
    }
}

/// Tells sets apart by content, missing texts from empty ones included.
fn digest(texts: [Option<&str>; 3]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        match text {
            Some(text) => {
                hash.update([1]);
                hash.update(text.len().to_le_bytes());
                hash.update(text);
            }
            None => hash.update([0]),
        }
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
