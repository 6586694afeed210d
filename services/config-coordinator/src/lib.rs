//! The config coordinator: puts in place what a node needs before it boots and while it is configured.
//!
//! It owns what is known about the configuration of nodes, what was put in place for which power-on, and what nodes
//! boot where no other service keeps that.
//! Four loops, none of which waits for another: one keeps the configuration states fresh, one listens for
//! what the configuration service says by itself, one looks for changes where it says nothing, and one prepares
//! power-ons and sets configurations.
//!
//! It does not decide where a component stands and never touches power. What was prepared goes to the
//! component registry; the power controller acts on it or not.

mod boot_scripts;
mod claims;
mod configure;
mod coordinate;
mod follow;
mod groups;
mod isolate;
mod observe;
mod order;
mod placing;
mod power;
mod preparation;
mod prepare;
mod rounds;
mod rpc;
mod sense;
mod sighting;
mod silence;
mod step;
mod store;
mod taken;
mod trouble;
mod upstream;
mod verdicts;

use std::{pin::pin, sync::Arc};

use chassis::{
    Channel, Context, Listener,
    channel::LARGEST_MESSAGE,
    kinds::OptionsRecord,
    lease::{Custody, Leases},
    ledger::Ledger,
    mirror::{Change, Mirror},
    work::WorkQueue,
};
use domain::{boot::component::Component, core::id::ComponentId};
use futures_util::StreamExt;
use parking_lot::Mutex;
use proto::{
    boot::boot_script_service_server::BootScriptServiceServer,
    component::report_service_client::ReportServiceClient,
    configuration::configuration_service_server::ConfigurationServiceServer,
};
use tokio::{sync::watch, time::Instant};

use crate::{
    boot_scripts::BootScriptRpc,
    claims::Claims,
    configure::Configurator,
    coordinate::Coordinator,
    follow::{Followed, Follower},
    observe::{Need, Observer},
    order::Order,
    placing::Placer,
    power::PowerStates,
    prepare::Preparer,
    rpc::ConfigurationRpc,
    sense::Sensor,
    silence::Silence,
    step::Step,
    store::{BootScripts, ConfigurationStates, Migrator, Preparations},
    taken::TakenSteps,
    upstream::{boot_parameters, configuration, images},
    verdicts::Verdicts,
};

/// Starts the coordinator and serves what it knows about configuration, and boot scripts where it keeps them.
///
/// It serves at once and is ready when it has copied the components and the options.
///
/// # Errors
/// When the database cannot be opened, an address is not one, or an upstream cannot be called with its settings.
pub async fn start(context: Context, listener: impl Into<Listener>) -> anyhow::Result<()> {
    let settings = &context.settings;
    let url = context.database_url("config-coordinator", &settings.config_coordinator.database_url)?;
    let database = chassis::database::connect_as::<Migrator>(&url, &context.settings.database).await?;
    let ledgers = Ledgers {
        states: Ledger::open(&context, database.clone()).await?,
        preparations: Ledger::open(&context, database.clone()).await?,
        scripts: Ledger::open(&context, database.clone()).await?,
    };
    let custody = Custody::new(Leases::start(&context, "config-coordinator", &database).await?);
    let drivers = Drivers {
        images: images::Driver::new(&settings.images)?,
        boot_parameters: boot_parameters::Driver::new(settings, ledgers.scripts.clone(), custody.clone())?,
        configuration: configuration::Driver::new(settings)?,
    };

    let mut server = chassis::Server::default();
    let (taken_over, is_taken_over) = watch::channel(false);
    let (states, tasks) = (ledgers.states.clone(), context.tasks.clone());
    let rpc = ConfigurationRpc { states, is_taken_over, tasks };
    server.add(ConfigurationServiceServer::new(rpc));
    let boot_parameters = drivers.boot_parameters.clone();
    server.add(BootScriptServiceServer::new(BootScriptRpc { boot_parameters }));
    let ready = chassis::serve(&context, "config-coordinator", listener, server).await?;

    let registry = chassis::channel(&settings.component_registry.url)?;
    let loops = Loops::new(&context, registry, ledgers, drivers, custody, taken_over)?;
    context.tasks.spawn_until_shutdown("coordinator", async move {
        // Components that have not been copied yet look like components that were deleted.
        loops.components.reached(1).await;
        loops.options.reached(1).await;
        ready.now();
        loops.run().await;
        Ok(())
    });
    Ok(())
}

/// What is kept.
struct Ledgers {
    states: Ledger<ConfigurationStates>,
    preparations: Ledger<Preparations>,
    scripts: Ledger<BootScripts>,
}

/// Who is called.
struct Drivers {
    images: images::Driver,
    boot_parameters: boot_parameters::Driver,
    configuration: configuration::Driver,
}

/// Everything that runs.
struct Loops {
    components: Mirror<Component>,
    options: Mirror<OptionsRecord>,
    sensor: Sensor,
    follower: Follower,
    coordinator: Coordinator,
    /// Told once what was known before the start counts as unknown.
    taken_over: watch::Sender<bool>,
}

impl Loops {
    fn new(
        context: &Context,
        registry: Channel,
        ledgers: Ledgers,
        drivers: Drivers,
        custody: Custody,
        taken_over: watch::Sender<bool>,
    ) -> anyhow::Result<Self> {
        let (unseen, queue) = (WorkQueue::default(), WorkQueue::default());
        let components = Mirror::start(context, registry.clone(), marking([unseen.clone(), queue.clone()]));
        let claims = Arc::new(Claims::default());
        let told = told_of_options(&components, [unseen.clone(), queue.clone()], &claims);
        let options = Mirror::of_options(context, registry.clone(), told);
        let power = chassis::channel(&context.settings.power_controller.url)?;
        let power = PowerStates::start(context, power, &components, [unseen.clone(), queue.clone()]);
        let observer = Arc::new(Observer {
            power: power.clone(),
            states: ledgers.states.clone(),
            components: components.clone(),
            options: options.clone(),
            custody: custody.clone(),
            upstream: drivers.configuration,
            order: Arc::new(Mutex::new(Order::default())),
            silence: Mutex::new(Silence::default()),
            changed: queue.clone(),
        });
        let configurator = Arc::new(Configurator::new(Arc::clone(&observer)));
        let placer = Placer {
            components: components.clone(),
            options: options.clone(),
            power: power.clone(),
            custody: custody.clone(),
            images: drivers.images,
            boot_parameters: drivers.boot_parameters,
            configurator: Arc::clone(&configurator),
            projections: TakenSteps::default(),
            tokens: TakenSteps::default(),
            image_verdicts: Verdicts::new(Step::Images),
            boot_verdicts: Verdicts::new(Step::BootParameters),
        };
        let registry = ReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE);
        let preparer = Preparer { preparations: ledgers.preparations, placer, registry };
        let followed = Arc::new(Followed::default());
        let follower = Follower {
            observer: Arc::clone(&observer),
            followed: Arc::clone(&followed),
            queue: unseen.clone(),
        };
        let sensor = Sensor::new(Arc::clone(&observer), components.clone(), unseen, claims, followed);
        let coordinator = Coordinator {
            components: components.clone(),
            options: options.clone(),
            power,
            scripts: ledgers.scripts,
            states: ledgers.states,
            custody,
            observer,
            preparer,
            configurator,
            queue,
            claims: Claims::default(),
        };
        Ok(Self { components, options, sensor, follower, coordinator, taken_over })
    }

    async fn run(&self) {
        tokio::join!(
            self.take_over(),
            self.sensor.ask(),
            self.sensor.listen(),
            self.follower.run(),
            self.coordinator.run()
        );
    }

    /// Takes over components as they come to this replica, without end. What the last holder left is on record, and is
    /// looked at as after a start.
    async fn take_over(&self) {
        let custody = &self.coordinator.custody;
        let mut takeovers = pin!(custody.takeovers());
        while let Some(takeover) = takeovers.next().await {
            self.coordinator.catch_up().await;
            self.coordinator.observer.withdraw_inherited(&takeover).await;
            if takeover.gains_any() {
                self.taken_over.send_replace(true);
            }
            custody.take(&takeover);
            let ids = self.coordinator.concerned(&takeover);
            self.sensor.hand_over(&ids);
            self.coordinator.hand_over(&ids);
        }
    }
}

/// Marks every component that changed in both queues.
fn marking(queues: [WorkQueue<ComponentId>; 2]) -> impl Fn(&[Change<Component>]) + Send + Sync + 'static {
    move |changes| {
        for queue in &queues {
            queue.mark(changes.iter().filter_map(Change::newest).map(|component| component.id.clone()));
        }
    }
}

/// Marks every component that is enabled in both queues: how often and when power-ons are prepared depends on the
/// options, and so does when nodes are asked about again.
fn told_of_options(
    components: &Mirror<Component>,
    queues: [WorkQueue<ComponentId>; 2],
    claims: &Arc<Claims<Need>>,
) -> impl Fn() + Send + Sync + 'static {
    let (components, claims) = (components.clone(), Arc::clone(claims));
    move || {
        claims.end_rests(Instant::now());
        queues.iter().for_each(|queue| queue.mark(components.enabled()));
    }
}

#[cfg(test)]
mod tests;
