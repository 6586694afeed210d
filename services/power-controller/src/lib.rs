//! The power controller: the one place that switches nodes on and off.
//!
//! It owns what is known about the power of every component, and every action that was taken on it. Both
//! survive restarts. `sense` reads and listens; `act` decides by `domain::boot::power` and writes intents down;
//! `deliver` carries them out and `settle` records the answers; `resolve` finds out about those whose answer was
//! lost; `follow` looks at those that the upstream works on until it has ended them. `effects` knows which of
//! them may still change something. `driver` knows the upstreams.
//!
//! What holds, whatever fails and whenever the process dies:
//! - an attempt that the upstream accepted is not made again;
//! - nothing is asked for while an earlier action on the same component is unresolved, or the upstream holds
//!   the component for it;
//! - an attempt is counted in the registry before the upstream hears of it;
//! - no reading counts for a generation while an action of an older one may still have its effect.
//!
//! It does not decide where a component should go: that is the status evaluator's.

mod act;
mod convert;
mod deliver;
mod driver;
mod effects;
mod finished;
mod follow;
mod following;
mod journal;
mod known;
mod loss;
mod notes;
mod outcome;
mod plan;
mod progress;
mod pushes;
mod redfish;
mod reporter;
mod resolve;
mod rpc;
mod sense;
mod settle;
mod store;
mod takeover;

use std::{convert::Infallible, sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{
    Channel, Context, Listener, Ready, Server,
    kinds::OptionsRecord,
    lease::{Custody, Leases},
    ledger::Ledger,
    mirror::{Change, Mirror},
};
use domain::{boot::component::Component, core::id::ComponentId};
use parking_lot::Mutex;
use proto::power::power_service_server::PowerServiceServer;
use tokio::sync::{mpsc, watch};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use store::{Migrator, PowerStates, Transitions};

use crate::{
    act::{Actor, Queues},
    convert::AskedFor,
    driver::Driver,
    effects::Effects,
    following::Following,
    journal::Journal,
    known::{Known, Pulse},
    notes::Notes,
    reporter::Reporter,
    rpc::PowerRpc,
    sense::Sense,
};

/// Batches of results that may wait for the task that stores them. More would only wait there.
const MOST_RESULTS: usize = 64;

/// Starts the power controller on `listener`.
///
/// # Errors
/// When the database cannot be opened or a setting cannot be used, which is named.
pub async fn start(context: Context, listener: impl Into<Listener>) -> anyhow::Result<()> {
    let settings = Arc::clone(&context.settings);
    let driver = Driver::new(&settings)?;
    let follow_pause = seconds("power.follow_seconds", settings.power.follow_seconds)?;
    let poll_pause = seconds("power.poll_seconds", settings.power.poll_seconds)?;
    // Where a look costs no call, there need not be few.
    let longest_pause = if driver.follows_by_calls() { poll_pause } else { follow_pause };
    let confirmed = seconds_or_none("power.confirm_seconds", settings.power.confirm_seconds)?;
    let step = confirmed.filter(|_| driver.works_in_steps());
    let registry = chassis::channel(&settings.component_registry.url).context("component_registry.url")?;
    let url = context.database_url("power-controller", &settings.power_controller.database_url)?;
    let database = chassis::database::connect_as::<Migrator>(&url, &context.settings.database).await?;
    let states = Ledger::<PowerStates>::open(&context, database.clone()).await?;
    let transitions = Ledger::<Transitions>::open(&context, database.clone()).await?;
    let custody = Custody::new(Leases::start(&context, "power-controller", &database).await?);

    let mut server = Server::default();
    let (taken_over, is_taken_over) = watch::channel(false);
    let rpc = PowerRpc {
        states: states.clone(),
        transitions: transitions.clone(),
        is_taken_over,
        tasks: context.tasks.clone(),
    };
    server.add(PowerServiceServer::new(rpc));
    let ready = chassis::serve(&context, "power-controller", listener, server).await?;

    let queues = Queues::default();
    let components = mirror_components(&context, registry.clone(), queues.clone(), driver.clone());
    let options = mirror_options(&context, registry.clone(), components.clone(), queues.clone());
    let known = Known { components, options, states, custody, pulse: Pulse::default(), taken_over };
    let journal = Journal::new(transitions);
    let effects = Effects::recall(journal.all());
    let (results, shown) = mpsc::channel(MOST_RESULTS);
    let (senses, queued) = (driver.clone(), queues.clone());
    let sense = Sense::new(known.clone(), senses, queued, effects.clone(), shown, poll_pause);
    let actor = Actor {
        known: known.clone(),
        queues,
        journal,
        driver: driver.clone(),
        following: Following::new(follow_pause, longest_pause, step),
        reporter: Reporter::new(registry),
        intents: Mutex::default(),
        effects,
        notes: Notes::default(),
        results,
    };
    // They may stop anywhere: whatever is under way is in the ledgers.
    context.tasks.spawn_until_shutdown("power-states", sense.run());
    context.tasks.spawn_until_shutdown("power-actions", act(Arc::new(actor), settings.leases.ttl()));
    context.tasks.spawn_until_shutdown("power-readiness", tell_ready(ready, known));
    context.tasks.spawn("power-upstream", close(context.clone(), driver));
    Ok(())
}

/// A length of time that is set in seconds.
fn seconds(key: &str, seconds: f64) -> anyhow::Result<Duration> {
    let duration = Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero());
    duration.with_context(|| format!("{key}: '{seconds}' is no number of seconds above 0"))
}

/// As [`seconds`], where 0 stands for none.
fn seconds_or_none(key: &str, value: f64) -> anyhow::Result<Option<Duration>> {
    if value == 0.0 { Ok(None) } else { seconds(key, value).map(Some) }
}

async fn act(actor: Arc<Actor>, lease: Duration) -> anyhow::Result<Infallible> {
    let open = actor.recall(lease);
    actor.known.complete().await;
    let (delivering, following) = (Arc::clone(&actor).deliver(), Arc::clone(&actor).follow());
    let (attending, deciding) = (actor.attend(open), actor.decide());
    tokio::try_join!(attending, deciding, delivering, following, actor.journal.keep_clear())
        .map(|(never, ..)| never)
}

async fn tell_ready(ready: Ready, known: Known) -> anyhow::Result<Infallible> {
    known.complete().await;
    ready.now();
    std::future::pending().await
}

/// Gives back what the upstream holds for us when the process ends.
async fn close(context: Context, driver: Driver) -> anyhow::Result<()> {
    context.tasks.shutdown().cancelled().await;
    driver.close(Duration::from_secs(context.settings.shutdown_grace_seconds.into()) / 2).await;
    Ok(())
}

fn mirror_components(
    context: &Context,
    registry: Channel,
    queues: Queues,
    driver: Driver,
) -> Mirror<Component> {
    Mirror::start(context, registry, move |changes| {
        queues.undecided.mark(changes.iter().filter(|change| may_be_due(change)).filter_map(id));
        let unread = || changes.iter().filter(|change| may_be_unread(change)).filter_map(id);
        unread().for_each(|id| driver.reconsider(id.as_str()));
        queues.unread.mark(unread());
    })
}

/// Every decision depends on the options, and how long effects are waited for.
fn mirror_options(
    context: &Context,
    registry: Channel,
    components: Mirror<Component>,
    queues: Queues,
) -> Mirror<OptionsRecord> {
    Mirror::of_options(context, registry, move || {
        [&queues.unread, &queues.undecided].iter().for_each(|queue| queue.mark(components.enabled()));
    })
}

fn id(change: &Change<Component>) -> Option<ComponentId> {
    change.newest().map(|component| component.id.clone())
}

/// Whether an action may be due now: nothing is done to a component that is not enabled.
fn may_be_due(change: &Change<Component>) -> bool {
    change.current.as_ref().is_none_or(|component| component.is_enabled())
}

/// Whether the power of a component may have to be read: it is new, gone, or has begun a new generation or another
/// action, or a power-on of it is over.
fn may_be_unread(change: &Change<Component>) -> bool {
    let asked_for = |component: &Component| (component.is_enabled(), AskedFor::of(component));
    match (&change.previous, &change.current) {
        (Some(previous), Some(current)) => asked_for(previous) != asked_for(current),
        (None, _) | (_, None) => true,
    }
}
