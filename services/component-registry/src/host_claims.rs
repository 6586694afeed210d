//! Claims of hosts for their nodes: a node and the host that it is are never switched at the same time
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
        host::{HostRecord, key, may_be_nodes, record},
    },
    mesh::time,
    process::clock,
    store::ledger::Draft,
};
use domain::{
    boot::component::report::ActionReport,
    core::{event::Actor, id::ComponentId},
};
use proto::host::{ClaimedHost, Host, NodeClaim};

use crate::{RegistryState, hosts::HostLedgers, locks};

/// Author of claims, in events.
const POWER_CONTROLLER: Actor = Actor::Service("power-controller");

impl RegistryState {
    /// Claims the hosts of nodes whose attempts begin. Returns the ids of nodes whose hosts are worked on: their attempts
    /// must not begin, and the nodes are locked until the inventory says that they are not.
    pub(crate) async fn claim_hosts(&self, reports: &[ActionReport]) -> Result<HashSet<String>, Fault> {
        let claims = self.claims(reports);
        if claims.is_empty() {
            return Ok(HashSet::new());
        }
        let claim = move |draft: &mut Draft<'_, HostRecord>| Ok(claim(draft, &claims));
        let (worked_on, _) = self.hosts.hosts.write_by(POWER_CONTROLLER, claim).await?;
        if !worked_on.is_empty() {
            let ids = worked_on.iter().map(|id| Arc::from(id.as_str())).collect();
            self.components.write(locks::setting(ids, true)).await?;
            self.hints.locks.notify_one();
        }
        Ok(worked_on)
    }

    /// Returns the claims of attempts that begin, by the ids of their nodes.
    fn claims(&self, reports: &[ActionReport]) -> HashMap<ComponentId, NodeClaim> {
        if !self.lists_hosts {
            return HashMap::new();
        }
        let components = self.components.view();
        let begins = |report: &&ActionReport| {
            components.get(report.id.as_str()).is_none_or(|component| report.may_begin(&component))
        };
        reports.iter().filter(begins).map(|report| (report.id.clone(), claim_of(report))).collect()
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
                let mut host = host.message();
                if claim.is_some() && host.node_claim == claim {
                    host.node_claim = claim.map(|claim| NodeClaim { released: true, ..claim });
                    draft.put(HostRecord::of(host));
                }
            }
            Ok(())
        };
        self.hosts.write_by(POWER_CONTROLLER, release).await.map(drop)
    }
}

/// Claims hosts that are not worked on; returns the ids of the nodes of others. Every host with the id of a node is
/// claimed: which of them is the node may change.
fn claim(draft: &mut Draft<'_, HostRecord>, claims: &HashMap<ComponentId, NodeClaim>) -> HashSet<String> {
    let claim_on = |host: &Host| claims.get(&record::node_id(host)?);
    let hosts =
        draft.select_among(&[may_be_nodes(claims.keys())], |host| claim_on(&host.message()).is_some());
    let hosts: Vec<_> = hosts.iter().map(|host| host.message()).collect();
    let claimed: Vec<_> =
        hosts.into_iter().filter_map(|host| claim_on(&host).map(|claim| (host, claim))).collect();
    let worked_on = claimed.iter().filter(|(host, _)| has_work(host));
    let worked_on: HashSet<String> = worked_on.map(|(_, claim)| claim.component_id.clone()).collect();
    for (mut host, claim) in claimed {
        if !worked_on.contains(&claim.component_id) && !is_same(host.node_claim.as_ref(), claim) {
            host.node_claim = Some(claim.clone());
            draft.put(HostRecord::of(host));
        }
    }
    worked_on
}

fn has_work(host: &Host) -> bool {
    host.progress.as_ref().is_some_and(|progress| progress.work.is_some())
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
