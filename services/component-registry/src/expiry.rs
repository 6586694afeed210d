//! Deletes the reported state of nodes after its time to live (BOS reference 5.12).
//!
//! The task keeps no state per component. Nodes report again long before their reports expire, so that there is
//! seldom work, and then one pass over all components takes milliseconds.

use std::{convert::Infallible, sync::Arc, time::Duration};

use chassis::{
    Fault,
    process::clock,
    store::{ledger::Draft, resource::Resource},
};
use domain::{
    boot::component::{
        Component,
        write::{actual_state_expires, expire_actual_state},
    },
    core::time::Timestamp,
};
use futures_util::StreamExt;
use tokio::time::{Instant, sleep_until};

use crate::RegistryState;

/// Components in one write.
const BATCH: usize = 5_000;

/// Pause before a failed write is retried.
const PAUSE: Duration = Duration::from_secs(5);

/// Least time between two passes: the reports of nodes that fell silent together expire one by one.
const BETWEEN_PASSES: Duration = Duration::from_secs(1);

/// Deletes reports as they expire, for ever.
pub(crate) async fn run(registry: Arc<RegistryState>) -> anyhow::Result<Infallible> {
    let mut components = std::pin::pin!(registry.components.follow());
    let mut options = std::pin::pin!(registry.options.follow());
    let mut next = None;
    loop {
        tokio::select! {
            Some(changed) = components.next() => {
                next = next.into_iter().chain(first(&registry, &changed.changed)).min();
            }
            Some(_) = options.next() => next = first(&registry, &registry.components.view().all()),
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                next = delete_expired(&registry).await;
            }
        }
    }
}

/// Returns the time at which the first report of these components expires; none: no component has a report.
fn first(registry: &RegistryState, components: &[Arc<Component>]) -> Option<Instant> {
    let ttl = registry.options_in_force().actual_state_ttl();
    let first = components.iter().filter_map(|component| actual_state_expires(component, ttl)).min();
    first.map(|at| Instant::now() + at.since(clock::now()))
}

/// Deletes expired reports, and returns the time of the next pass.
async fn delete_expired(registry: &RegistryState) -> Option<Instant> {
    let soonest = Instant::now() + BETWEEN_PASSES;
    for ids in registry.expired(clock::now()).chunks(BATCH) {
        if let Err(fault) = expire(registry, ids.to_vec()).await {
            tracing::warn!(%fault, components = ids.len(), "cannot delete expired reports of nodes");
            return Some(Instant::now() + PAUSE);
        }
    }
    // If the clock was set back, some reports have not expired yet.
    first(registry, &registry.components.view().all()).map(|at| at.max(soonest))
}

async fn expire(registry: &RegistryState, ids: Vec<Arc<str>>) -> Result<(), Fault> {
    let ttl = registry.options_in_force().actual_state_ttl();
    let compatibility = registry.compatibility;
    let expire = move |draft: &mut Draft<'_, Component>| {
        let now = clock::now();
        for id in ids {
            let stored = draft.get(&id);
            let expired =
                stored.and_then(|component| expire_actual_state(&component, ttl, compatibility, now));
            expired.into_iter().for_each(|component| draft.put(component));
        }
        Ok(())
    };
    registry.components.write(expire).await?;
    Ok(())
}

impl RegistryState {
    /// Returns the components whose reports have expired at `now`.
    fn expired(&self, now: Timestamp) -> Vec<Arc<str>> {
        let ttl = self.options_in_force().actual_state_ttl();
        let mut expired = Vec::new();
        for component in self.components.view().all() {
            if actual_state_expires(&component, ttl).is_some_and(|at| at <= now) {
                expired.push(component.shared_key());
            }
        }
        expired
    }
}
