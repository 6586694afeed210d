//! Releases nodes of running sessions that have left the tenant of their session (BOS reference 5.9).
//!
//! The tenant service does not report when nodes change hands, so it is polled while such sessions run. Nodes that
//! have left for certain are disabled, so that no controller acts on them for the former tenant, and the session ends
//! when no other component keeps it, with an error if none of its nodes is left. All nodes have left a tenant that was
//! deleted, and its sessions end with an error too. Sessions continue while the service of their tenant does not answer.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use chassis::{Fault, lease::Term};
use domain::{
    boot::{
        component::Component,
        session::{
            Progress, Session,
            completion::{Departures, Stake, departures, have_all_left, stake},
        },
    },
    core::id::{ComponentId, Tenant},
};
use futures_util::future::join_all;
use tokio::time::sleep;

use crate::{
    completion::is_owner,
    dependency::Dependency,
    record::SessionRecord,
    shared::ManagerState,
    tenants::{HeldNodes, TenantDenial, TenantNodes, in_doubt},
};

/// Pause between polls while the membership of nodes is in doubt.
const IN_DOUBT: Duration = Duration::from_secs(3);

/// Error of a node that left the tenant of its session. The text names no tenant, because the next tenant can read
/// it.
const LEFT: &str = "The node has left the tenant whose session was acting on it";

/// Error of a session that has lost all its nodes.
const ALL_LEFT: &str = "All nodes of the session have left its tenant";

/// Polls the tenant service for the running sessions of tenants, for ever.
pub(crate) async fn run(shared: ManagerState, term: Term) -> anyhow::Result<Infallible> {
    let watch = DeparturePoller { shared, term };
    watch.shared.options.reached(1).await;
    loop {
        let period = watch.shared.options.in_force().polling_period();
        match !watch.shared.tenants.in_doubt().is_empty() {
            true => sleep(period.min(IN_DOUBT)).await,
            false => tokio::select! {
                () = sleep(period) => {}
                () = watch.shared.tenants.doubted() => {}
            },
        }
        let _turn = watch.term.turn("departures");
        let running = watch.running();
        let tenants: HashSet<_> = running.keys().cloned().collect();
        join_all(running.into_iter().map(|(tenant, sessions)| watch.check_tenant(tenant, sessions))).await;
        watch.ask_about_idle(&tenants).await;
    }
}

struct DeparturePoller {
    shared: ManagerState,
    term: Term,
}

impl DeparturePoller {
    /// Returns the running sessions of tenants, by tenant.
    fn running(&self) -> HashMap<Tenant, Vec<Arc<SessionRecord>>> {
        let mut running: HashMap<_, Vec<_>> = HashMap::new();
        for record in self.shared.sessions.view().all() {
            let session = &record.session;
            if session.progress == Progress::Running && !session.tenant.is_none() {
                let tenant = session.tenant.clone();
                running.entry(tenant).or_default().push(record);
            }
        }
        running
    }

    /// Asks about tenants in doubt that have no running session, so that their doubt ends too. The caller that is told of
    /// the doubt is told of a failure as well.
    async fn ask_about_idle(&self, running: &HashSet<Tenant>) {
        let idle = self.shared.tenants.in_doubt().into_iter().filter(|tenant| !running.contains(tenant));
        join_all(idle.map(async |tenant| drop(self.shared.tenants.nodes_in_time(&tenant).await))).await;
    }

    async fn check_tenant(&self, tenant: Tenant, sessions: Vec<Arc<SessionRecord>>) {
        if sessions.is_empty() {
            return;
        }
        if let Err(fault) = self.check(&tenant, sessions).await {
            tracing::warn!(%fault, tenant = tenant.as_str(), "cannot check tenant membership of running sessions");
        }
    }

    async fn check(&self, tenant: &Tenant, sessions: Vec<Arc<SessionRecord>>) -> Result<(), Fault> {
        let HeldNodes { nodes, denial } = self.shared.tenants.held(tenant).await?;
        let Some(nodes) = nodes else { return Ok(()) };
        let error = match denial {
            Some(TenantDenial::Unconfirmed(text)) => return self.note_all(&sessions, text).await,
            Some(TenantDenial::Confirmed(error)) => Some(error),
            None => None,
        };
        for record in sessions {
            // Until then the mirror of components does not include the assignment of the session's members.
            if self.shared.components.revision() < record.session.assigned_revision.max(1) {
                continue;
            }
            let held = self.shared.members.held_by(&record.session);
            let departures = departures(held, &nodes);
            let error = error.clone().or_else(|| self.error_of(&record.session, &nodes));
            let error = error.filter(|_| departures.is_certain());
            let text = in_doubt(&nodes).filter(|_| departures.in_doubt);
            self.note(&record, text, error).await?;
            self.follow(&record, departures, &nodes).await?;
        }
        Ok(())
    }

    /// Returns the error of a session that ends because all its nodes have left; BOS ends it without one.
    fn error_of(&self, session: &Session, nodes: &TenantNodes) -> Option<String> {
        let is_error = !self.shared.compatibility.strict_bos && have_all_left(&session.components, nodes);
        is_error.then(|| ALL_LEFT.to_owned())
    }

    /// Records the same doubt about all `sessions` of a tenant.
    async fn note_all(&self, sessions: &[Arc<SessionRecord>], in_doubt: String) -> Result<(), Fault> {
        let notes = sessions.iter().map(|record| self.note(record, Some(in_doubt.clone()), None));
        join_all(notes).await.into_iter().collect()
    }

    /// Records the doubt about nodes of a session, and the error with which it will end. The error is on record before any
    /// node is released: the session ends with its last node.
    async fn note(
        &self,
        record: &SessionRecord,
        in_doubt: Option<String>,
        error: Option<String>,
    ) -> Result<(), Fault> {
        let waiting_for =
            in_doubt.map(|text| format!("{}: {text}", Dependency::Membership)).unwrap_or_default();
        let is_recorded = error.is_none() || record.session.error == error;
        if is_recorded && record.session.waiting_for == waiting_for {
            return Ok(());
        }
        self.shared.note(record, waiting_for, error, self.term.fence()).await
    }

    async fn follow(
        &self,
        record: &SessionRecord,
        departures: Departures,
        nodes: &Arc<TenantNodes>,
    ) -> Result<(), Fault> {
        if departures.only_staged
            && !is_owner(&self.shared, &record.session)
            && !self.is_kept(&record.session, nodes).await?
        {
            return self.shared.complete(record, Some(Arc::clone(nodes)), self.term.fence()).await;
        }
        if !departures.owned.is_empty() && self.term.is_current() {
            self.release(&record.session, departures.owned).await?;
        }
        Ok(())
    }

    /// Returns whether the session is kept by more than the staged states of departed nodes according to the registry,
    /// or may be soon because commits were lost just now.
    async fn is_kept(&self, session: &Session, nodes: &TenantNodes) -> Result<bool, Fault> {
        if self.shared.is_just_restored() {
            return Ok(true);
        }
        let keeps = |component: &Component| match stake(component, session, self.shared.complete_applied) {
            Some(Stake::Owned) => true,
            Some(Stake::Staged) => !nodes.gone.contains(&component.id),
            None => false,
        };
        self.shared.confirmation.is_kept(session, keeps).await
    }

    /// Disables the `nodes` that the session still owns when the registry writes.
    async fn release(&self, session: &Session, nodes: Vec<ComponentId>) -> Result<(), Fault> {
        tracing::warn!(
            session = session.name,
            nodes = nodes.len(),
            "nodes have left the tenant of their session"
        );
        self.shared.release.release(session, nodes, LEFT.to_owned()).await
    }
}
