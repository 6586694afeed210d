//! Deletes boot artifacts that no component and no token refers to any more. Without this task their table would grow
//! with everything that was ever booted or reported.

use std::{convert::Infallible, time::Duration};

use sea_orm::{DatabaseConnection, DbErr};

use crate::store::delete_unused_artifacts;

/// Pause between two passes. Until then an unused artifact set costs a row.
const PAUSE: Duration = Duration::from_secs(60 * 60);

/// Deletes unused artifact sets, for ever.
pub(crate) async fn run(database: DatabaseConnection) -> anyhow::Result<Infallible> {
    loop {
        tokio::time::sleep(PAUSE).await;
        match delete_unused(&database).await {
            Ok(0) => {}
            Ok(deleted) => tracing::info!(deleted, "unused boot artifacts deleted"),
            Err(error) => tracing::warn!(%error, "cannot delete unused boot artifacts"),
        }
    }
}

/// Deletes all unused sets in batches, so that writers wait for one batch at most.
async fn delete_unused(database: &DatabaseConnection) -> Result<u64, DbErr> {
    let mut all = 0;
    loop {
        match delete_unused_artifacts(database).await? {
            0 => return Ok(all),
            deleted => all += deleted,
        }
    }
}
