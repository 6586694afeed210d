//! Which nodes a tenant has (BOS reference 6.6, 9).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{
    Fault,
    settings::{self, TenantsDriver},
};
use domain::id::{ComponentId, Tenant};
use http::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use upstream::{Peer, Request};

use crate::{
    answers::Answers,
    setback::{Outage, Setback},
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

/// The nodes that somebody may use; `None`: every node.
pub(crate) type Nodes = Option<Arc<BTreeSet<ComponentId>>>;

/// The nodes of tenants, for many setups and callers at a time.
pub(crate) struct Tenants {
    driver: Driver,
    nodes: Answers<Tenant, Arc<BTreeSet<ComponentId>>>,
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
    /// Tenants as the settings say who knows them.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(settings: &settings::Tenants) -> anyhow::Result<Self> {
        let driver = match settings.driver {
            TenantsDriver::None => Driver::None,
            TenantsDriver::Tapms => {
                let peer = Peer::new("TAPMS", &settings.tapms).context("tenants.tapms")?;
                peer.check_credentials("tenants.tapms");
                Driver::Tapms(peer)
            }
        };
        Ok(Self { driver, nodes: Answers::new(AGE) })
    }

    /// The nodes that `tenant` may use.
    ///
    /// # Errors
    /// [`Setback::Wait`] when nobody tells, [`Setback::Fail`] when there is no such tenant.
    pub(crate) async fn nodes(&self, tenant: &Tenant) -> Result<Nodes, Setback> {
        match &self.driver {
            Driver::Tapms(tapms) if !tenant.is_none() => {
                self.nodes.get(tenant.clone(), || ask(tapms, tenant.as_str())).await.map(Some)
            }
            Driver::Tapms(_) | Driver::None => Ok(None),
        }
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

async fn ask(tapms: &Peer, name: &str) -> Result<Arc<BTreeSet<ComponentId>>, Setback> {
    let unknown = || Setback::Fail(format!("tenant '{name}' does not exist"));
    // No path leads to a tenant with such a name, however it is encoded.
    if [".", ".."].contains(&name) {
        return Err(unknown());
    }
    let path = format!("/tenants/{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
    // A tenant may be in trouble of its own, for example while it is being made.
    match tapms.json::<Answer>(Request::get("tenant_get", path).about(name)).await {
        Ok(answer) => Ok(Arc::new(nodes(answer))),
        Err(failure) if failure.status == Some(StatusCode::NOT_FOUND) => Err(unknown()),
        Err(failure) => Err(Setback::Wait(Outage::from_upstream(TENANTS, failure))),
    }
}

/// The nodes of all resources together. What has no possible id is no node of anybody.
fn nodes(answer: Answer) -> BTreeSet<ComponentId> {
    let resources = answer.status.tenantresources.into_iter().flatten();
    let names = resources.flat_map(|resource| resource.xnames.unwrap_or_default());
    names.filter_map(|name| ComponentId::parse(&name).ok()).collect()
}
