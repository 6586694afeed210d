//! Which nodes a tenant has (BOS reference 6.6, 9).

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use chassis::{
    Fault,
    convert::time::now,
    ledger::Ledger,
    settings::{self, TenantsDriver},
};
use domain::{
    bos_time,
    confirmed_set::{ConfirmedSet, SetAnswer},
    id::{ComponentId, Tenant},
    session::Progress,
};
use http::StatusCode;
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use tokio::sync::Notify;
use upstream::{Peer, Request};

use crate::{
    answers::Answers,
    members::Members,
    setback::{MEMBERSHIP, Outage, Setback},
    store::Sessions,
};

mod rpc;

pub(crate) use rpc::TenantRpc;

/// Who does not answer, in texts for people.
const TENANTS: &str = "tenant service";

/// The kind of resource that a tenant is.
const TENANT: &str = "tenant";

/// How long an answer is used, so that requests and sessions that follow one another need one call. Nodes change
/// hands by hand, which takes longer.
const AGE: Duration = Duration::from_secs(3);

/// How long a caller waits. The gateway waits for longer and would not know whom it waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Who is asked about tenants.
#[derive(Clone)]
enum Driver {
    /// Nobody: every tenant may use every node.
    None,
    /// The tenant and partition management service.
    Tapms(Peer),
}

/// The nodes of a tenant as far as they are confirmed.
pub(crate) type TenantNodes = ConfirmedSet<ComponentId>;

/// The nodes that somebody may use; `None`: every node.
pub(crate) type Nodes = Option<Arc<TenantNodes>>;

/// The nodes that a tenant has of those that its running sessions hold.
pub(crate) struct HeldNodes {
    pub(crate) nodes: Nodes,
    /// Error with which the sessions end, because the tenant does not exist any more.
    pub(crate) error: Option<String>,
}

/// The nodes of tenants, for many setups and callers at a time.
pub(crate) struct Tenants {
    driver: Driver,
    nodes: Answers<Tenant, Arc<TenantNodes>>,
    /// The set of each tenant that was believed last, in which the next answer is checked for absences.
    believed: Mutex<HashMap<Tenant, Arc<TenantNodes>>>,
    sessions: Ledger<Sessions>,
    members: Arc<Members>,
    /// An answer has put nodes in doubt.
    doubted: Notify,
}

/// The part of an answer that counts. Lists that are empty may be left out; a tenant without status is one that
/// nobody has given its nodes to yet.
#[derive(Deserialize)]
struct Answer {
    status: Status,
}

#[derive(Deserialize)]
struct Status {
    tenantresources: Option<Vec<Resource>>,
}

#[derive(Deserialize)]
struct Resource {
    xnames: Option<Vec<String>>,
}

impl Tenants {
    /// Tenants as the settings say who knows them. The nodes that hold running `sessions` are expected in the answers.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(
        settings: &settings::Tenants,
        sessions: Ledger<Sessions>,
        members: Arc<Members>,
    ) -> anyhow::Result<Self> {
        let driver = match settings.driver {
            TenantsDriver::None => Driver::None,
            TenantsDriver::Tapms => {
                let peer = Peer::new("TAPMS", &settings.tapms).context("tenants.tapms")?;
                peer.check_credentials("tenants.tapms");
                Driver::Tapms(peer)
            }
        };
        Ok(Self {
            driver,
            nodes: Answers::new(AGE),
            believed: Mutex::default(),
            sessions,
            members,
            doubted: Notify::new(),
        })
    }

    /// The nodes that `tenant` may use, those in doubt included.
    ///
    /// # Errors
    /// [`Setback::Wait`] when nobody tells, [`Setback::Fail`] when there is no such tenant.
    pub(crate) async fn nodes(&self, tenant: &Tenant) -> Result<Nodes, Setback> {
        match &self.driver {
            Driver::Tapms(tapms) if !tenant.is_none() => {
                let ask = || async {
                    match ask(tapms, tenant.as_str()).await? {
                        Some(nodes) => Ok(self.believe(tenant, SetAnswer::Elements(nodes))),
                        None => {
                            self.believe(tenant, SetAnswer::NoSuchSet);
                            Err(Setback::Fail(no_such_tenant(tenant)))
                        }
                    }
                };
                self.nodes.get(tenant.clone(), ask).await.map(Some)
            }
            Driver::Tapms(_) | Driver::None => Ok(None),
        }
    }

    /// As [`Self::nodes`], for callers that begin something on nodes: they wait until no node is in doubt.
    ///
    /// # Errors
    /// As [`Self::nodes`]; [`Setback::Wait`] also while nodes are in doubt.
    pub(crate) async fn confirmed_nodes(&self, tenant: &Tenant) -> Result<Nodes, Setback> {
        let nodes = self.nodes(tenant).await?;
        match nodes.as_deref().and_then(in_doubt) {
            Some(error) => Err(Setback::Wait(Outage { what: MEMBERSHIP, error })),
            None => Ok(nodes),
        }
    }

    /// Whether nodes of any tenant are in doubt.
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
        if *believed != TenantNodes::default() {
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

    /// The same for somebody who waits for it.
    ///
    /// # Errors
    /// [`Fault::NotFound`] when there is no such tenant, [`Fault::Unavailable`] when nobody tells in time.
    pub(crate) async fn told(&self, tenant: &Tenant) -> Result<Nodes, Fault> {
        match tokio::time::timeout(PATIENCE, self.nodes(tenant)).await {
            Ok(Ok(nodes)) => Ok(nodes),
            Ok(Err(Setback::Fail(_))) => Err(Fault::not_found(TENANT, tenant.as_str())),
            Ok(Err(Setback::Wait(outage))) => Err(Fault::unavailable(outage.what, outage.error)),
            Err(_) => {
                let reason = format!("TAPMS gave no answer within {} s", PATIENCE.as_secs());
                Err(Fault::unavailable(TENANTS, reason))
            }
        }
    }

    /// As [`Self::told`], for nodes that running sessions hold: all of them have left a tenant that does not exist.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] when nobody tells in time.
    pub(crate) async fn held(&self, tenant: &Tenant) -> Result<HeldNodes, Fault> {
        match self.told(tenant).await {
            Ok(nodes) => Ok(HeldNodes { nodes, error: None }),
            Err(Fault::NotFound { .. }) => {
                let nodes = self.believed.lock().get(tenant).cloned().unwrap_or_default();
                Ok(HeldNodes { nodes: Some(nodes), error: Some(no_such_tenant(tenant)) })
            }
            Err(fault) => Err(fault),
        }
    }

    /// As [`Self::told`], for nodes that a tenant had once: one that is gone has none.
    ///
    /// # Errors
    /// [`Fault::Unavailable`] when nobody tells in time.
    pub(crate) async fn left(&self, tenant: &Tenant) -> Result<Nodes, Fault> {
        match self.told(tenant).await {
            Err(Fault::NotFound { .. }) => Ok(Some(Arc::default())),
            told => told,
        }
    }
}

/// Error of sessions whose tenant is not known.
fn no_such_tenant(tenant: &Tenant) -> String {
    format!("tenant '{}' does not exist", tenant.as_str())
}

/// The nodes of the tenant as the service answers; `None`: there is no such tenant.
async fn ask(tapms: &Peer, name: &str) -> Result<Option<BTreeSet<ComponentId>>, Setback> {
    // No path leads to a tenant with such a name, however it is encoded.
    if [".", ".."].contains(&name) {
        return Ok(None);
    }
    let path = format!("/tenants/{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
    // A tenant may be in trouble of its own, for example while it is being made.
    match tapms.json::<Answer>(Request::get("tenant_get", path).about(name)).await {
        Ok(answer) => Ok(Some(nodes(answer))),
        Err(failure) if failure.status == Some(StatusCode::NOT_FOUND) => Ok(None),
        Err(failure) => Err(Setback::Wait(Outage::from_upstream(TENANTS, failure))),
    }
}

/// The text about nodes in doubt, for people; `None`: there are none.
pub(crate) fn in_doubt(nodes: &TenantNodes) -> Option<String> {
    let since = bos_time::text(nodes.in_doubt_since()?);
    let missing = nodes.in_doubt.len();
    Some(format!(
        "{missing} nodes are missing from the tenant's list since {since}Z, which is being confirmed"
    ))
}

/// The nodes of all resources together. What has no possible id is no node of anybody.
fn nodes(answer: Answer) -> BTreeSet<ComponentId> {
    let resources = answer.status.tenantresources.into_iter().flatten();
    let names = resources.flat_map(|resource| resource.xnames.unwrap_or_default());
    names.filter_map(|name| ComponentId::parse(&name).ok()).collect()
}
