//! Creates a component for every node in the inventory (BOS reference 5.11). Never removes a component.

use std::{convert::Infallible, pin::pin, sync::Arc};

use chassis::{
    Fault,
    process::{clock, pause::FailureStreak},
    store::ledger::Draft,
};
use domain::{
    boot::{
        component::{Component, write::newly_discovered},
        session::inventory::NODE,
    },
    core::id::ComponentId,
};
use futures_util::StreamExt;
use tokio::time::{Instant, sleep_until};

use crate::{RegistryState, hints::LEAST_GAP, inventory::InventorySnapshot, store::create};

/// Discovers new nodes at the start and after a hint. The replica that holds the role also discovers nodes
/// periodically, with the period of the option `discovery_frequency`.
pub(crate) async fn run(registry: Arc<RegistryState>) -> anyhow::Result<Infallible> {
    let mut failures = FailureStreak::default();
    loop {
        let began = Instant::now();
        match discover(&registry).await {
            Ok(found) => {
                let failures = failures.end().unwrap_or_default();
                if failures > 0 || found > 0 {
                    tracing::info!(found, failures, "nodes discovered");
                }
            }
            Err(fault) => {
                if failures.add() {
                    tracing::warn!(%fault, "cannot discover nodes");
                }
                tokio::time::sleep(failures.pause()).await;
                continue;
            }
        }
        wait_for_next_poll(&registry, began).await;
    }
}

/// Waits for the next discovery: for the period of the option, which may change meanwhile, or for a hint.
async fn wait_for_next_poll(registry: &RegistryState, began: Instant) {
    let mut changes = pin!(registry.options.follow());
    let mut terms = pin!(registry.role.terms());
    loop {
        let period = registry.options_in_force().discovery_period();
        tokio::select! {
            () = sleep_until(began + period), if registry.role.is_held() => return,
            // A replica that acquires the role late polls at once.
            Some(_) = terms.next() => {}
            () = registry.hints.nodes.notified() => return sleep_until(began + LEAST_GAP).await,
            Some(_) = changes.next() => {}
        }
    }
}

/// Creates the missing components and returns their number.
async fn discover(registry: &RegistryState) -> Result<usize, Fault> {
    let snapshot = registry.inventory.snapshot().await?;
    let known = registry.components.view();
    let new = new_nodes(&snapshot, |id| known.get(id).is_some());
    if new.is_empty() {
        return Ok(0);
    }
    let create_missing = move |draft: &mut Draft<'_, Component>| {
        let now = clock::now();
        // An unreadable record counts as present: an operator has to repair it.
        let missing: Vec<_> = new
            .into_iter()
            .filter(|id| draft.get(id.as_str()).is_none() && !draft.is_unreadable(id.as_str()))
            .collect();
        let Some(first) = missing.first() else { return Ok(0) };
        // All new components share the memory of one blank record.
        let blank = newly_discovered(first.clone(), now);
        let count = missing.len();
        for id in missing {
            let locked = snapshot.locked.contains(id.as_str());
            let mut created = Component { id, ..blank.clone() };
            created.inventory.locked = locked;
            create(draft, created);
        }
        Ok(count)
    };
    Ok(registry.components.write(create_missing).await?.0)
}

/// Returns the nodes of the snapshot that are not known yet and have valid ids.
fn new_nodes(snapshot: &InventorySnapshot, known: impl Fn(&str) -> bool) -> Vec<ComponentId> {
    let mut new = Vec::new();
    let mut impossible = 0_usize;
    for node in snapshot.hardware().filter(|item| item.r#type == NODE && !known(&item.id)) {
        match ComponentId::parse(&node.id) {
            Ok(id) => new.push(id),
            Err(_) => impossible += 1,
        }
    }
    if impossible > 0 {
        tracing::warn!(impossible, "inventory lists nodes with invalid ids");
    }
    new
}

#[cfg(test)]
mod tests {
    use proto::inventory::{Hardware, ListInventoryResponse};

    use super::*;

    #[test]
    fn only_unknown_nodes_with_possible_ids_are_new() {
        let item = |id: &str, kind: &str| Hardware {
            id: id.to_owned(),
            r#type: kind.to_owned(),
            ..Hardware::default()
        };
        let hardware = vec![
            item("x1c0s0b0n0", "Node"),
            item("x1c0s0b0", "NodeBMC"),
            item("x1c0s0b0n1", "Node"),
            item("x1c0s0b0n2", "node"),
            item("", "Node"),
            item(&"x".repeat(128), "Node"),
            item("all", "Node"),
        ];
        let parts = vec![ListInventoryResponse { hardware, ..ListInventoryResponse::default() }];
        let snapshot = InventorySnapshot { parts, ..InventorySnapshot::default() };
        let new = new_nodes(&snapshot, |id| id == "x1c0s0b0n0");
        assert_eq!(new.iter().map(ComponentId::as_str).collect::<Vec<_>>(), ["x1c0s0b0n1", "all"]);
    }
}
