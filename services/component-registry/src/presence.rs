//! Keeps in the records of enabled nodes whether the inventory lists them (BOS reference 5.2, "HSM presence").
//!
//! A component that begins a generation is asked for by its id, unless it was assigned by a session whose listing is fresh.
//! Later listings of the whole inventory put nodes in doubt that they lack, and those are asked for again.

use std::{collections::HashSet, convert::Infallible, pin::pin, sync::Arc, time::Duration};

use chassis::{Fault, convert::time, ledger::Draft, pause, resource::Resource, work::WorkQueue};
use domain::{component::Component, id::ComponentId, presence, time::Timestamp, trouble::Trouble};
use futures_util::StreamExt;
use tokio::time::Instant;

use crate::{FOR_ALL, Registry};

/// Components that are asked for at once. More than these are looked for in a listing of everything.
pub(crate) const BATCH: usize = 2_000;

/// How old a listing may be that counts for a session: sessions read the inventory right before they assign.
const FRESH: Duration = Duration::from_secs(60);

/// Components that the inventory listed when it was last read as a whole.
#[derive(Debug)]
pub(crate) struct Listing {
    /// When the reading began.
    pub(crate) read_at: Instant,
    /// Ids of the components that were listed.
    pub(crate) ids: HashSet<Arc<str>>,
}

/// Follows the presence of enabled components for ever.
pub(crate) async fn run(registry: Arc<Registry>) -> anyhow::Result<Infallible> {
    let queue = WorkQueue::default();
    tokio::select! {
        () = mark_changes(&registry, &queue) => anyhow::bail!("the components cannot be followed any more"),
        () = mark_gained(&registry, &queue) => anyhow::bail!("the leases cannot be followed any more"),
        () = take_in_listings(&registry) => anyhow::bail!("nobody reads the inventory any more"),
        never = ask(&registry, &queue) => never,
    }
}

/// Marks components of which the inventory is to be asked, at the time at which it is.
async fn mark_changes(registry: &Registry, queue: &WorkQueue<ComponentId>) {
    let mut changes = pin!(registry.components.follow());
    while let Some(batch) = changes.next().await {
        mark(registry, queue, batch.changed.iter().map(|component| &**component));
    }
}

async fn mark_gained(registry: &Registry, queue: &WorkQueue<ComponentId>) {
    let mut handovers = pin!(registry.leases.changes());
    while let Some(handover) = handovers.next().await {
        if handover.concerns(FOR_ALL) {
            mark(registry, queue, registry.components.view().all().iter().map(|component| &**component));
        }
    }
}

fn mark<'a>(
    registry: &Registry,
    queue: &WorkQueue<ComponentId>,
    components: impl Iterator<Item = &'a Component>,
) {
    if !registry.leases.holds(FOR_ALL) {
        return;
    }
    let (options, now) = (registry.options_in_force(), time::now());
    for component in components.filter(|component| component.is_enabled()) {
        match component.presence.ask_in(&options, now) {
            Some(Duration::ZERO) => queue.mark([component.id.clone()]),
            Some(wait) => queue.mark_at(component.id.clone(), Instant::now() + wait),
            None => {}
        }
    }
}

/// Asks for marked components and writes the answers.
async fn ask(registry: &Registry, queue: &WorkQueue<ComponentId>) -> anyhow::Result<Infallible> {
    let mut failures = 0;
    loop {
        let ids = queue.next(BATCH).await;
        let asked = wanted(registry, &ids);
        if asked.is_empty() {
            continue;
        }
        match ask_about(registry, asked.clone()).await {
            Ok(()) => {
                if failures > 0 {
                    tracing::info!(failures, "the inventory answers again about enabled nodes");
                }
                failures = 0;
                let view = registry.components.view();
                let newest: Vec<_> = asked.iter().filter_map(|one| view.get(one.key())).collect();
                mark(registry, queue, newest.iter().map(|component| &**component));
            }
            Err(fault) => {
                failures += 1;
                if failures == 1 {
                    tracing::warn!(%fault, nodes = asked.len(), "the inventory does not answer about enabled nodes");
                }
                let at = Instant::now() + pause::after(failures);
                asked.iter().for_each(|component| queue.mark_at(component.id.clone(), at));
                show_trouble(registry, asked, &fault).await;
            }
        }
    }
}

/// Components among `ids` of which the inventory is to be asked now.
fn wanted(registry: &Registry, ids: &[ComponentId]) -> Vec<Arc<Component>> {
    if !registry.leases.holds(FOR_ALL) {
        return Vec::new();
    }
    let (view, options, now) = (registry.components.view(), registry.options_in_force(), time::now());
    let waits = |component: &Arc<Component>| {
        component.is_enabled() && component.presence.ask_in(&options, now).is_some()
    };
    ids.iter().filter_map(|id| view.get(id.as_str())).filter(waits).collect()
}

async fn ask_about(registry: &Registry, asked: Vec<Arc<Component>>) -> Result<(), Fault> {
    let ids = asked.iter().map(|component| component.shared_key()).collect();
    let listed = registry.inventory.listed(ids, registry.answer_within()).await?;
    write(registry, asked, move |component, now| {
        presence::answered(component, listed.contains(component.id.as_str()), now)
    })
    .await
}

/// Shows which peer components wait for. A failure to do so is one of the database, which tells of itself.
async fn show_trouble(registry: &Registry, asked: Vec<Arc<Component>>, fault: &Fault) {
    let Fault::Unavailable { reason, .. } = fault else { return };
    let trouble = Arc::clone(Trouble::waiting_for(reason).text());
    let written = write(registry, asked, move |component, _| presence::unanswered(component, &trouble)).await;
    if let Err(fault) = written {
        tracing::debug!(%fault, "trouble of the inventory was not written");
    }
}

/// Writes what each new listing says about enabled components. One that lists nothing at all is not believed.
async fn take_in_listings(registry: &Registry) {
    let mut listings = registry.inventory.listing();
    while listings.changed().await.is_ok() {
        let Some(listing) = listings.borrow_and_update().clone() else { continue };
        if listing.ids.is_empty() || !registry.leases.holds(FOR_ALL) {
            continue;
        }
        let components = registry.components.view().all();
        let now = time::now();
        let judge = move |component: &Component, now: Timestamp| {
            presence::listed(component, listing.ids.contains(component.key()), now)
        };
        let differs = |one: &&Arc<Component>| one.is_enabled() && judge(one, now).is_some();
        let differing: Vec<_> = components.iter().filter(differs).cloned().collect();
        if let Err(fault) = write(registry, differing, judge).await {
            tracing::warn!(%fault, "what the inventory lists was not written");
        }
    }
}

/// Writes what `rule` makes of components, unless another generation has begun since they were `seen`.
async fn write(
    registry: &Registry,
    seen: Vec<Arc<Component>>,
    rule: impl Fn(&Component, Timestamp) -> Option<Component> + Send + 'static,
) -> Result<(), Fault> {
    if seen.is_empty() {
        return Ok(());
    }
    let note = move |draft: &mut Draft<'_, Component>| {
        let now = time::now();
        for seen in &seen {
            let newest = draft.get(seen.key()).filter(|newest| newest.generation == seen.generation);
            if let Some(changed) = newest.and_then(|newest| rule(&newest, now)) {
                draft.put(changed);
            }
        }
        Ok(())
    };
    registry.components.write(note).await?;
    Ok(())
}

impl Registry {
    /// Nodes that the inventory listed a moment ago, for a session that has just read it.
    pub(crate) fn freshly_listed(&self) -> Option<Arc<Listing>> {
        let listing = self.inventory.listing().borrow().clone();
        listing.filter(|listing| listing.read_at.elapsed() < FRESH)
    }
}
