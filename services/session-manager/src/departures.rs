//! Completes running sessions of tenants when none of the nodes that keep them is the tenant's any more (BOS reference
//! 5.9).
//!
//! Nobody tells when nodes change hands, so it is asked again and again as long as such sessions run. Sessions of a
//! tenant that is not known, or about which nobody tells, run on: it may be known again, and who has lost its nodes for
//! good has sessions that end when the nodes are done.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use chassis::{Fault, lease::Fence};
use domain::{
    completion::stake,
    component::Component,
    id::{ComponentId, Tenant},
    session::{Progress, Session},
};
use futures_util::future::join_all;
use tokio::time::sleep;

use crate::{record::SessionRecord, shared::Shared};

/// Looks after the running sessions of tenants for ever.
pub(crate) async fn run(shared: Shared) -> anyhow::Result<()> {
    loop {
        sleep(shared.options.in_force().polling_period()).await;
        let looks = running(&shared).into_iter().map(|(tenant, sessions)| look_at(&shared, tenant, sessions));
        join_all(looks).await;
    }
}

/// A session of this replica, and under what it may be completed.
type Mine = (Arc<SessionRecord>, Fence);

/// The running sessions of this replica, for each tenant that has any.
fn running(shared: &Shared) -> HashMap<Tenant, Vec<Mine>> {
    let mut running: HashMap<_, Vec<_>> = HashMap::new();
    for record in shared.sessions.view().all() {
        let session = &record.session;
        if session.progress == Progress::Running && !session.tenant.is_none() {
            let fence = shared.custody.fence([&*record.key]);
            let tenant = session.tenant.clone();
            running.entry(tenant).or_default().extend(fence.map(|fence| (record, fence)));
        }
    }
    running
}

async fn look_at(shared: &Shared, tenant: Tenant, sessions: Vec<Mine>) {
    if sessions.is_empty() {
        return;
    }
    if let Err(fault) = complete_abandoned(shared, &tenant, sessions).await {
        tracing::warn!(%fault, tenant = tenant.as_str(), "it is not known whether sessions still have nodes");
    }
}

async fn complete_abandoned(shared: &Shared, tenant: &Tenant, sessions: Vec<Mine>) -> Result<(), Fault> {
    let Some(nodes) = shared.tenants.told(tenant).await? else { return Ok(()) };
    for (record, fence) in sessions {
        if is_abandoned(shared, &record, &nodes) && !is_kept(shared, &record.session, &nodes).await? {
            shared.complete(&record, Some(Arc::clone(&nodes)), fence).await?;
        }
    }
    Ok(())
}

/// Whether the registry itself says that one of the `nodes` of its tenant keeps the session.
async fn is_kept(shared: &Shared, session: &Session, nodes: &BTreeSet<ComponentId>) -> Result<bool, Fault> {
    if shared.is_just_restored() {
        return Ok(true);
    }
    let keeps = |component: &Component| {
        nodes.contains(&component.id) && stake(component, session, shared.complete_applied).is_some()
    };
    shared.confirmation.is_kept(session, keeps).await
}

/// Whether nothing that keeps the session is among the `nodes` of its tenant, as far as the copy of the components
/// shows what the session did to them.
fn is_abandoned(shared: &Shared, record: &SessionRecord, nodes: &BTreeSet<ComponentId>) -> bool {
    let session = &record.session;
    if shared.components.revision() < session.assigned_revision.max(1) {
        return false;
    }
    !shared.members.is_kept_by(session, nodes)
}
