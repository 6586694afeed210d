//! Marks the components of paused sessions and of closed batches in the registry, and removes the marks of sessions that are not
//! paused any more, and of open batches.
//!
//! Which marks are right follows from the sessions on record alone, so a restart or another replica goes on with it, and
//! repeats it until the registry has confirmed. A mark is also removed if its session is complete, or was deleted.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use chassis::{Fault, lease::Term, observe::work::WorkQueue};
use domain::boot::{
    component::PauseMark,
    session::pause::{MarkChange, mark_change},
};
use tokio::time::Instant;

use crate::{pause_marker::MarkedComponents, record::SessionRecord, shared::ManagerState};

/// Names that are taken from the queue at once.
const AT_ONCE: usize = 64;

/// Time before a failed call is repeated.
const PAUSE: Duration = Duration::from_secs(1);

/// Sets and removes marks for ever, for the sessions of the queued names.
pub(crate) async fn run(
    shared: ManagerState,
    queue: WorkQueue<Arc<str>>,
    term: Term,
) -> anyhow::Result<Infallible> {
    loop {
        for name in queue.next(AT_ONCE).await {
            if !term.is_current() {
                continue;
            }
            if let Err(fault) = mark(&shared, &name).await {
                tracing::warn!(%fault, session = &*name, "cannot mark components, retrying");
                queue.mark_at(name, Instant::now() + PAUSE);
            }
        }
    }
}

/// Components with one change of their mark, by their assignment.
type MarkGroups = HashMap<(Arc<str>, Option<PauseMark>), Vec<String>>;

/// Corrects the marks of the components that name the session `name`.
async fn mark(shared: &ManagerState, name: &Arc<str>) -> Result<(), Fault> {
    for ((assignment, pause), ids) in groups(shared, name) {
        tracing::info!(
            session = &**name,
            components = ids.len(),
            paused = pause.is_some(),
            "marking components of session"
        );
        // A stale component has changed, and the change queues its session.
        let session = Arc::clone(name);
        shared.marker.mark(MarkedComponents { session, assignment, pause, ids }).await?;
    }
    Ok(())
}

fn groups(shared: &ManagerState, name: &str) -> MarkGroups {
    let is_holding =
        |record: &Arc<SessionRecord>| record.session.name == *name && record.session.holds_components();
    let records = shared.sessions.view().all();
    let holding: Vec<_> = records.iter().filter(|record| is_holding(record)).collect();
    let mut groups = MarkGroups::new();
    for component in shared.members.named(name) {
        let pause = match mark_change(&component, holding.iter().map(|record| &record.session)) {
            MarkChange::None => continue,
            MarkChange::Set(mark) => Some(mark),
            MarkChange::Remove => None,
        };
        // The registry compares the name, and a component that only staged the session names another one.
        if component.session_name() != name {
            continue;
        }
        let ids = groups.entry((Arc::clone(&component.wish.assignment), pause)).or_default();
        ids.push(component.id.as_str().to_owned());
    }
    groups
}
