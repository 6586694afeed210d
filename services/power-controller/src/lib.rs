//! The power controller: the only service that switches nodes, and bare-metal hosts, on and off.
//!
//! The service owns the known power of every component, and every action on it. Both survive restarts. One replica acts
//! at a time, for one term: `takeover` builds its `engine`, a plain value that decides: it turns events into commands, and
//! has one record for each transition under way and one for each node. `runtime` carries the commands out: it writes the
//! `journal`, reports to the registry and calls the `driver`. `sense` reads power and listens.
//! `host_power` has the power calls of bare-metal hosts carried out, by drivers of their own.
//!
//! Invariants, whatever fails and whenever the process dies:
//! - an attempt that the upstream accepted is not made again;
//! - no action is requested while an earlier action on the same component is unresolved, or the upstream holds the
//!   component for it;
//! - an attempt is counted in the registry before the upstream is called;
//! - no reading counts for a generation while an action of an older one may still have its effect.
//!
//! The service does not decide which state a component should reach: that is the status evaluator's.

mod abandonment;
mod convert;
mod counters;
mod driver;
mod engine;
mod finished;
mod holder;
mod host_claims;
mod host_power;
mod inquiry;
mod journal;
mod known;
mod outcome;
mod queues;
mod reporter;
mod rpc;
mod runtime;
mod sense;
mod store;
mod takeover;

use std::{convert::Infallible, sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{
    Channel, Context, Listener, Ready, Server, Start,
    kinds::options::OptionsRecord,
    lease::Role,
    mesh::channel::LARGEST_MESSAGE,
    observe::mirror::{Change, Mirror},
    settings::{InventoryDriver, seconds},
    store::ledger::{EventHistories, Ledger},
};
use domain::{access::calls::CALL_TABLE, boot::component::Component, core::id::ComponentId};
use proto::power::{
    host_power_service_server::HostPowerServiceServer, power_service_server::PowerServiceServer,
};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use store::{HostPowerTable, Migrator, PowerStateTable, TransitionTable};

use crate::{
    abandonment::TransitionAbandonment,
    convert::AskedFor,
    driver::PowerUpstream,
    holder::HolderQuestion,
    host_claims::HostClaims,
    host_power::{HostPowerCalls, HostPowerRpc},
    inquiry::PowerInquiry,
    queues::EngineQueues,
    rpc::PowerRpc,
    takeover::{EnginePauses, PowerSources},
};

/// Starts the power controller on `listener`.
///
/// # Errors
/// When the database cannot be opened or a setting cannot be used, which is named.
pub fn start(context: Context, listener: Listener) -> Start {
    Box::pin(serve_at(context, listener))
}

async fn serve_at(context: Context, listener: Listener) -> anyhow::Result<()> {
    counters::describe();
    let settings = Arc::clone(&context.settings);
    let driver = PowerUpstream::new(&settings)?;
    let follow_pause = seconds("power.follow_seconds", settings.power.follow_seconds)?;
    let poll_pause = seconds("power.poll_seconds", settings.power.poll_seconds)?;
    // Polls need not be rare where a poll costs no call.
    let longest_pause = if driver.follows_by_calls() { poll_pause } else { follow_pause };
    let confirmed = seconds_or_none("power.confirm_seconds", settings.power.confirm_seconds)?;
    let step = confirmed.filter(|_| driver.works_in_steps());
    let registry = context.channel(&settings.component_registry.url).context("component_registry.url")?;
    let url = context.database_url("power-controller", &settings.power_controller.database_url)?;
    let database = chassis::store::database::connect_as::<Migrator>(&url, &context.settings.database).await?;
    let states = Ledger::<PowerStateTable>::open(&context, database.clone()).await?;
    let transitions = Ledger::<TransitionTable>::open(&context, database.clone()).await?;
    let powers = Ledger::<HostPowerTable>::open(&context, database.clone()).await?;
    let role = Role::start(&context, "power-controller", &database).await?;

    let mut server = Server::with_rules(CALL_TABLE);
    let queues = EngineQueues::default();
    let components = mirror_components(&context, registry.clone(), queues.clone(), driver.clone());
    let options = mirror_options(&context, registry.clone(), components.clone(), queues.clone());
    let holders =
        HolderQuestion { transitions: transitions.clone(), driver: driver.clone(), options: options.clone() };
    let rpc = PowerRpc {
        states: states.clone(),
        transitions: transitions.clone(),
        abandonment: TransitionAbandonment { holders: holders.clone() },
        holders,
        inquiry: PowerInquiry::new(driver.clone(), options.clone()),
        role: role.clone(),
        tasks: context.tasks.clone(),
    };
    server.add(PowerServiceServer::new(rpc).max_decoding_message_size(LARGEST_MESSAGE));
    server.add(HostPowerServiceServer::new(HostPowerRpc { powers: powers.clone() }));
    server.add(EventHistories::default().with(&transitions).service());
    let ready = chassis::serve(&context, "power-controller", listener, server).await?;

    driver.follow_registry(&context, registry.clone());
    let calls = HostPowerCalls::follow(&context, registry.clone(), &driver, powers)?;
    let claims = (settings.inventory.driver == InventoryDriver::Hosts)
        .then(|| HostClaims::follow(&context, registry.clone()));
    let sources = Arc::new(PowerSources {
        components,
        options,
        states,
        transitions,
        queues,
        driver: driver.clone(),
        registry,
        pauses: EnginePauses { follow: follow_pause, longest: longest_pause, step, poll: poll_pause },
    });
    if let Some(claims) = claims {
        let (role, sources) = (role.clone(), Arc::clone(&sources));
        let released = role.while_held(move |term| claims.clone().keep_released(Arc::clone(&sources), term));
        context.tasks.spawn_until_shutdown("host-claims", released);
    }
    if let Some(calls) = calls {
        let acting = calls.clone();
        let switched = role.clone().while_held(move |term| acting.clone().act(term));
        context.tasks.spawn_until_shutdown("host-power", switched);
        context.tasks.spawn("host-power-bmcs", close_bmcs(context.clone(), calls));
    }
    let acting = Arc::clone(&sources);
    context.tasks.spawn_until_shutdown("power-engine", async move {
        tokio::join!(acting.complete(), acting.driver.complete());
        role.while_held(|term| Arc::clone(&acting).act(term)).await
    });
    context.tasks.spawn_until_shutdown("power-readiness", tell_ready(ready, sources));
    context.tasks.spawn("power-upstream", close(context.clone(), driver));
    Ok(())
}

/// Parses a length of time in seconds as [`seconds`] does; 0 stands for none.
fn seconds_or_none(key: &str, value: f64) -> anyhow::Result<Option<Duration>> {
    if value == 0.0 { Ok(None) } else { seconds(key, value).map(Some) }
}

async fn tell_ready(ready: Ready, sources: Arc<PowerSources>) -> anyhow::Result<Infallible> {
    tokio::join!(sources.complete(), sources.driver.complete());
    ready.now();
    std::future::pending().await
}

/// Releases the upstream's resources that this process holds when the process ends.
async fn close(context: Context, driver: PowerUpstream) -> anyhow::Result<()> {
    context.tasks.shutdown().cancelled().await;
    driver.close(Duration::from_secs(context.settings.shutdown_grace_seconds.into()) / 2).await;
    Ok(())
}

/// Ends the sessions at the BMCs of hosts when the process ends.
async fn close_bmcs(context: Context, calls: HostPowerCalls) -> anyhow::Result<()> {
    context.tasks.shutdown().cancelled().await;
    calls.close(Duration::from_secs(context.settings.shutdown_grace_seconds.into()) / 2).await;
    Ok(())
}

fn mirror_components(
    context: &Context,
    registry: Channel,
    queues: EngineQueues,
    driver: PowerUpstream,
) -> Mirror<Component> {
    Mirror::start(context, registry, move |changes| {
        queues.undecided.mark(changes.iter().filter(|change| may_be_due(change)).filter_map(id));
        let unread = || changes.iter().filter(|change| may_be_unread(change)).filter_map(id);
        unread().for_each(|id| driver.reconsider(id.as_str()));
        queues.unread.mark(unread());
    })
}

/// Mirrors the options. Every decision depends on them, and so does the time for effects: each change queues all
/// components.
fn mirror_options(
    context: &Context,
    registry: Channel,
    components: Mirror<Component>,
    queues: EngineQueues,
) -> Mirror<OptionsRecord> {
    Mirror::of_options(context, registry, move || {
        [&queues.unread, &queues.undecided].iter().for_each(|queue| queue.mark(components.enabled()));
    })
}

fn id(change: &Change<Component>) -> Option<ComponentId> {
    change.newest().map(|component| component.id.clone())
}

/// Returns whether an action may be due now: a component that is not enabled gets none.
fn may_be_due(change: &Change<Component>) -> bool {
    change.current.as_ref().is_none_or(|component| component.is_enabled())
}

/// Returns whether the power of a component may have to be read: the component is new, gone, or has begun a new
/// generation or another action, a power-on of it is over, or its node has reported.
fn may_be_unread(change: &Change<Component>) -> bool {
    let facts = |component: &Component| {
        (component.is_enabled(), AskedFor::of(component), component.reported.running_report)
    };
    match (&change.previous, &change.current) {
        (Some(previous), Some(current)) => facts(previous) != facts(current),
        (None, _) | (_, None) => true,
    }
}
