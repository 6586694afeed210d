//! Rolls sessions out: opens their batches one after the other.
//!
//! The next step follows from the record of the session and the outcomes of its members, so a restart or another replica
//! goes on with it. A batch is opened by a fenced write of the record; [`crate::marking`] then lets its members begin.

use std::{convert::Infallible, sync::Arc, time::Duration};

use chassis::{Fault, lease::Term, observe::work::WorkQueue, process::clock::now};
use domain::{
    boot::session::{
        Progress, Session, SessionRollout,
        rollout::{RolloutStanding, advance, rollout_standing},
    },
    core::rollout::{BatchView, RolloutStep},
};
use tokio::time::Instant;

use crate::{record::SessionRecord, shared::ManagerState};

/// Sessions that are taken from the queue at once.
const AT_ONCE: usize = 64;

/// Time before a failed step is repeated, or the copy of the components is looked at again.
const PAUSE: Duration = Duration::from_secs(1);

/// Rolls the sessions of the queued keys out, for ever.
pub(crate) async fn run(
    shared: ManagerState,
    queue: WorkQueue<Arc<str>>,
    term: Term,
) -> anyhow::Result<Infallible> {
    loop {
        for key in queue.next(AT_ONCE).await {
            if !term.is_current() {
                continue;
            }
            let again = roll(&shared, &term, &key).await.unwrap_or_else(|fault| {
                tracing::warn!(%fault, session = &*key, "cannot roll session out, retrying");
                Some(PAUSE)
            });
            if let Some(pause) = again {
                queue.mark_at(key, Instant::now() + pause);
            }
        }
    }
}

/// Takes the next step of a rollout. Returns when to look again, unless an event tells.
async fn roll(shared: &ManagerState, term: &Term, key: &Arc<str>) -> Result<Option<Duration>, Fault> {
    let record = shared.sessions.view().get(key).filter(|record| record.session.is_rolling());
    let Some(record) = record else { return Ok(None) };
    let session = &record.session;
    if is_behind(shared, session) {
        return Ok(Some(PAUSE));
    }
    if session.rollout.as_ref().is_some_and(SessionRollout::is_stopped) {
        release_closed(shared, session).await?;
        return Ok(None);
    }
    let views = shared.batch_views(session);
    if advance(session, &views, now()).is_some() {
        write(shared, term, &record, views).await?;
        return Ok(None);
    }
    let standing = rollout_standing(session, &views, now());
    Ok(standing.filter(|_| session.pause.is_none()).and_then(|standing| time_left(&standing)))
}

/// Returns whether outcomes cannot be judged: the copy of the components does not have the assignment yet, or sessions were
/// lost just now. A restored registry may never reach the revision of the assignment again.
fn is_behind(shared: &ManagerState, session: &Session) -> bool {
    let has_assignment = shared.components.revision() >= session.assigned_revision;
    shared.is_just_restored() || !has_assignment && shared.components.replaced_at().is_none()
}

fn time_left(standing: &RolloutStanding) -> Option<Duration> {
    match standing.step {
        RolloutStep::Wait(wait) => wait.until().map(|until| until.since(now())),
        RolloutStep::Open(_)
        | RolloutStep::Meet(_)
        | RolloutStep::Miss(_)
        | RolloutStep::Stopped
        | RolloutStep::Done => None,
    }
}

/// Writes the step, if the session was not steered meanwhile. The change of the record queues the session again.
async fn write(
    shared: &ManagerState,
    term: &Term,
    seen: &SessionRecord,
    views: Vec<BatchView>,
) -> Result<(), Fault> {
    let key = Arc::clone(&seen.key);
    let (id, rollout) = (seen.session.id.clone(), seen.session.rollout.clone());
    let write = shared.sessions.write_fenced(term.fence(), move |draft| {
        let newest = draft.get(&key).filter(|newest| newest.is_still(&id, Progress::Running));
        let newest = newest.filter(|newest| newest.session.rollout == rollout);
        let Some(record) = newest else { return Ok(()) };
        if let Some(session) = advance(&record.session, &views, now()) {
            let opened = session.rollout.as_ref().map_or(0, SessionRollout::opened);
            tracing::info!(
                session = session.name,
                opened,
                is_paused = session.pause.is_some(),
                "session rolls out"
            );
            draft.put(SessionRecord::clone(&record).with(session));
        }
        Ok(())
    });
    write.await.map(|((), _revision)| ())
}

/// Releases the members of closed batches of a session whose rollout was stopped.
async fn release_closed(shared: &ManagerState, session: &Session) -> Result<(), Fault> {
    let Some(rollout) = &session.rollout else { return Ok(()) };
    let named = shared.members.named(&session.name).into_iter();
    let closed = named.filter(|one| one.is_enabled() && rollout.holds(&one.id)).map(|one| one.id.clone());
    let closed: Vec<_> = closed.collect();
    if closed.is_empty() {
        return Ok(());
    }
    tracing::info!(
        session = session.name,
        components = closed.len(),
        "releasing components of stopped rollout"
    );
    let error =
        format!("Session '{}' stopped its rollout before the batch of the node was opened", session.name);
    shared.release.release(session, closed, error).await
}
