//! Makes a component of every node that the inventory lists (BOS reference 5.11). Never removes one.

use std::{sync::Arc, time::Duration};

use chassis::{Fault, convert::time, kinds::OptionsRecord};
use domain::{id::ComponentId, inventory::NODE, options::Options, write::newly_discovered};
use futures_util::StreamExt;
use tokio::time::Instant;

use crate::{Registry, store::create};

/// Pause after the inventory could not be read: a mesh that starts finds its fleet at once, and an
/// inventory that is away is not pestered.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Looks for new nodes now and then, as often as the option `discovery_frequency` says.
pub(crate) async fn run(registry: Arc<Registry>) -> anyhow::Result<()> {
    let shutdown = registry.shutdown.clone();
    shutdown.run_until_cancelled(look_for_ever(&registry)).await;
    Ok(())
}

async fn look_for_ever(registry: &Registry) {
    let mut pause = FIRST_PAUSE;
    loop {
        let began = Instant::now();
        match discover(registry).await {
            Ok(0) => pause = FIRST_PAUSE,
            Ok(found) => {
                pause = FIRST_PAUSE;
                tracing::info!(found, "new components discovered");
            }
            Err(fault) => {
                tracing::warn!(%fault, "cannot look for new nodes");
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(LONGEST_PAUSE);
                continue;
            }
        }
        until_next_look(registry, began).await;
    }
}

/// Waits as long as the option says, and no longer when the option is changed meanwhile.
async fn until_next_look(registry: &Registry, began: Instant) {
    let view = registry.options.view();
    let mut changes = std::pin::pin!(registry.options.follow());
    loop {
        let options =
            view.get(OptionsRecord::KEY).map_or_else(Options::default, |record| record.options.clone());
        // A frequency of zero would read the inventory without a break.
        let period = Duration::from_secs(options.discovery_frequency.max(1).into());
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
