//! Forgets what nodes reported too long ago (BOS reference 5.12), when the oldest report comes of age.
//!
//! Nothing is kept for each component. Nodes report again long before that, so that there is seldom anything to forget,
//! and then one look at all of them takes milliseconds.

use std::{convert::Infallible, sync::Arc, time::Duration};

use chassis::{Fault, convert::time, ledger::Draft, resource::Resource};
use domain::{
    component::Component,
    time::Timestamp,
    write::{actual_state_expires, expire_actual_state},
};
use futures_util::StreamExt;
use tokio::time::{Instant, sleep_until};

use crate::Registry;

/// Components in one write.
const BATCH: usize = 5_000;

/// Pause before a write is tried again that the database did not take.
const PAUSE: Duration = Duration::from_secs(5);

/// Least time between two looks at all components: nodes that fell silent together come of age one by one.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Forgets reports as they come of age, for ever.
pub(crate) async fn run(registry: Arc<Registry>) -> anyhow::Result<Infallible> {
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
                next = look(&registry).await;
            }
        }
    }
}

/// When the first report of these components is too old; none: there is none.
fn first(registry: &Registry, components: &[Arc<Component>]) -> Option<Instant> {
    let ttl = registry.options_in_force().actual_state_ttl();
    let first = components.iter().filter_map(|component| actual_state_expires(component, ttl)).min();
    first.map(|at| Instant::now() + at.since(time::now()))
}

/// Forgets what is too old, and says when to look again.
async fn look(registry: &Registry) -> Option<Instant> {
    let soonest = Instant::now() + BETWEEN_LOOKS;
    for ids in registry.of_age(time::now()).chunks(BATCH) {
        if let Err(fault) = expire(registry, ids.to_vec()).await {
            tracing::warn!(%fault, components = ids.len(), "old reports could not be forgotten");
            return Some(Instant::now() + PAUSE);
        }
    }
    // A clock that was set back has left some of them too young.
    first(registry, &registry.components.view().all()).map(|at| at.max(soonest))
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
    /// The components whose reports are too old by `now`.
    fn of_age(&self, now: Timestamp) -> Vec<Arc<str>> {
        let ttl = self.options_in_force().actual_state_ttl();
        let is_old = |component: &Component| actual_state_expires(component, ttl).is_some_and(|at| at <= now);
        let all = self.components.view().all();
        all.iter().filter(|component| is_old(component)).map(|component| component.shared_key()).collect()
    }
}
