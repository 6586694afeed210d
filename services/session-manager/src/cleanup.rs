//! Deletes complete sessions after their time to live (BOS reference 5.10), and the oldest ones beyond the limit.

use std::{collections::HashSet, convert::Infallible, sync::Arc, time::Duration};

use chassis::{Fault, lease::Term, process::clock::now};
use domain::boot::session::{Progress, is_expired, next_expiry, surplus};
use tokio::{sync::Notify, time::sleep};

use crate::{record::SessionRecord, shared::ManagerState};

/// Pause after a failed write, so as not to burden a failing database.
const PAUSE: Duration = Duration::from_secs(5);

/// Limit for the members of all complete sessions together, some fifty megabytes.
const MOST_MEMBERS: usize = 1_000_000;

/// Deletes sessions when they are due, for ever. `changed` is notified when sessions or their time to live have
/// changed.
pub(crate) async fn run(
    shared: ManagerState,
    changed: Arc<Notify>,
    term: Term,
) -> anyhow::Result<Infallible> {
    // The time to live is unknown before the first options arrive.
    shared.options.reached(1).await;
    loop {
        let turn = term.turn("cleanup");
        let deleted = delete_expired(&shared, &term).await;
        drop(turn);
        let wait = match deleted {
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
async fn delete_expired(shared: &ManagerState, term: &Term) -> Result<Option<Duration>, Fault> {
    let time_to_live = shared.cached_options()?.completed_session_ttl();
    let sessions = shared.sessions.view().all();
    let now = now();
    let surplus = surplus(sessions.iter().map(|record| &record.session), shared.most_complete, MOST_MEMBERS);
    let surplus: HashSet<String> = surplus.into_iter().map(|session| session.id.clone()).collect();
    let is_due = move |record: &SessionRecord| {
        let session = &record.session;
        let is_surplus = session.progress == Progress::Complete && surplus.contains(&session.id);
        is_surplus || is_expired(session, time_to_live, now)
    };
    if sessions.iter().any(|record| is_due(record)) {
        let (deleted, _revision) = shared
            .sessions
            .write_fenced(term.fence(), move |draft| {
                let due = draft.select(is_due);
                due.iter().for_each(|record| draft.delete(&record.key));
                Ok(due.len())
            })
            .await?;
        tracing::info!(deleted, "complete sessions deleted");
    }
    let next = next_expiry(sessions.iter().map(|record| &record.session), time_to_live, now);
    Ok(next.map(|at| at.since(now)))
}
