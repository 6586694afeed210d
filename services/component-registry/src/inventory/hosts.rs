//! Bare-metal hosts as an inventory.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    pin::pin,
    sync::Arc,
};

use chassis::{
    Fault,
    kinds::host::{HostRecord, record},
    store::resource::Resource as _,
};
use domain::{
    boot::session::inventory::NODE,
    host::node::{self, HostNode},
};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use proto::inventory::Hardware;

use super::{InventorySnapshot, labelled};
use crate::{RegistryState, hosts::HostLedgers};

/// Role of every node.
const ROLE: &str = "Compute";

/// Source of the nodes that hosts become.
#[derive(Default)]
pub(crate) struct HostNodes {
    /// Warnings about hosts that are left out, so that each is logged once.
    warnings: Mutex<BTreeSet<String>>,
}

impl HostNodes {
    /// Lists the hosts that are nodes.
    ///
    /// # Errors
    /// The database does not answer.
    pub(super) async fn snapshot(&self, hosts: &HostLedgers) -> Result<InventorySnapshot, Fault> {
        hosts.hosts.fresh().await?;
        let mut warnings = BTreeSet::new();
        let mut marked = Vec::new();
        for record in hosts.hosts.view().all() {
            match record::marked(&record.message()) {
                Ok(host) => marked.push(host),
                Err(error) => drop(warnings.insert(warning(record.key(), &error))),
            }
        }
        let listing = node::list(marked);
        let left_out = listing.left_out.iter();
        warnings.extend(
            left_out.map(|(host, reason)| warning(&format!("{}/{}", host.namespace, host.name), reason)),
        );
        self.log_new(warnings);
        Ok(snapshot(&listing.nodes))
    }

    fn log_new(&self, warnings: BTreeSet<String>) {
        let before = std::mem::replace(&mut *self.warnings.lock(), warnings.clone());
        for warning in warnings.difference(&before) {
            tracing::warn!(warning, "host left out of the inventory");
        }
    }
}

/// Triggers a discovery whenever a host has become a node that is not a component yet.
///
/// # Errors
/// The records cannot be followed.
pub(crate) async fn follow(registry: Arc<RegistryState>) -> anyhow::Result<Infallible> {
    let mut changes = pin!(registry.hosts.hosts.follow());
    while let Some(batch) = changes.next().await {
        let components = registry.components.view();
        let is_new = |record: &Arc<HostRecord>| {
            record::node(&record.message()).is_some_and(|node| components.get(node.id.as_str()).is_none())
        };
        if batch.changed.iter().any(is_new) {
            registry.hints.nodes.notify_one();
        }
    }
    anyhow::bail!("the hosts cannot be followed any more")
}

fn warning(host: &str, reason: impl std::fmt::Display) -> String {
    format!("{host}: {reason}")
}

fn snapshot(nodes: &[HostNode]) -> InventorySnapshot {
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for node in nodes {
        if let Some(group) = &node.group {
            groups.entry(group).or_default().push(node.id.to_string());
        }
    }
    InventorySnapshot::new(nodes.iter().map(hardware).collect(), labelled(groups), Vec::new())
}

fn hardware(node: &HostNode) -> Hardware {
    Hardware {
        id: node.id.to_string(),
        r#type: NODE.to_owned(),
        role: ROLE.to_owned(),
        arch: node.architecture.to_owned(),
        enabled: true,
        locked: node.is_worked_on,
        nid: node.nid,
        ..Hardware::default()
    }
}
