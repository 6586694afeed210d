//! Completes running sessions that nothing keeps any more (BOS reference 5.9).

use std::{sync::Arc, time::Duration};

use chassis::{Fault, work::WorkQueue};
use domain::{
    completion::{owns, stake},
    component::Component,
    session::{Progress, Session},
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, timeout};

use crate::{shared::Shared, tenants::Nodes};

/// Sessions that are taken up at the same time, and so completed in one transaction as a rule.
const AT_ONCE: usize = 64;

/// Pause after a write that was not taken, so that a database in trouble is not pestered, and before another look at
/// nodes that are let go of within milliseconds as a rule.
const PAUSE: Duration = Duration::from_secs(1);

/// How long to wait for the copy of the components to show what a session did to its members. A registry that was restored
/// may never reach that revision again; what it lists then counts without the copy.
const BEHIND: Duration = Duration::from_secs(10);

/// Completes sessions for ever. None waits for another: that of a tenant may have to wait for who knows the tenant.
pub(crate) async fn run(shared: Shared, queue: WorkQueue<Arc<str>>) -> anyhow::Result<()> {
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            keys = queue.next(AT_ONCE) => under_way.extend(keys.into_iter().map(|key| look_at(&shared, key))),
            Some((key, again)) = under_way.next() => if let Some(at) = again {
                queue.mark_at(key, at);
            },
        }
    }
}

/// What became of looking at a session.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    /// It is complete, or something will tell when to look again.
    Done,
    /// A node keeps the session, as far as the registry says, or it is not known yet whether one does.
    Unsettled,
}

/// Completes the session of that key if it is over. Says when to look at it again, unless something will tell.
async fn look_at(shared: &Shared, key: Arc<str>) -> (Arc<str>, Option<Instant>) {
    let again = match complete_if_over(shared, &key).await {
        Ok(Finding::Done) => None,
        Ok(Finding::Unsettled) => Some(Instant::now() + PAUSE),
        Err(fault) => {
            tracing::warn!(%fault, "a session could not be completed, trying again");
            Some(Instant::now() + PAUSE)
        }
    };
    (key, again)
}

async fn complete_if_over(shared: &Shared, key: &Arc<str>) -> Result<Finding, Fault> {
    // Sessions that come to this replica are marked when they have been taken over.
    let Some(fence) = shared.custody.fence([&**key]) else { return Ok(Finding::Done) };
    let Some(record) = shared.sessions.view().get(key) else { return Ok(Finding::Done) };
    if record.session.progress != Progress::Running {
        return Ok(Finding::Done);
    }
    let assigned = record.session.assigned_revision;
    let is_behind = timeout(BEHIND, shared.components.reached(assigned)).await.is_err();
    if is_behind && !shared.components.is_complete() {
        return Ok(Finding::Unsettled);
    }
    // Asked after the revision: what the index counts is then at least as new.
    let is_over = || shared.members.stakes(key).is_some_and(|stakes| stakes.is_complete());
    if is_over() && (is_owner(shared, &record.session) || is_kept(shared, &record.session).await?) {
        return Ok(Finding::Unsettled);
    }
    if is_over() {
        // Completion is never undone, so a node that was enabled before this must be seen.
        shared.registry.shown_by(&shared.components).await?;
        let visible = visible(shared, &record.session).await;
        // That may have taken a while.
        if is_over() {
            shared.complete(&record, visible, fence).await?;
        }
    }
    Ok(Finding::Done)
}

/// Whether the registry itself says that a component keeps the session, or may come to say so because commits were lost
/// just now.
async fn is_kept(shared: &Shared, session: &Session) -> Result<bool, Fault> {
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

/// Whether the session still has a node that is enabled. That keeps no session from being over where the options have
/// nodes stay enabled; otherwise such a node is let go of, or begins to be brought to where it should be.
pub(crate) fn is_owner(shared: &Shared, session: &Session) -> bool {
    let lets_go = shared.options.in_force().disable_components_on_completion;
    let mut named = shared.members.named(&session.name).into_iter();
    lets_go && named.any(|component| component.is_enabled() && owns(session, &component))
}

/// The nodes that count in the last status of a session. It is not put off until somebody tells whose they are by now:
/// all were its tenant's when it began.
async fn visible(shared: &Shared, session: &Session) -> Nodes {
    shared.tenants.left(&session.tenant).await.unwrap_or_else(|fault| {
        tracing::warn!(%fault, session = session.name, "the last status may count nodes that another tenant has by now");
        None
    })
}
