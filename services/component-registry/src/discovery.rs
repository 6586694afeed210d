//! Makes a component of every node that the inventory lists (BOS reference 5.11). Never removes one.

use std::{convert::Infallible, pin::pin, sync::Arc};

use chassis::{Fault, convert::time, ledger::Draft, pause};
use domain::{component::Component, id::ComponentId, inventory::NODE, write::newly_discovered};
use futures_util::StreamExt;
use tokio::time::{Instant, sleep_until};

use crate::{FOR_ALL, Registry, hints::LEAST_GAP, inventory::Picture, store::create};

/// Looks for new nodes at the start and when a hint comes. One replica also looks for all now and then, as often as the
/// option `discovery_frequency` says.
pub(crate) async fn run(registry: Arc<Registry>) -> anyhow::Result<Infallible> {
    let mut failures = 0;
    loop {
        let began = Instant::now();
        match discover(&registry).await {
            Ok(found) => {
                if failures > 0 || found > 0 {
                    tracing::info!(found, failures, "looked for new nodes");
                }
            }
            Err(fault) => {
                failures += 1;
                if failures == 1 {
                    tracing::warn!(%fault, "cannot look for new nodes");
                }
                tokio::time::sleep(pause::after(failures)).await;
                continue;
            }
        }
        failures = 0;
        until_next_look(&registry, began).await;
    }
}

/// Waits as long as the option says, and no longer when the option is changed meanwhile or a hint comes.
async fn until_next_look(registry: &Registry, began: Instant) {
    let mut changes = pin!(registry.options.follow());
    let mut handovers = pin!(registry.leases.changes());
    loop {
        let period = registry.options_in_force().discovery_period();
        tokio::select! {
            () = sleep_until(began + period), if registry.leases.holds(FOR_ALL) => return,
            // Who comes to it late looks at once.
            Some(_) = handovers.next() => {}
            () = registry.hints.nodes.notified() => return sleep_until(began + LEAST_GAP).await,
            Some(_) = changes.next() => {}
        }
    }
}

/// Creates the components that are missing and says how many.
async fn discover(registry: &Registry) -> Result<usize, Fault> {
    let picture = registry.inventory.picture().await?;
    let known = registry.components.view();
    let new = new_nodes(&picture, |id| known.get(id).is_some());
    if new.is_empty() {
        return Ok(0);
    }
    let create_missing = move |draft: &mut Draft<'_, Component>| {
        let now = time::now();
        // One that cannot be read is there, and waits for somebody to mend it.
        let is_missing = |id: &str| draft.get(id).is_none() && !draft.is_unreadable(id);
        let missing: Vec<_> = new.into_iter().filter(|id| is_missing(id.as_str())).collect();
        let Some(first) = missing.first() else { return Ok(0) };
        // All say the same, and share the memory of it.
        let blank = newly_discovered(first.clone(), now);
        let created = missing.len();
        for id in missing {
            let locked = picture.locked.contains(id.as_str());
            create(draft, Component { id, locked, ..blank.clone() });
        }
        Ok(created)
    };
    Ok(registry.components.write(create_missing).await?.0)
}

/// Nodes of the picture that are not known yet and can be components.
fn new_nodes(picture: &Picture, known: impl Fn(&str) -> bool) -> Vec<ComponentId> {
    let (mut new, mut impossible) = (Vec::new(), 0_usize);
    for node in picture.hardware().filter(|item| item.r#type == NODE && !known(&item.id)) {
        match ComponentId::parse(&node.id) {
            Ok(id) => new.push(id),
            Err(_) => impossible += 1,
        }
    }
    if impossible > 0 {
        tracing::warn!(impossible, "the inventory lists nodes whose ids no component can have");
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
        let picture = Picture { parts, ..Picture::default() };
        let new = new_nodes(&picture, |id| id == "x1c0s0b0n0");
        assert_eq!(new.iter().map(ComponentId::as_str).collect::<Vec<_>>(), ["x1c0s0b0n1", "all"]);
    }
}
