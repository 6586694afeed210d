//! Completes running sessions that nothing keeps any more (BOS reference 5.9).

use std::{sync::Arc, time::Duration};

use chassis::{Fault, work::WorkQueue};
use domain::session::Progress;
use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use tokio::time::Instant;

use crate::shared::Shared;

/// Sessions that are completed at the same time, in one transaction as a rule.
const AT_ONCE: usize = 64;

/// Pause after a write that was not taken, so that a database in trouble is not pestered.
const PAUSE: Duration = Duration::from_secs(1);

/// Completes sessions for ever.
pub(crate) async fn run(shared: Shared, queue: WorkQueue<Arc<str>>) -> anyhow::Result<()> {
    let mut behind = FuturesUnordered::new();
    loop {
        tokio::select! {
            keys = queue.next(AT_ONCE) => {
                let looked_at = keys.into_iter().map(|key| look_at(&shared, key));
                for (key, outcome) in join_all(looked_at).await {
                    match outcome {
                        Ok(Finding::Done) => {}
                        Ok(Finding::Behind(revision)) => behind.push(reached(&shared, key, revision)),
                        Err(fault) => {
                            tracing::warn!(%fault, "a session could not be completed, trying again");
                            queue.mark_at(key, Instant::now() + PAUSE);
                        }
                    }
                }
            }
            Some(key) = behind.next() => queue.mark([key]),
        }
    }
}

/// What became of looking at a session.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    /// It is complete, or something will tell when to look again.
    Done,
    /// The copy of the components does not show yet what the session did to its members.
    Behind(u64),
}

async fn look_at(shared: &Shared, key: Arc<str>) -> (Arc<str>, Result<Finding, Fault>) {
    let outcome = complete_if_over(shared, &key).await;
    (key, outcome)
}

async fn complete_if_over(shared: &Shared, key: &Arc<str>) -> Result<Finding, Fault> {
    let Some(record) = shared.sessions.view().get(key) else { return Ok(Finding::Done) };
    if record.session.progress != Progress::Running {
        return Ok(Finding::Done);
    }
    let assigned = record.session.assigned_revision;
    if shared.components.revision() < assigned.max(1) {
        return Ok(Finding::Behind(assigned));
    }
    // Asked after the revision: what the index counts is then at least as new.
    if shared.members.stakes(key).is_some_and(|stakes| stakes.is_complete()) {
        let id = record.session.id.clone();
        shared.complete(Arc::clone(key), id, Progress::Running, None).await?;
    }
    Ok(Finding::Done)
}

async fn reached(shared: &Shared, key: Arc<str>, revision: u64) -> Arc<str> {
    shared.components.reached(revision).await;
    key
}
