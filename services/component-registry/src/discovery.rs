//! Makes a component of every node that the inventory lists (BOS reference 5.11). Never removes one.

use std::{convert::Infallible, sync::Arc, time::Duration};

use chassis::{Fault, convert::time, pause};
use domain::{id::ComponentId, inventory::NODE, write::newly_discovered};
use futures_util::StreamExt;
use tokio::time::Instant;

use crate::{Registry, store::create};

/// Looks for new nodes now and then, as often as the option `discovery_frequency` says.
pub(crate) async fn run(registry: Arc<Registry>) -> anyhow::Result<Infallible> {
    let mut failures = 0;
    loop {
        let began = Instant::now();
        match discover(&registry).await {
            Ok(0) => {}
            Ok(found) => tracing::info!(found, "new components discovered"),
            Err(fault) => {
                failures += 1;
                tracing::warn!(%fault, failures, "cannot look for new nodes");
                tokio::time::sleep(pause::after(failures)).await;
                continue;
            }
        }
        failures = 0;
        until_next_look(&registry, began).await;
    }
}

/// Waits as long as the option says, and no longer when the option is changed meanwhile.
async fn until_next_look(registry: &Registry, began: Instant) {
    let mut changes = std::pin::pin!(registry.options.follow());
    loop {
        // A frequency of zero would read the inventory without a break.
        let period = Duration::from_secs(registry.options_in_force().discovery_frequency.max(1).into());
        tokio::select! {
            () = tokio::time::sleep_until(began + period) => return,
            Some(_) = changes.next() => {}
        }
    }
}

/// Creates the components that are missing and says how many.
async fn discover(registry: &Registry) -> Result<usize, Fault> {
    let hardware = registry.inventory.read().await?.into_iter().flat_map(|part| part.hardware);
    let nodes = hardware.filter(|item| item.r#type == NODE);
    let known = registry.components.view();
    let new: Vec<ComponentId> = nodes
        .filter(|node| known.get(&node.id).is_none())
        .filter_map(|node| match ComponentId::parse(&node.id) {
            Ok(id) => Some(id),
            Err(invalid) => {
                tracing::warn!(id = node.id, %invalid, "the inventory lists a node that cannot be a component");
                None
            }
        })
        .collect();
    let (created, _) = registry
        .components
        .write(move |draft| {
            let now = time::now();
            let missing: Vec<_> = new.into_iter().filter(|id| draft.get(id.as_str()).is_none()).collect();
            let created = missing.len();
            missing.into_iter().for_each(|id| create(draft, newly_discovered(id, now)));
            Ok(created)
        })
        .await?;
    Ok(created)
}
