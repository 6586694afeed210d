//! Forgets what nodes reported too long ago (BOS reference 5.12): each component is looked at when its own
//! report comes of age.

use std::{convert::Infallible, sync::Arc, time::Duration};

use chassis::{Fault, convert::time, ledger::Draft, resource::Resource, work::WorkQueue};
use domain::{
    component::Component,
    write::{actual_state_expires, expire_actual_state},
};
use futures_util::StreamExt;
use tokio::time::Instant;

use crate::Registry;

/// Components in one write.
const BATCH: usize = 5_000;

/// Pause before a write is tried again that the database did not take.
const PAUSE: Duration = Duration::from_secs(5);

/// Forgets reports as they come of age, for ever.
pub(crate) async fn run(registry: Arc<Registry>) -> anyhow::Result<Infallible> {
    let due = WorkQueue::default();
    let mut components = std::pin::pin!(registry.components.follow());
    let mut options = std::pin::pin!(registry.options.follow());
    loop {
        tokio::select! {
            Some(changed) = components.next() => schedule(&registry, &due, &changed.changed),
            Some(_) = options.next() => schedule(&registry, &due, &registry.components.view().all()),
            ids = due.next(BATCH) => {
                match expire(&registry, ids.clone()).await {
                    // A clock that was set back has left some of them too young.
                    Ok(()) => schedule(&registry, &due, &registry.stored(&ids)),
                    Err(fault) => {
                        tracing::warn!(%fault, components = ids.len(), "old reports could not be forgotten");
                        ids.into_iter().for_each(|id| due.mark_at(id, Instant::now() + PAUSE));
                    }
                }
            }
        }
    }
}

/// Sets for each component the time at which its report is too old.
fn schedule(registry: &Registry, due: &WorkQueue<Arc<str>>, components: &[Arc<Component>]) {
    let (ttl, now, instant) = (registry.options_in_force().actual_state_ttl(), time::now(), Instant::now());
    for component in components {
        let id = component.shared_key();
        match actual_state_expires(component, ttl) {
            Some(at) => due.mark_at(id, instant + at.since(now)),
            None => due.unmark(&id),
        }
    }
}

async fn expire(registry: &Registry, ids: Vec<Arc<str>>) -> Result<(), Fault> {
    let (ttl, compatibility) = (registry.options_in_force().actual_state_ttl(), registry.compatibility);
    let forget = move |draft: &mut Draft<'_, Component>| {
        let now = time::now();
        for id in ids {
            let stored = draft.get(&id);
            let expired =
                stored.and_then(|component| expire_actual_state(&component, ttl, compatibility, now));
            expired.into_iter().for_each(|component| draft.put(component));
        }
        Ok(())
    };
    registry.components.write(forget).await?;
    Ok(())
}

impl Registry {
    fn stored(&self, ids: &[Arc<str>]) -> Vec<Arc<Component>> {
        ids.iter().filter_map(|id| self.components.view().get(id)).collect()
    }
}
