//! Completes running sessions that no component keeps any more (BOS reference 5.9). The components of a session that is
//! being cancelled are released first.

use std::{convert::Infallible, sync::Arc, time::Duration};

use chassis::{Fault, lease::Term, observe::work::WorkQueue};
use domain::boot::{
    component::Component,
    session::{
        Progress, Session,
        completion::{Stake, owns, stake},
    },
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, timeout};

use crate::{shared::ManagerState, tenants::Nodes};

/// Sessions that are taken from the queue at once, and so usually completed in one transaction.
const AT_ONCE: usize = 64;

/// Pause after a failed write, so as not to burden a failing database, and before the next check of nodes, which are
/// usually released within milliseconds.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest wait until the mirror of components includes the assignment of a session. A restored registry may never
/// reach that revision again; after this time the registry's own list counts, without the mirror.
const BEHIND: Duration = Duration::from_secs(10);

/// Completes sessions for ever, all of them concurrently: the session of a tenant may have to wait for the tenant
/// service.
pub(crate) async fn run(
    shared: ManagerState,
    queue: WorkQueue<Arc<str>>,
    term: Term,
) -> anyhow::Result<Infallible> {
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            keys = queue.next(AT_ONCE) => under_way.extend(keys.into_iter().map(|key| check_session(&shared, &term, key))),
            Some((key, again)) = under_way.next() => if let Some(at) = again {
                queue.mark_at(key, at);
            },
        }
    }
}

/// Result of checking a session.
#[derive(Debug, PartialEq, Eq)]
enum CompletionCheck {
    /// The session is complete, or a later event triggers the next check.
    Done,
    /// A node keeps the session according to the registry, or the registry has not answered yet.
    Unsettled,
}

/// Completes the session of that key if no component keeps it. Returns the time of the next check, unless an event
/// will trigger it.
async fn check_session(shared: &ManagerState, term: &Term, key: Arc<str>) -> (Arc<str>, Option<Instant>) {
    let again = match complete_if_over(shared, term, &key).await {
        Ok(CompletionCheck::Done) => None,
        Ok(CompletionCheck::Unsettled) => Some(Instant::now() + PAUSE),
        Err(fault) => {
            tracing::warn!(%fault, "cannot complete session, retrying");
            Some(Instant::now() + PAUSE)
        }
    };
    (key, again)
}

async fn complete_if_over(
    shared: &ManagerState,
    term: &Term,
    key: &Arc<str>,
) -> Result<CompletionCheck, Fault> {
    let Some(record) = shared.sessions.view().get(key) else { return Ok(CompletionCheck::Done) };
    if record.session.progress != Progress::Running {
        return Ok(CompletionCheck::Done);
    }
    let assigned = record.session.assigned_revision;
    let is_behind = timeout(BEHIND, shared.components.reached(assigned)).await.is_err();
    if is_behind && !shared.components.is_complete() {
        return Ok(CompletionCheck::Unsettled);
    }
    if record.session.is_being_cancelled() && term.is_current() {
        release(shared, &record.session).await?;
    }
    // Counted after the revision was reached, so that the index is at least as new.
    let is_over = || shared.members.stakes(key).is_some_and(|stakes| stakes.is_complete());
    if is_over() && (is_owner(shared, &record.session) || is_kept(shared, &record.session).await?) {
        return Ok(CompletionCheck::Unsettled);
    }
    if is_over() {
        // Completion is never undone, so a node that was enabled before this point must be visible.
        shared.registry.wait_for_mirror(&shared.components).await?;
        let visible = visible(shared, &record.session).await;
        // The index is checked again, because the calls above may have taken a while.
        if is_over() {
            shared.complete(&record, visible, term.fence()).await?;
        }
    }
    Ok(CompletionCheck::Done)
}

/// Releases the components that hold a session that is being cancelled. Nothing new begins for them once the registry
/// has written this; an action that is under way ends by itself.
async fn release(shared: &ManagerState, session: &Session) -> Result<(), Fault> {
    shared.registry.wait_for_mirror(&shared.components).await?;
    let held = shared.members.held_by(session).into_iter();
    let owned: Vec<_> = held.filter(|(_, stake)| *stake == Stake::Owned).map(|(id, _)| id).collect();
    if owned.is_empty() {
        return Ok(());
    }
    tracing::info!(
        session = session.name,
        components = owned.len(),
        "releasing components of cancelled session"
    );
    let error = format!("Session '{}' was cancelled before the node reached its desired state", session.name);
    shared.release.release(session, owned, error).await?;
    shared.registry.wait_for_mirror(&shared.components).await
}

/// Returns whether a component keeps the session according to the registry, or may do so soon because commits were lost
/// just now.
async fn is_kept(shared: &ManagerState, session: &Session) -> Result<bool, Fault> {
    if shared.is_just_restored() {
        return Ok(true);
    }
    let lets_go = shared.options.in_force().disable_components_on_completion;
    let keeps = |component: &Component| {
        stake(component, session, shared.complete_applied).is_some()
            || lets_go && component.is_enabled() && owns(session, component)
    };
    shared.confirmation.is_kept(session, keeps).await
}

/// Returns whether the session still has an enabled node. Such a node does not hold the session if the options keep
/// nodes enabled; otherwise the node is about to be released, or to be brought to its target state.
pub(crate) fn is_owner(shared: &ManagerState, session: &Session) -> bool {
    let lets_go = shared.options.in_force().disable_components_on_completion;
    let mut named = shared.members.named(&session.name).into_iter();
    lets_go && named.any(|component| component.is_enabled() && owns(session, &component))
}

/// Returns the nodes that count in the final status of a session. The status does not wait for the tenant service:
/// all nodes belonged to the tenant when the session began.
async fn visible(shared: &ManagerState, session: &Session) -> Nodes {
    shared.tenants.former_nodes(&session.tenant).await.unwrap_or_else(|fault| {
        tracing::warn!(%fault, session = session.name, "final session status may count nodes of another tenant");
        None
    })
}
