//! One machine, one authority: a node and the host that it is are never switched at the same time
//! ([31](../../decisions/0031-one-authority-for-a-machine.md)).
//!
//! The record of the host decides. A claim is refused while an operation on the host is due or under way, and a decision
//! that makes one due is about an earlier revision once the host is claimed.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use chassis::{
    Fault,
    kinds::{
        component,
        host::{HostRecord, key, record},
    },
    mesh::time,
    process::clock,
    store::{ledger::Draft, resource::Resource as _},
};
use domain::{
    boot::component::report::ActionReport,
    core::{event::Actor, id::ComponentId},
};
use proto::host::{ClaimedHost, NodeClaim};

use crate::{RegistryState, hosts::HostLedgers, locks};

/// Author of claims, in events.
const POWER_CONTROLLER: Actor = Actor::Service("power-controller");

impl RegistryState {
    /// Claims the hosts of nodes whose attempts begin. Returns the ids of nodes whose hosts are worked on: their attempts
    /// must not begin, and the nodes are locked until the inventory says that they are not.
    pub(crate) async fn claim_hosts(&self, reports: &[ActionReport]) -> Result<HashSet<String>, Fault> {
        let claims = self.claims(reports).await?;
        if claims.is_empty() {
            return Ok(HashSet::new());
        }
        let claim = move |draft: &mut Draft<'_, HostRecord>| Ok(claim(draft, claims));
        let (worked_on, _) = self.hosts.hosts.write_by(POWER_CONTROLLER, claim).await?;
        if !worked_on.is_empty() {
            let ids = worked_on.iter().map(|id| Arc::from(id.as_str())).collect();
            self.components.write(locks::setting(ids, true)).await?;
            self.hints.locks.notify_one();
        }
        Ok(worked_on)
    }

    /// Returns the claims of attempts that begin, by the key of the host. Every host with the id of a node is claimed:
    /// which of them is the node may change.
    async fn claims(&self, reports: &[ActionReport]) -> Result<Vec<(Arc<str>, NodeClaim)>, Fault> {
        if !self.lists_hosts {
            return Ok(Vec::new());
        }
        let components = self.components.view();
        let begins = |report: &&ActionReport| {
            components.get(report.id.as_str()).is_none_or(|component| report.may_begin(&component))
        };
        let beginning: HashMap<&ComponentId, &ActionReport> =
            reports.iter().filter(begins).map(|report| (&report.id, report)).collect();
        if beginning.is_empty() {
            return Ok(Vec::new());
        }
        self.hosts.hosts.fresh().await?;
        let claim = |host: &Arc<HostRecord>| {
            let report = beginning.get(&record::node_id(&host.message)?)?;
            Some((host.shared_key(), claim_of(report)))
        };
        Ok(self.hosts.hosts.view().all().iter().filter_map(claim).collect())
    }
}

impl HostLedgers {
    /// Releases claims that are still the same.
    pub(crate) async fn release(&self, claims: Vec<ClaimedHost>) -> Result<(), Fault> {
        let release = move |draft: &mut Draft<'_, HostRecord>| {
            for ClaimedHost { name, claim } in claims {
                let name = name.unwrap_or_default();
                let Some(host) = draft.get(&key(&name.namespace, &name.name)) else {
                    continue;
                };
                if claim.is_some() && host.message.node_claim == claim {
                    let mut host = HostRecord::clone(&host);
                    host.message.node_claim = claim.map(|claim| NodeClaim { released: true, ..claim });
                    draft.put(host);
                }
            }
            Ok(())
        };
        self.hosts.write_by(POWER_CONTROLLER, release).await.map(drop)
    }
}

/// Claims hosts that are not worked on; returns the ids of the nodes of others.
fn claim(draft: &mut Draft<'_, HostRecord>, claims: Vec<(Arc<str>, NodeClaim)>) -> HashSet<String> {
    let is_worked_on = |key: &str| draft.get(key).is_some_and(|host| has_work(&host));
    let worked_on: HashSet<String> = claims
        .iter()
        .filter(|(key, _)| is_worked_on(key))
        .map(|(_, claim)| claim.component_id.clone())
        .collect();
    for (key, claim) in claims {
        let Some(host) = draft.get(&key) else { continue };
        if worked_on.contains(&claim.component_id) || is_same(host.message.node_claim.as_ref(), &claim) {
            continue;
        }
        let mut host = HostRecord::clone(&host);
        host.message.node_claim = Some(claim);
        draft.put(host);
    }
    worked_on
}

fn has_work(host: &HostRecord) -> bool {
    host.message.progress.as_ref().is_some_and(|progress| progress.work.is_some())
}

/// Returns whether a host is claimed for that attempt.
fn is_same(known: Option<&NodeClaim>, claim: &NodeClaim) -> bool {
    known.is_some_and(|known| *known == NodeClaim { since: known.since, ..claim.clone() })
}

fn claim_of(report: &ActionReport) -> NodeClaim {
    NodeClaim {
        component_id: report.id.to_string(),
        generation: report.generation,
        action: component::action_to_wire(report.action).into(),
        attempt: report.attempt,
        since: Some(time::to_wire(clock::now())),
        released: false,
    }
}
