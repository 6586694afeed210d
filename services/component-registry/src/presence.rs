//! Keeps in the records of enabled nodes whether the inventory lists them (BOS reference 5.2, "HSM presence").
//!
//! A component that begins a generation is queried by its id, unless the session that assigned it has read the
//! inventory just before. While it is enabled, it is queried again with all others in rounds, as often as the locks are
//! polled; a source that has no queries by id lists everything with each poll of the locks. Rounds and snapshots put
//! missing nodes in doubt, and those are queried again.

use std::{collections::HashSet, convert::Infallible, pin::pin, sync::Arc, time::Duration};

use chassis::{
    Fault,
    observe::work::WorkQueue,
    process::{clock, pause::FailureStreak},
    store::{ledger::Draft, resource::Resource},
};
use domain::{
    boot::component::{
        Component,
        report::inventory::{PresenceAnswer, record_presence},
    },
    core::{id::ComponentId, trouble::Trouble},
};
use futures_util::StreamExt;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::RegistryState;

/// Most components in one query. Larger sets are compared with a snapshot of the whole inventory.
pub(crate) const LARGEST_QUERY: usize = 2_000;

/// Longest age of a listing that counts for a session: sessions read the inventory right before the assignment.
const FRESH: Duration = Duration::from_secs(60);

/// Components in the latest snapshot of the inventory.
#[derive(Debug)]
pub(crate) struct InventoryListing {
    /// Beginning of the read.
    pub(crate) read_at: Instant,
    /// Ids of the listed components.
    pub(crate) ids: HashSet<Arc<str>>,
}

/// Follows the presence of enabled components for ever, with a round each `period`.
pub(crate) async fn run(registry: Arc<RegistryState>, period: Duration) -> anyhow::Result<Infallible> {
    let queue = WorkQueue::default();
    tokio::select! {
        () = mark_changes(&registry, &queue) => anyhow::bail!("the components cannot be followed any more"),
        () = mark_acquired(&registry, &queue) => anyhow::bail!("the role cannot be followed any more"),
        () = apply_listings(&registry) => anyhow::bail!("the inventory reader has ended"),
        never = query_in_rounds(&registry, period), if registry.inventory.has_queries() => match never {},
        never = query(&registry, &queue) => never,
    }
}

/// Queues components for the time at which the inventory has to be queried.
async fn mark_changes(registry: &RegistryState, queue: &WorkQueue<ComponentId>) {
    let mut changes = pin!(registry.components.follow());
    while let Some(batch) = changes.next().await {
        mark(registry, queue, batch.changed.iter().map(|component| &**component));
    }
}

async fn mark_acquired(registry: &RegistryState, queue: &WorkQueue<ComponentId>) {
    let mut terms = pin!(registry.role.terms());
    while let Some(term) = terms.next().await {
        if term.is_some() {
            mark(registry, queue, registry.components.view().all().iter().map(|component| &**component));
        }
    }
}

fn mark<'a>(
    registry: &RegistryState,
    queue: &WorkQueue<ComponentId>,
    components: impl Iterator<Item = &'a Component>,
) {
    if !registry.role.is_held() {
        return;
    }
    let options = registry.options_in_force();
    let now = clock::now();
    for component in components.filter(|component| component.is_enabled()) {
        match component.inventory.presence.ask_in(&options, now) {
            Some(Duration::ZERO) => queue.mark([component.id.clone()]),
            Some(wait) => queue.mark_at(component.id.clone(), Instant::now() + wait),
            None => {}
        }
    }
}

/// Queries queued components and writes the results.
async fn query(registry: &RegistryState, queue: &WorkQueue<ComponentId>) -> anyhow::Result<Infallible> {
    let mut failures = FailureStreak::default();
    loop {
        // The batch is one larger than a query may be: a crowd is compared with a snapshot.
        let ids = queue.next(LARGEST_QUERY + 1).await;
        let asked = wanted(registry, &ids);
        if asked.is_empty() {
            continue;
        }
        match query_presence(registry, asked.clone()).await {
            Ok(()) => {
                if let Some(failures) = failures.end() {
                    tracing::info!(failures, "inventory answers presence queries again");
                }
                let view = registry.components.view();
                let newest: Vec<_> = asked.iter().filter_map(|one| view.get(one.key())).collect();
                mark(registry, queue, newest.iter().map(|component| &**component));
            }
            Err(fault) => {
                if failures.add() {
                    tracing::warn!(%fault, nodes = asked.len(), "inventory presence query failed");
                }
                let at = Instant::now() + failures.pause();
                asked.iter().for_each(|component| queue.mark_at(component.id.clone(), at));
                report_outage(registry, asked, &fault).await;
            }
        }
    }
}

/// Queries all enabled and listed components once in each `period`.
async fn query_in_rounds(registry: &RegistryState, period: Duration) -> Infallible {
    let mut rounds = interval(period);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    rounds.reset();
    let mut failures = FailureStreak::default();
    loop {
        rounds.tick().await;
        match query_round(registry).await {
            Ok(false) => {}
            Ok(true) => {
                if let Some(failures) = failures.end() {
                    tracing::info!(failures, "inventory tells again whether it still lists nodes");
                }
            }
            Err(fault) => {
                if failures.add() {
                    tracing::warn!(%fault, "inventory does not tell whether it still lists nodes");
                }
            }
        }
    }
}

/// Queries the enabled and listed components and writes which of them the inventory lacks. Returns whether there were any.
///
/// # Errors
/// The last failure of a query. The others were made all the same.
async fn query_round(registry: &RegistryState) -> Result<bool, Fault> {
    if !registry.role.is_held() {
        return Ok(false);
    }
    let components = registry.components.view().all();
    let is_asked = |one: &Arc<Component>| one.is_enabled() && one.inventory.presence.is_queried_in_rounds();
    let asked: Vec<_> = components.into_iter().filter(is_asked).collect();
    let mut outcome = Ok(!asked.is_empty());
    for batch in asked.chunks(LARGEST_QUERY) {
        if let Err(fault) = note_lacking(registry, batch).await {
            outcome = Err(fault);
        }
    }
    outcome
}

/// Queries listed components and writes which of them the inventory lacks.
async fn note_lacking(registry: &RegistryState, batch: &[Arc<Component>]) -> Result<(), Fault> {
    let listed = listed(registry, batch).await?;
    let lacking = batch.iter().filter(|component| !listed.contains(component.key())).cloned().collect();
    write(registry, lacking, |_| PresenceAnswer::Requested { is_listed: false }).await
}

/// Returns the keys of those of `asked` that the inventory lists now. An answer without any of them is believed only if
/// the inventory lists other hardware: an inventory without any records has lost them.
async fn listed(registry: &RegistryState, asked: &[Arc<Component>]) -> Result<HashSet<Arc<str>>, Fault> {
    let ids = asked.iter().map(|component| component.shared_key()).collect();
    let listed = registry.inventory.listed(ids, registry.answer_within()).await?;
    let may_be_listed = |component: &Arc<Component>| !component.inventory.presence.is_absent();
    if listed.is_empty() && asked.iter().any(may_be_listed) {
        registry.inventory.check_not_empty().await?;
    }
    Ok(listed)
}

/// Returns the components among `ids` that have to be queried now.
fn wanted(registry: &RegistryState, ids: &[ComponentId]) -> Vec<Arc<Component>> {
    if !registry.role.is_held() {
        return Vec::new();
    }
    let view = registry.components.view();
    let options = registry.options_in_force();
    let now = clock::now();
    let components = ids.iter().filter_map(|id| view.get(id.as_str()));
    components
        .filter(|one| one.is_enabled() && one.inventory.presence.ask_in(&options, now).is_some())
        .collect()
}

async fn query_presence(registry: &RegistryState, asked: Vec<Arc<Component>>) -> Result<(), Fault> {
    let listed = listed(registry, &asked).await?;
    let answer = move |component: &Component| PresenceAnswer::Requested {
        is_listed: listed.contains(component.id.as_str()),
    };
    write(registry, asked, answer).await
}

/// Writes the peer that components wait for to their records. A failed write is an outage of the database, which is
/// logged elsewhere.
async fn report_outage(registry: &RegistryState, asked: Vec<Arc<Component>>, fault: &Fault) {
    let Fault::Unavailable { reason, .. } = fault else { return };
    let trouble = Arc::clone(Trouble::waiting_for(reason).text());
    let answer = move |_: &Component| PresenceAnswer::Outage { trouble: Arc::clone(&trouble) };
    if let Err(fault) = write(registry, asked, answer).await {
        tracing::debug!(%fault, "cannot write inventory outage to components");
    }
}

/// Writes the effect of each new listing on enabled components. An empty listing is not trusted.
async fn apply_listings(registry: &RegistryState) {
    let mut listings = registry.inventory.listing();
    while listings.changed().await.is_ok() {
        let Some(listing) = listings.borrow_and_update().clone() else { continue };
        if listing.ids.is_empty() || !registry.role.is_held() {
            continue;
        }
        let components = registry.components.view().all();
        let now = clock::now();
        let answer = move |component: &Component| PresenceAnswer::Listing {
            is_listed: listing.ids.contains(component.key()),
        };
        let differs =
            |one: &Arc<Component>| record_presence(one, one.generation, &answer(one), now).is_some();
        let differing = components.into_iter().filter(|one| one.is_enabled() && differs(one)).collect();
        if let Err(fault) = write(registry, differing, answer).await {
            tracing::warn!(%fault, "cannot write inventory listing to components");
        }
    }
}

/// Records the `answer` about each component, which was requested when the component was `seen`.
async fn write(
    registry: &RegistryState,
    seen: Vec<Arc<Component>>,
    answer: impl Fn(&Component) -> PresenceAnswer + Send + 'static,
) -> Result<(), Fault> {
    if seen.is_empty() {
        return Ok(());
    }
    let note = move |draft: &mut Draft<'_, Component>| {
        let now = clock::now();
        for seen in &seen {
            let Some(newest) = draft.get(seen.key()) else { continue };
            if let Some(changed) = record_presence(&newest, seen.generation, &answer(&newest), now) {
                draft.put(changed);
            }
        }
        Ok(())
    };
    registry.components.write(note).await?;
    Ok(())
}

impl RegistryState {
    /// Returns the latest listing if it is fresh enough for a session that has just read the inventory.
    pub(crate) fn freshly_listed(&self) -> Option<Arc<InventoryListing>> {
        let listing = self.inventory.listing().borrow().clone();
        listing.filter(|listing| listing.read_at.elapsed() < FRESH)
    }
}
