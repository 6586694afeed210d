//! Forgets boot artifacts that no component and no token refers to any more. Their table would grow with everything that
//! was ever booted, and with whatever nodes report.

use std::{convert::Infallible, time::Duration};

use sea_orm::{DatabaseConnection, DbErr};

use crate::store::forget_unused_artifacts;

/// Pause between two looks. What is unused costs a row until then.
const PAUSE: Duration = Duration::from_secs(60 * 60);

/// Forgets what is unused, for ever.
pub(crate) async fn run(database: DatabaseConnection) -> anyhow::Result<Infallible> {
    loop {
        tokio::time::sleep(PAUSE).await;
        match forget(&database).await {
            Ok(0) => {}
            Ok(deleted) => tracing::info!(deleted, "unused boot artifacts forgotten"),
            Err(error) => tracing::warn!(%error, "unused boot artifacts could not be forgotten"),
        }
    }
}

/// Forgets all that is unused, a batch at a time, so that writers wait for a batch at most.
async fn forget(database: &DatabaseConnection) -> Result<u64, DbErr> {
    let mut all = 0;
    loop {
        match forget_unused_artifacts(database).await? {
            0 => return Ok(all),
            deleted => all += deleted,
        }
    }
}
