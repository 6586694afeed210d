//! Deletes complete sessions after their time to live (BOS reference 5.10), and the oldest ones beyond the limit.

use std::{collections::HashSet, sync::Arc, time::Duration};

use chassis::{Fault, clock::now};
use domain::boot::session::{Progress, is_expired, next_expiry, surplus};
use tokio::{sync::Notify, time::sleep};

use crate::{record::SessionRecord, shared::ManagerState};

/// Pause after a failed write, so as not to burden a failing database.
const PAUSE: Duration = Duration::from_secs(5);

/// Limit for the members of all complete sessions together, some fifty megabytes.
const MOST_MEMBERS: usize = 1_000_000;

/// Deletes sessions when they are due, for ever. `changed` is notified when sessions or their time to live have
/// changed.
pub(crate) async fn run(shared: ManagerState, changed: Arc<Notify>) -> anyhow::Result<()> {
    // The time to live is unknown before the first options arrive.
    shared.options.reached(1).await;
    loop {
        let wait = match delete_expired(&shared).await {
            Ok(wait) => wait,
            Err(fault) => {
                tracing::warn!(%fault, "cannot delete complete sessions, retrying");
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

/// Deletes due sessions and returns the time until the next one is due.
async fn delete_expired(shared: &ManagerState) -> Result<Option<Duration>, Fault> {
    let time_to_live = shared.cached_options()?.completed_session_ttl();
    let sessions = shared.sessions.view().all();
    let now = now();
    let surplus = surplus(sessions.iter().map(|record| &record.session), shared.most_complete, MOST_MEMBERS);
    let surplus: HashSet<String> = surplus.into_iter().map(|session| session.id.clone()).collect();
    // Each replica deletes the sessions that it owns, at its own times.
    let sessions: Vec<_> = sessions.into_iter().filter(|one| shared.custody.has(&one.key)).collect();
    let fence = shared.custody.fence_of_those(sessions.iter().map(|record| &*record.key));
    let custody = shared.custody.clone();
    let ours = fence.clone();
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
