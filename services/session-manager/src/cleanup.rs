//! Deletes complete sessions that were kept long enough (BOS reference 5.10).

use std::{sync::Arc, time::Duration};

use chassis::{Fault, convert::time::now};
use domain::session::{is_expired, next_expiry};
use tokio::{sync::Notify, time::sleep};

use crate::shared::Shared;

/// Pause after a write that was not taken, so that a database in trouble is not pestered.
const PAUSE: Duration = Duration::from_secs(5);

/// Deletes sessions when their time has come, for ever. `changed` tells that there are others now, or that
/// they are kept for another time.
pub(crate) async fn run(shared: Shared, changed: Arc<Notify>) -> anyhow::Result<()> {
    // Until then nobody knows how long sessions are to be kept.
    shared.options.reached(1).await;
    loop {
        let wait = match delete_expired(&shared).await {
            Ok(wait) => wait,
            Err(fault) => {
                tracing::warn!(%fault, "complete sessions could not be deleted, trying again");
                Some(PAUSE)
            }
        };
        match wait {
            Some(wait) => tokio::select! {
                () = sleep(wait) => {}
                () = changed.notified() => {}
            },
            None => changed.notified().await,
        }
    }
}

/// Deletes what is due and says when the next one is, if any.
async fn delete_expired(shared: &Shared) -> Result<Option<Duration>, Fault> {
    let time_to_live = shared.options()?.completed_session_ttl();
    let sessions = shared.sessions.view().all();
    let now = now();
    if sessions.iter().any(|record| is_expired(&record.session, time_to_live, now)) {
        let (deleted, _revision) = shared
            .sessions
            .write(move |draft| {
                let expired = draft.select(|record| is_expired(&record.session, time_to_live, now));
                expired.iter().for_each(|record| draft.delete(&record.key));
                Ok(expired.len())
            })
            .await?;
        tracing::info!(deleted, "complete sessions deleted");
    }
    let next = next_expiry(sessions.iter().map(|record| &record.session), time_to_live, now);
    Ok(next.map(|at| at.since(now)))
}
