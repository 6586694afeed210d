//! The config coordinator: puts in place what a node needs before it boots and while it is configured.
//!
//! It owns what is known about the configuration of nodes, and what was put in place for which power-on.
//! Three loops, none of which waits for another: one keeps the configuration states fresh, one listens for
//! what the configuration service says by itself, and one prepares power-ons and sets configurations.
//!
//! It does not decide where a component stands and never touches power. What was prepared goes to the
//! component registry; the power controller acts on it or not.

mod claims;
mod configure;
mod coordinate;
mod groups;
mod observe;
mod preparation;
mod prepare;
mod rounds;
mod rpc;
mod sense;
mod store;
mod upstream;

use std::sync::Arc;

use chassis::{
    Context,
    channel::LARGEST_MESSAGE,
    ledger::Ledger,
    mirror::{Change, Mirror},
    work::WorkQueue,
};
use domain::{component::Component, id::ComponentId};
use proto::{
    component::report_service_client::ReportServiceClient,
    configuration::configuration_service_server::ConfigurationServiceServer,
};
use tokio::net::TcpListener;

use crate::{
    claims::Claims,
    configure::Configurator,
    coordinate::Coordinator,
    observe::Observer,
    prepare::Preparer,
    rpc::ConfigurationRpc,
    sense::Sensor,
    store::{ConfigurationStates, Migrator, Preparations},
    upstream::{boot_parameters, configuration},
};

/// Starts the coordinator and serves what it knows about configuration.
///
/// It serves at once and is ready when it has copied the components.
///
/// # Errors
/// When the database cannot be opened, or an address is not one.
pub async fn start(context: Context, listener: TcpListener) -> anyhow::Result<()> {
    let settings = &context.settings;
    let url = context.database_url("config-coordinator", &settings.config_coordinator.database_url)?;
    let database = chassis::database::connect::<Migrator>(&url).await?;
    let states = Ledger::open(&context, database.clone()).await?;
    let preparations = Ledger::open(&context, database).await?;

    let mut server = chassis::Server::default();
    server.add(ConfigurationServiceServer::new(ConfigurationRpc { states: states.clone() }));
    let ready = chassis::serve(&context, "config-coordinator", listener, server).await?;

    let loops = Loops::new(&context, states, preparations)?;
    context.tasks.spawn_until_shutdown("coordinator", async move {
        // Components that have not been copied yet look like components that were deleted.
        loops.components.reached(1).await;
        ready.now().await;
        loops.run().await;
        Ok(())
    });
    Ok(())
}

/// Everything that runs.
struct Loops {
    components: Mirror<Component>,
    sensor: Sensor,
    coordinator: Coordinator,
}

impl Loops {
    fn new(
        context: &Context,
        states: Ledger<ConfigurationStates>,
        preparations: Ledger<Preparations>,
    ) -> anyhow::Result<Self> {
        let settings = &context.settings;
        let registry = chassis::channel(&settings.component_registry.url)?;
        let upstream = configuration::Driver::simulated(&settings.simulator.url)?;
        let (unseen, queue) = (WorkQueue::default(), WorkQueue::default());
        let components = Mirror::start(context, registry.clone(), marking([unseen.clone(), queue.clone()]));
        let observer = Observer::new(states.clone(), components.clone(), upstream.clone(), queue.clone());
        let observer = Arc::new(observer);
        let configurator = Arc::new(Configurator::new(upstream.clone(), Arc::clone(&observer)));
        let preparer = Preparer {
            preparations,
            boot_parameters: boot_parameters::Driver::simulated(&settings.simulator.url)?,
            configurator: Arc::clone(&configurator),
            registry: ReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE),
        };
        let sensor = Sensor::new(Arc::clone(&observer), components.clone(), upstream, unseen);
        let claims = Claims::default();
        let coordinator = Coordinator {
            components: components.clone(),
            states,
            observer,
            preparer,
            configurator,
            queue,
            claims,
        };
        Ok(Self { components, sensor, coordinator })
    }

    async fn run(&self) {
        tokio::join!(self.sensor.ask(), self.sensor.listen(), self.coordinator.run());
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
