//! Deletes complete sessions that were kept long enough (BOS reference 5.10), and the oldest when there are too many.

use std::{collections::HashSet, sync::Arc, time::Duration};

use chassis::{Fault, convert::time::now};
use domain::session::{Progress, is_expired, next_expiry, surplus};
use tokio::{sync::Notify, time::sleep};

use crate::{record::SessionRecord, shared::Shared};

/// Pause after a write that was not taken, so that a database in trouble is not pestered.
const PAUSE: Duration = Duration::from_secs(5);

/// Members that all complete sessions have together, some fifty megabytes.
const MOST_MEMBERS: usize = 1_000_000;

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
    let time_to_live = shared.options_seen()?.completed_session_ttl();
    let sessions = shared.sessions.view().all();
    let now = now();
    let surplus = surplus(sessions.iter().map(|record| &record.session), shared.most_complete, MOST_MEMBERS);
    let surplus: HashSet<String> = surplus.into_iter().map(|session| session.id.clone()).collect();
    // Others have their own, and their own times.
    let sessions: Vec<_> = sessions.into_iter().filter(|one| shared.custody.has(&one.key)).collect();
    let fence = shared.custody.fence_of_those(sessions.iter().map(|record| &*record.key));
    let (custody, ours) = (shared.custody.clone(), fence.clone());
    let is_due = move |record: &SessionRecord| {
        let session = &record.session;
        let is_surplus = session.progress == Progress::Complete && surplus.contains(&session.id);
        is_surplus || is_expired(session, time_to_live, now)
    };
    if sessions.iter().any(|record| is_due(record)) {
        let (deleted, _revision) = shared
            .sessions
            .write_fenced(fence, move |draft| {
                let due = draft.select(|record| custody.still_has(&ours, &record.key) && is_due(record));
                due.iter().for_each(|record| draft.delete(&record.key));
                Ok(due.len())
            })
            .await?;
        tracing::info!(deleted, "complete sessions deleted");
    }
    let next = next_expiry(sessions.iter().map(|record| &record.session), time_to_live, now);
    Ok(next.map(|at| at.since(now)))
}
