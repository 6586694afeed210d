//! Nodes of tenants (BOS reference 6.6, 9).

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use chassis::{
    Fault,
    observe::single_flight::SingleFlight,
    process::clock::now,
    settings::{self, TenantsDriver},
    store::ledger::Ledger,
};
use domain::{
    boot::session::Progress,
    core::{
        bos_time,
        confirmed_set::{ConfirmedSet, SetAnswer, SetListing},
        id::{ComponentId, Tenant},
    },
};
use parking_lot::Mutex;
use tokio::sync::Notify;
use upstream::{CredentialUse, FirstCall, Peer};

use crate::{
    dependency::{Dependency, DependencyError, DependencyOutage},
    members::SessionMembers,
    store::SessionTable,
};

mod rpc;
mod tapms;

pub(crate) use rpc::TenantRpc;
use tapms::TapmsClient;

/// Kind of resource in faults.
const TENANT: &str = "tenant";

/// Longest time for which an answer is reused, so that requests and sessions in quick succession need one call. Nodes
/// are moved between tenants by hand, which takes longer.
const AGE: Duration = Duration::from_secs(3);

/// Longest wait of a caller. The gateway waits longer, and its error would not name the tenant service.
const PATIENCE: Duration = Duration::from_secs(20);

/// Source of tenants.
#[derive(Clone)]
enum TenantDriver {
    /// No source: every tenant may use every node.
    None,
    /// Tenant and partition management service.
    Tapms(TapmsClient),
}

/// The nodes of a tenant, as far as they are confirmed.
pub(crate) type TenantNodes = ConfirmedSet<ComponentId>;

/// Nodes that a caller may use; `None`: every node.
pub(crate) type Nodes = Option<Arc<TenantNodes>>;

/// The nodes of a tenant among those that its running sessions hold.
pub(crate) struct HeldNodes {
    pub(crate) nodes: Nodes,
    /// Denial of the tenant; `None`: it exists.
    pub(crate) denial: Option<TenantDenial>,
}

/// Answer that a tenant with running sessions does not exist.
pub(crate) enum TenantDenial {
    /// Confirmed absence: the list of tenants lacks the tenant too. The sessions end with this error.
    Confirmed(String),
    /// Unconfirmed denial, for the reason in this text: a proxy may have answered.
    Unconfirmed(String),
}

/// Nodes of tenants, for many setups and callers at a time.
pub(crate) struct TenantLookup {
    driver: TenantDriver,
    nodes: SingleFlight<Tenant, Arc<TenantNodes>, DependencyError>,
    /// Last accepted set of each tenant; absences in the next answer are relative to it.
    believed: Mutex<HashMap<Tenant, Arc<TenantNodes>>>,
    sessions: Ledger<SessionTable>,
    members: Arc<SessionMembers>,
    /// Notified when an answer puts nodes or a tenant in doubt.
    doubted: Notify,
}

impl TenantLookup {
    /// Creates the source that the settings name. The nodes that hold running `sessions` are expected in its answers, and
    /// the nodes of all its sessions in the first one.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(
        settings: &settings::TenantSettings,
        sessions: Ledger<SessionTable>,
        members: Arc<SessionMembers>,
    ) -> anyhow::Result<Self> {
        let driver = match settings.driver {
            TenantsDriver::None => TenantDriver::None,
            TenantsDriver::Tapms => {
                let peer = Peer::new("TAPMS", &settings.tapms).context("tenants.tapms")?;
                peer.check_credentials("tenants.tapms", CredentialUse::Header);
                TenantDriver::Tapms(TapmsClient::new(peer))
            }
        };
        Ok(Self {
            driver,
            nodes: SingleFlight::new(AGE, DependencyError::is_outage),
            believed: Mutex::default(),
            sessions,
            members,
            doubted: Notify::new(),
        })
    }

    /// Returns the call by which the source shows at the start that it can be used.
    pub(crate) fn first_call(&self) -> Option<FirstCall> {
        match &self.driver {
            TenantDriver::None => None,
            TenantDriver::Tapms(tapms) => Some(tapms.first_call()),
        }
    }

    /// Returns the nodes that `tenant` may use, including nodes in doubt.
    ///
    /// # Errors
    /// [`DependencyError::Retryable`] if the service does not answer, [`DependencyError::Fatal`] if the tenant does
    /// not exist.
    pub(crate) async fn nodes(&self, tenant: &Tenant) -> Result<Nodes, DependencyError> {
        let Some(tapms) = self.tapms(tenant) else { return Ok(None) };
        self.nodes.get(tenant.clone(), || self.ask(tapms, tenant)).await.map(Some)
    }

    /// Returns the nodes like [`Self::nodes`], for callers that start work on nodes: no node may be in doubt. The nodes of a
    /// session are decided once, so the answer is to a call that begins now.
    ///
    /// # Errors
    /// See [`Self::nodes`]; [`DependencyError::Retryable`] also while nodes are in doubt.
    pub(crate) async fn confirmed_nodes(&self, tenant: &Tenant) -> Result<Nodes, DependencyError> {
        let Some(tapms) = self.tapms(tenant) else { return Ok(None) };
        let nodes = self.nodes.get_anew(tenant.clone(), || self.ask(tapms, tenant)).await?;
        match in_doubt(&nodes) {
            Some(error) => {
                Err(DependencyError::Retryable(DependencyOutage { what: Dependency::Membership, error }))
            }
            None => Ok(Some(nodes)),
        }
    }

    /// Returns the service that knows the nodes of `tenant`; `None`: every node may be used.
    fn tapms(&self, tenant: &Tenant) -> Option<&TapmsClient> {
        match &self.driver {
            TenantDriver::Tapms(tapms) if !tenant.is_none() => Some(tapms),
            TenantDriver::Tapms(_) | TenantDriver::None => None,
        }
    }

    /// Returns the tenants that are in doubt themselves, or of which nodes are.
    pub(crate) fn in_doubt(&self) -> Vec<Tenant> {
        let believed = self.believed.lock();
        let doubted = believed.iter().filter(|(_, nodes)| nodes.is_in_doubt());
        doubted.map(|(tenant, _)| tenant.clone()).collect()
    }

    /// Waits until an answer puts nodes or a tenant in doubt.
    pub(crate) async fn doubted(&self) {
        self.doubted.notified().await;
    }

    /// Requests the nodes of a tenant, and the list of tenants if the tenant is denied.
    async fn ask(&self, tapms: &TapmsClient, tenant: &Tenant) -> Result<Arc<TenantNodes>, DependencyError> {
        let nodes = self.believe(tenant, tapms.nodes(tenant).await?);
        if !nodes.is_denied() {
            return Ok(nodes);
        }
        let error = no_such_tenant(tenant);
        let (listing, doubt) = match tapms.lists(tenant).await {
            Ok(true) => (SetListing::Has, "lists it".to_owned()),
            Ok(false) => (SetListing::Lacks, "is asked again within ten seconds".to_owned()),
            Err(failure) => (SetListing::Unknown, format!("its list of tenants cannot be read: {failure}")),
        };
        if nodes.is_missing(listing, self.has_sessions(tenant), now()) {
            return Err(DependencyError::Fatal(error));
        }
        let error = format!("TAPMS says that {error}, and {doubt}");
        Err(DependencyError::Retryable(DependencyOutage { what: Dependency::Membership, error }))
    }

    /// Returns whether there is a session of the tenant, so that the tenant did exist.
    fn has_sessions(&self, tenant: &Tenant) -> bool {
        self.sessions.view().all().iter().any(|record| record.session.tenant == *tenant)
    }

    /// Returns the nodes that hold running sessions of the tenant.
    fn held_now(&self, tenant: &Tenant) -> BTreeSet<ComponentId> {
        let sessions = self.sessions.view().all();
        let running = sessions.iter().map(|record| &record.session);
        let own = running.filter(|one| one.progress == Progress::Running && one.tenant == *tenant);
        own.flat_map(|session| self.members.held_by(session)).map(|(id, _)| id).collect()
    }

    /// Returns the nodes that are the tenant's by what is on record: those whose session, now or last, is one of the tenant,
    /// and the members of its sessions that have yet to begin. A process that remembers no answer misses them in the first
    /// one. Nodes that have left the tenant before are missed too, until the next answer agrees.
    fn held_last(&self, tenant: &Tenant) -> BTreeSet<ComponentId> {
        let mut held = BTreeSet::new();
        for record in self.sessions.view().all().iter().filter(|record| record.session.tenant == *tenant) {
            let last = self.members.last_of(&record.session).into_iter();
            held.extend(last.map(|one| one.id.clone()));
            if record.session.progress == Progress::Pending {
                held.extend(record.session.components.iter().cloned());
            }
        }
        held
    }

    fn believe(&self, tenant: &Tenant, answer: SetAnswer<ComponentId>) -> Arc<TenantNodes> {
        let mut expected = self.held_now(tenant);
        let mut all = self.believed.lock();
        let before = all.remove(tenant).unwrap_or_else(|| {
            expected.extend(self.held_last(tenant));
            Arc::default()
        });
        let believed = Arc::new(before.believe(answer, expected, now()));
        // A set that is remembered as empty is not compared with the records once more.
        let is_kept = !believed.is_empty() || self.has_sessions(tenant);
        if is_kept {
            all.insert(tenant.clone(), Arc::clone(&believed));
        }
        drop(all);
        // A doubt that is not kept is not asked about again.
        if is_kept && believed.is_in_doubt() && !before.is_in_doubt() {
            self.doubted.notify_one();
        }
        let (missing, doubted) = (believed.in_doubt.len(), before.in_doubt.len());
        if missing > doubted {
            let tenant = tenant.as_str();
            tracing::warn!(
                tenant,
                missing,
                "nodes missing from the tenant service's answer, waiting for confirmation"
            );
        } else if missing == 0 && doubted > 0 {
            let (tenant, nodes, gone) = (tenant.as_str(), believed.elements.len(), believed.gone.len());
            tracing::info!(tenant, nodes, gone, "membership of the tenant is no longer in doubt");
        }
        believed
    }

    /// Returns the nodes like [`Self::nodes`], for a caller that waits for them.
    ///
    /// # Errors
    /// [`Fault::NotFound`] if the tenant does not exist, [`Fault::Unavailable`] if the service does not answer in
    /// time.
    pub(crate) async fn nodes_in_time(&self, tenant: &Tenant) -> Result<Nodes, Fault> {
        match tokio::time::timeout(PATIENCE, self.nodes(tenant)).await {
            Ok(Ok(nodes)) => Ok(nodes),
            Ok(Err(DependencyError::Fatal(_) | DependencyError::Idle { .. })) => {
                Err(Fault::not_found(TENANT, tenant.as_str()))
            }
            Ok(Err(DependencyError::Retryable(outage))) => {
                Err(Fault::unavailable(outage.what.text(), outage.error))
            }
            Err(_) => {
                let reason = format!("TAPMS gave no answer within {} s", PATIENCE.as_secs());
                Err(Fault::unavailable(Dependency::Tenants.text(), reason))
            }
        }
    }

    /// Returns the nodes like [`Self::nodes_in_time`], for nodes that running sessions hold: all of them have left a
    /// tenant that does not exist.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] if the service does not answer in time.
    pub(crate) async fn held(&self, tenant: &Tenant) -> Result<HeldNodes, Fault> {
        match self.nodes_in_time(tenant).await {
            Ok(nodes) => Ok(HeldNodes { nodes, denial: None }),
            Err(Fault::NotFound { .. }) => {
                let denial = Some(TenantDenial::Confirmed(no_such_tenant(tenant)));
                Ok(HeldNodes { nodes: Some(self.last_believed(tenant)), denial })
            }
            Err(Fault::Unavailable { reason, .. }) if self.last_believed(tenant).is_denied() => {
                let denial = Some(TenantDenial::Unconfirmed(reason));
                Ok(HeldNodes { nodes: Some(self.last_believed(tenant)), denial })
            }
            Err(fault) => Err(fault),
        }
    }

    fn last_believed(&self, tenant: &Tenant) -> Arc<TenantNodes> {
        self.believed.lock().get(tenant).cloned().unwrap_or_default()
    }

    /// Returns the nodes like [`Self::nodes_in_time`], for nodes that a tenant had once: a deleted tenant has no
    /// nodes.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] if the service does not answer in time.
    pub(crate) async fn former_nodes(&self, tenant: &Tenant) -> Result<Nodes, Fault> {
        match self.nodes_in_time(tenant).await {
            Err(Fault::NotFound { .. }) => Ok(Some(Arc::default())),
            nodes => nodes,
        }
    }
}

/// Returns the error of sessions whose tenant does not exist.
fn no_such_tenant(tenant: &Tenant) -> String {
    format!("tenant '{}' does not exist", tenant.as_str())
}

/// Returns the text about nodes in doubt, for people; `None`: no node is in doubt.
pub(crate) fn in_doubt(nodes: &TenantNodes) -> Option<String> {
    let since = bos_time::text(nodes.in_doubt_since()?);
    let missing = nodes.in_doubt.len();
    Some(match nodes.denied_since.is_some() {
        true => format!(
            "the tenant service says that the tenant does not exist; {missing} nodes are missing since {since}Z, \
             which is being confirmed"
        ),
        false => format!(
            "{missing} nodes are missing from the tenant's list since {since}Z, which is being confirmed"
        ),
    })
}
