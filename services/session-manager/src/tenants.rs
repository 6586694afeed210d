//! Nodes of tenants (BOS reference 6.6, 9).

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use chassis::{
    Fault,
    process::clock::now,
    settings::{self, TenantsDriver},
    store::ledger::Ledger,
};
use domain::{
    boot::session::Progress,
    core::{
        bos_time,
        confirmed_set::{ConfirmedSet, SetAnswer},
        id::{ComponentId, Tenant},
    },
};
use http::StatusCode;
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use tokio::sync::Notify;
use upstream::{CredentialUse, Peer, Request};

use crate::{
    dependency::{DependencyError, DependencyOutage, MEMBERSHIP},
    members::SessionMembers,
    single_flight::SingleFlight,
    store::SessionTable,
};

mod rpc;

pub(crate) use rpc::TenantRpc;

/// Name of the tenant service in texts for people.
const TENANTS: &str = "tenant service";

/// Kind of resource in faults.
const TENANT: &str = "tenant";

/// Longest time for which an answer is reused, so that requests and sessions in quick succession need one call. Nodes
/// are moved between tenants by hand, which takes longer.
const AGE: Duration = Duration::from_secs(3);

/// Longest wait of a caller. The gateway waits longer, and its error would not name the tenant service.
const PATIENCE: Duration = Duration::from_secs(20);

/// Longest name of a tenant in an error, in characters.
const LONGEST_NAME: usize = 127;

/// Source of tenants.
#[derive(Clone)]
enum TenantDriver {
    /// No source: every tenant may use every node.
    None,
    /// Tenant and partition management service.
    Tapms(Peer),
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
    /// The list of tenants lacks it too. The sessions end with this error.
    Confirmed(String),
    /// The list of tenants does not confirm it, for the reason in this text. A proxy may have answered.
    Unconfirmed(String),
}

/// Nodes of tenants, for many setups and callers at a time.
pub(crate) struct Tenants {
    driver: TenantDriver,
    nodes: SingleFlight<Tenant, Arc<TenantNodes>>,
    /// Last accepted set of each tenant; absences in the next answer are relative to it.
    believed: Mutex<HashMap<Tenant, Arc<TenantNodes>>>,
    sessions: Ledger<SessionTable>,
    members: Arc<SessionMembers>,
    /// Notified when an answer puts nodes in doubt.
    doubted: Notify,
}

/// The relevant part of an answer. Empty lists may be omitted; a tenant without status has no nodes yet.
#[derive(Deserialize)]
struct TapmsTenant {
    spec: Option<TapmsSpec>,
    status: TapmsStatus,
}

#[derive(Deserialize)]
struct TapmsSpec {
    tenantname: Option<String>,
}

#[derive(Deserialize)]
struct TapmsStatus {
    uuid: Option<String>,
    tenantresources: Option<Vec<TapmsResource>>,
}

#[derive(Deserialize)]
struct TapmsResource {
    xnames: Option<Vec<String>>,
}

/// The list of tenants, as the custom resources of the cluster or as a plain array.
#[derive(Deserialize)]
#[serde(untagged)]
enum TapmsTenants {
    Resources { items: Vec<ListedTenant> },
    Array(Vec<ListedTenant>),
}

#[derive(Deserialize)]
struct ListedTenant {
    metadata: Option<ListedName>,
    spec: Option<TapmsSpec>,
    status: Option<ListedStatus>,
}

#[derive(Deserialize)]
struct ListedName {
    name: Option<String>,
}

#[derive(Deserialize)]
struct ListedStatus {
    uuid: Option<String>,
}

impl TapmsTenants {
    /// Returns whether the list has the tenant of that name or UUID.
    fn has(&self, tenant: &str) -> bool {
        let (Self::Resources { items: tenants } | Self::Array(tenants)) = self;
        tenants.iter().any(|one| one.is(tenant))
    }
}

impl ListedTenant {
    fn is(&self, tenant: &str) -> bool {
        let name = self.metadata.as_ref().and_then(|one| one.name.as_deref());
        let spec_name = self.spec.as_ref().and_then(|one| one.tenantname.as_deref());
        let uuid = self.status.as_ref().and_then(|one| one.uuid.as_deref());
        [name, spec_name, uuid].contains(&Some(tenant))
    }
}

impl TapmsTenant {
    /// Returns the name in the answer, if it is not about the tenant `asked` for, which may be a name or a UUID. An
    /// answer without a name is about the tenant in the request.
    fn other_name(&self, asked: &str) -> Option<&str> {
        let name = self.spec.as_ref()?.tenantname.as_deref().filter(|name| !name.is_empty())?;
        let is_asked = name == asked || self.status.uuid.as_deref() == Some(asked);
        (!is_asked).then_some(name)
    }
}

impl Tenants {
    /// Creates the source that the settings name. The nodes that hold running `sessions` are expected in its answers.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(
        settings: &settings::Tenants,
        sessions: Ledger<SessionTable>,
        members: Arc<SessionMembers>,
    ) -> anyhow::Result<Self> {
        let driver = match settings.driver {
            TenantsDriver::None => TenantDriver::None,
            TenantsDriver::Tapms => {
                let peer = Peer::new("TAPMS", &settings.tapms).context("tenants.tapms")?;
                peer.check_credentials("tenants.tapms", CredentialUse::Header);
                TenantDriver::Tapms(peer)
            }
        };
        Ok(Self {
            driver,
            nodes: SingleFlight::new(AGE),
            believed: Mutex::default(),
            sessions,
            members,
            doubted: Notify::new(),
        })
    }

    /// Returns the nodes that `tenant` may use, including nodes in doubt.
    ///
    /// # Errors
    /// [`DependencyError::Retryable`] if the service does not answer, [`DependencyError::Fatal`] if the tenant does
    /// not exist.
    pub(crate) async fn nodes(&self, tenant: &Tenant) -> Result<Nodes, DependencyError> {
        match &self.driver {
            TenantDriver::Tapms(tapms) if !tenant.is_none() => {
                let ask = || async {
                    let nodes = self.believe(tenant, ask(tapms, tenant.as_str()).await?);
                    match nodes.is_missing() {
                        true => Err(DependencyError::Fatal(no_such_tenant(tenant))),
                        false => Ok(nodes),
                    }
                };
                self.nodes.get(tenant.clone(), ask).await.map(Some)
            }
            TenantDriver::Tapms(_) | TenantDriver::None => Ok(None),
        }
    }

    /// Returns the nodes like [`Self::nodes`], for callers that start work on nodes: no node may be in doubt.
    ///
    /// # Errors
    /// See [`Self::nodes`]; [`DependencyError::Retryable`] also while nodes are in doubt.
    pub(crate) async fn confirmed_nodes(&self, tenant: &Tenant) -> Result<Nodes, DependencyError> {
        let nodes = self.nodes(tenant).await?;
        match nodes.as_deref().and_then(in_doubt) {
            Some(error) => Err(DependencyError::Retryable(DependencyOutage { what: MEMBERSHIP, error })),
            None => Ok(nodes),
        }
    }

    /// Returns whether nodes of any tenant are in doubt.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.believed.lock().values().any(|nodes| !nodes.in_doubt.is_empty())
    }

    /// Waits until an answer puts nodes in doubt.
    pub(crate) async fn doubted(&self) {
        self.doubted.notified().await;
    }

    fn believe(&self, tenant: &Tenant, answer: SetAnswer<ComponentId>) -> Arc<TenantNodes> {
        let sessions = self.sessions.view().all();
        let running = sessions.iter().map(|record| &record.session);
        let own = running.filter(|one| one.progress == Progress::Running && one.tenant == *tenant);
        let expected = own.flat_map(|session| self.members.held_by(session)).map(|(id, _)| id);
        let mut all = self.believed.lock();
        let before = all.remove(tenant).unwrap_or_default();
        let believed = Arc::new(before.believe(answer, expected, now()));
        if !believed.is_empty() {
            all.insert(tenant.clone(), Arc::clone(&believed));
        }
        drop(all);
        let (missing, doubted) = (believed.in_doubt.len(), before.in_doubt.len());
        if missing > doubted {
            self.doubted.notify_one();
            let tenant = tenant.as_str();
            tracing::warn!(
                tenant,
                missing,
                "nodes missing from the tenant service's answer, waiting for confirmation"
            );
        } else if missing == 0 && doubted > 0 {
            let (tenant, nodes) = (tenant.as_str(), believed.elements.len());
            tracing::info!(tenant, nodes, "membership of the tenant is no longer in doubt");
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
            Ok(Err(DependencyError::Fatal(_))) => Err(Fault::not_found(TENANT, tenant.as_str())),
            Ok(Err(DependencyError::Retryable(outage))) => Err(Fault::unavailable(outage.what, outage.error)),
            Err(_) => {
                let reason = format!("TAPMS gave no answer within {} s", PATIENCE.as_secs());
                Err(Fault::unavailable(TENANTS, reason))
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
                let denial = Some(self.denial(tenant).await);
                let nodes = self.believed.lock().get(tenant).cloned().unwrap_or_default();
                Ok(HeldNodes { nodes: Some(nodes), denial })
            }
            Err(fault) => Err(fault),
        }
    }

    /// Asks for the list of tenants after an answer that `tenant` does not exist: a proxy before the service answers 404
    /// too, and cannot list tenants.
    async fn denial(&self, tenant: &Tenant) -> TenantDenial {
        let error = no_such_tenant(tenant);
        let TenantDriver::Tapms(tapms) = &self.driver else { return TenantDenial::Confirmed(error) };
        match tapms.json::<TapmsTenants>(Request::get("tenant_list", "/tenants")).await {
            Ok(tenants) if !tenants.has(tenant.as_str()) => TenantDenial::Confirmed(error),
            Ok(_) => TenantDenial::Unconfirmed(format!("TAPMS says that {error}, and lists it")),
            Err(failure) => {
                TenantDenial::Unconfirmed(format!("TAPMS says that {error}, and lists no tenants: {failure}"))
            }
        }
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

/// Requests the nodes of a tenant.
async fn ask(tapms: &Peer, name: &str) -> Result<SetAnswer<ComponentId>, DependencyError> {
    // No path addresses a tenant with such a name, however it is encoded.
    if [".", ".."].contains(&name) {
        return Ok(SetAnswer::NoSuchSet);
    }
    let path = format!("/tenants/{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
    // A tenant has its own circuit: the service may fail for a single tenant, for example during its creation.
    match tapms.json::<TapmsTenant>(Request::get("tenant_get", path).about(name)).await {
        Ok(answer) => match answer.other_name(name) {
            None => Ok(SetAnswer::Elements(nodes(answer))),
            Some(other) => {
                let other: String =
                    other.chars().filter(|one| !one.is_control()).take(LONGEST_NAME).collect();
                let error = format!("TAPMS was asked about tenant '{name}' and answered about '{other}'");
                Err(DependencyError::Retryable(DependencyOutage { what: TENANTS, error }))
            }
        },
        Err(failure) if failure.status == Some(StatusCode::NOT_FOUND) => Ok(SetAnswer::NoSuchSet),
        Err(failure) => Err(DependencyError::Retryable(DependencyOutage::from_upstream(TENANTS, failure))),
    }
}

/// Returns the text about nodes in doubt, for people; `None`: no node is in doubt.
pub(crate) fn in_doubt(nodes: &TenantNodes) -> Option<String> {
    let since = bos_time::text(nodes.in_doubt_since()?);
    let missing = nodes.in_doubt.len();
    Some(match nodes.is_denied {
        true => format!(
            "the tenant service says that the tenant does not exist; {missing} nodes are missing since {since}Z, \
             which is being confirmed"
        ),
        false => format!(
            "{missing} nodes are missing from the tenant's list since {since}Z, which is being confirmed"
        ),
    })
}

/// Returns the nodes of all resources. A name without a valid id is skipped.
fn nodes(answer: TapmsTenant) -> BTreeSet<ComponentId> {
    let resources = answer.status.tenantresources.into_iter().flatten();
    let names = resources.flat_map(|resource| resource.xnames.unwrap_or_default());
    names.filter_map(|name| ComponentId::parse(&name).ok()).collect()
}
