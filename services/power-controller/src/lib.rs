//! The power controller: the one place that switches nodes on and off.
//!
//! It owns what is known about the power of every component, and every action that was taken on it. Both
//! survive restarts. `sense` reads and listens; `act` decides by `domain::power` and writes intents down;
//! `deliver` carries them out; `resolve` finds out about those whose answer was lost. `effects` knows which
//! of them may still change something.
//!
//! What holds, whatever fails and whenever the process dies:
//! - an attempt that the upstream accepted is not made again;
//! - nothing is asked for while an earlier action on the same component is unresolved;
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
mod plan;
mod pushes;
mod resolve;
mod rpc;
mod sense;
mod store;

use std::{convert::Infallible, sync::Arc};

use anyhow::Context as _;
use chassis::{
    Channel, Context, Ready, Server,
    channel::LARGEST_MESSAGE,
    kinds::OptionsRecord,
    ledger::Ledger,
    mirror::{Change, Mirror},
    work::WorkQueue,
};
use domain::{component::Component, id::ComponentId};
use parking_lot::Mutex;
use proto::{
    component::report_service_client::ReportServiceClient, power::power_service_server::PowerServiceServer,
};
use tokio::net::TcpListener;

pub use store::{Migrator, PowerStates, Transitions};

use crate::{act::Actor, driver::Driver, effects::Effects, rpc::PowerRpc, sense::Sense};

/// Starts the power controller on `listener`.
///
/// # Errors
/// When the database cannot be opened or the address of the registry or of the upstream is none.
pub async fn start(context: Context, listener: TcpListener) -> anyhow::Result<()> {
    let settings = &context.settings;
    let url = context.database_url("power-controller", &settings.power_controller.database_url)?;
    let database = chassis::database::connect::<Migrator>(&url).await?;
    let states = Ledger::<PowerStates>::open(&context, database.clone()).await?;
    let transitions = Ledger::<Transitions>::open(&context, database).await?;
    let driver = Driver::simulated(&settings.simulator.url).context("simulator.url")?;
    let registry = chassis::channel(&settings.component_registry.url).context("component_registry.url")?;

    let mut server = Server::default();
    let rpc = PowerRpc { states: states.clone(), transitions: transitions.clone() };
    server.add(PowerServiceServer::new(rpc));
    let ready = chassis::serve(&context, "power-controller", listener, server).await?;

    let (unread, undecided) = (WorkQueue::default(), WorkQueue::default());
    let components = mirror_components(&context, registry.clone(), unread.clone(), undecided.clone());
    let queues = [unread.clone(), undecided.clone()];
    let options = mirror_options(&context, registry.clone(), components.clone(), queues.clone());
    let effects = Effects::recall(transitions.view().all());
    let sense = Sense::new(
        states.clone(),
        components.clone(),
        options.clone(),
        driver.clone(),
        queues,
        effects.clone(),
    );
    let actor = Arc::new(Actor {
        transitions,
        states,
        components: components.clone(),
        options: options.clone(),
        undecided,
        unread,
        undelivered: WorkQueue::default(),
        driver,
        registry: ReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE),
        intents: Mutex::default(),
        effects,
        finished: Mutex::default(),
        notes: Mutex::default(),
    });
    // They may stop anywhere: whatever is under way is in the ledgers.
    context.tasks.spawn_until_shutdown("power-states", sense.run());
    context.tasks.spawn_until_shutdown("power-actions", act(actor));
    context.tasks.spawn_until_shutdown("power-readiness", tell_ready(ready, components, options));
    Ok(())
}

async fn act(actor: Arc<Actor>) -> anyhow::Result<Infallible> {
    actor.recover().await;
    // Without all components, one that was not seen yet would look as if it had been deleted.
    actor.components.reached(1).await;
    actor.options.reached(1).await;
    tokio::try_join!(actor.decide(), Arc::clone(&actor).deliver()).map(|(never, _)| never)
}

async fn tell_ready(
    ready: Ready,
    components: Mirror<Component>,
    options: Mirror<OptionsRecord>,
) -> anyhow::Result<Infallible> {
    components.reached(1).await;
    options.reached(1).await;
    ready.now().await;
    std::future::pending().await
}

fn mirror_components(
    context: &Context,
    registry: Channel,
    unread: WorkQueue<ComponentId>,
    undecided: WorkQueue<ComponentId>,
) -> Mirror<Component> {
    Mirror::start(context, registry, move |changes| {
        undecided.mark(changes.iter().filter(|change| may_be_due(change)).filter_map(id));
        unread.mark(changes.iter().filter(|change| may_be_unread(change)).filter_map(id));
    })
}

/// Every decision depends on the options, and how long effects are waited for.
fn mirror_options(
    context: &Context,
    registry: Channel,
    components: Mirror<Component>,
    queues: [WorkQueue<ComponentId>; 2],
) -> Mirror<OptionsRecord> {
    Mirror::start(context, registry, move |_| {
        queues.iter().for_each(|queue| queue.mark(components.enabled()))
    })
}

fn id(change: &Change<Component>) -> Option<ComponentId> {
    change.newest().map(|component| component.id.clone())
}

/// Whether an action may be due now: nothing is done to a component that is not enabled.
fn may_be_due(change: &Change<Component>) -> bool {
    change.current.as_ref().is_none_or(|component| component.is_enabled())
}

/// Whether the power of a component may have to be read: it is new, gone, or has begun a new generation.
fn may_be_unread(change: &Change<Component>) -> bool {
    let asked_for = |component: &Component| (component.is_enabled(), component.generation);
    match (&change.previous, &change.current) {
        (Some(previous), Some(current)) => asked_for(previous) != asked_for(current),
        (None, _) | (_, None) => true,
    }
}
