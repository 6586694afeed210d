//! The config coordinator: puts in place the data that a node needs before its boot and during its configuration.
//!
//! The service owns the known configuration of nodes, the record of the data put in place for each power-on, and the
//! boot data of nodes where no other service keeps them. Four loops run independently: one keeps the configuration
//! states fresh, one listens for pushes of the configuration service, one polls for changes where the service pushes
//! none, and one prepares power-ons and sets configurations.
//!
//! The service does not decide where a component stands and never touches power. Preparations are reported to the
//! component registry; the power controller acts on them or not.

mod boot_scripts;
mod claims;
mod configure;
mod coordinate;
mod follow;
mod groups;
mod isolate;
mod observe;
mod observed;
mod ordering;
mod placing;
mod power;
mod preparation;
mod prepare;
pub mod questions;
mod rounds;
mod rpc;
mod script_requests;
mod sense;
mod step;
mod store;
mod taken;
mod trouble;
mod upstream;
mod verdicts;

use std::{convert::Infallible, sync::Arc};

use ::upstream::make_first_calls;
use chassis::{
    Channel, Context, Listener, Start,
    kinds::options::OptionsRecord,
    lease::{Role, Term},
    mesh::channel::LARGEST_MESSAGE,
    observe::{
        freshness::ReadingFreshness,
        mirror::{Change, Mirror},
        outage::OutageTimer,
        work::{OpenQueue, WorkQueue},
    },
    store::ledger::Ledger,
};
use domain::{access::calls::CALL_TABLE, boot::component::Component, core::id::ComponentId};
use parking_lot::Mutex;
use proto::{
    boot::boot_script_service_server::BootScriptServiceServer,
    component::report_service_client::ReportServiceClient,
    configuration::configuration_service_server::ConfigurationServiceServer,
};
use tokio::time::Instant;

use crate::{
    boot_scripts::BootScriptRpc,
    claims::WorkClaims,
    configure::NodeConfigurator,
    coordinate::BootCoordinator,
    follow::{ChangePoller, FollowedComponents},
    observe::{ConfigurationObserver, QueryReason},
    placing::BootDataPlacer,
    power::PowerMirror,
    prepare::BootPreparer,
    rpc::ConfigurationRpc,
    script_requests::RequestNotes,
    sense::ConfigurationPoller,
    step::PlacingStep,
    store::{BootScriptTable, ConfigurationStateTable, Migrator, PreparationTable},
    taken::TakenSteps,
    upstream::{boot_parameters, configuration, images},
    verdicts::StepVerdicts,
};

/// Starts the coordinator and serves configuration states, and boot scripts where it keeps them.
///
/// The service answers at once and is ready when it has mirrored the components and the options.
///
/// # Errors
/// When the database cannot be opened, an address is not one, or an upstream cannot be called with its settings.
pub fn start(context: Context, listener: Listener) -> Start {
    Box::pin(serve_at(context, listener))
}

async fn serve_at(context: Context, listener: Listener) -> anyhow::Result<()> {
    let settings = &context.settings;
    let url = context.database_url("config-coordinator", &settings.config_coordinator.database_url)?;
    let database = chassis::store::database::connect_as::<Migrator>(&url, &context.settings.database).await?;
    let ledgers = CoordinatorLedgers {
        states: Ledger::open(&context, database.clone()).await?,
        preparations: Ledger::open(&context, database.clone()).await?,
        scripts: Ledger::open(&context, database.clone()).await?,
    };
    let role = Role::start(&context, "config-coordinator", &database).await?;
    let drivers = UpstreamDrivers {
        images: images::ImageUpstream::new(&settings.images)?,
        boot_parameters: boot_parameters::BootDataUpstream::new(settings, ledgers.scripts.clone())?,
        configuration: configuration::ConfigurationUpstream::new(settings)?,
    };

    let mut server = chassis::Server::with_rules(CALL_TABLE);
    let (states, tasks) = (ledgers.states.clone(), context.tasks.clone());
    let rpc = ConfigurationRpc { states, role: role.clone(), tasks };
    server.add(ConfigurationServiceServer::new(rpc));
    let boot_parameters = drivers.boot_parameters.clone();
    let requests = RequestNotes::start(&context, &boot_parameters);
    server.add(BootScriptServiceServer::new(BootScriptRpc { boot_parameters, requests }));
    let ready = chassis::serve(&context, "config-coordinator", listener, server).await?;

    let registry = context.channel(&settings.component_registry.url)?;
    let first_calls = [drivers.boot_parameters.first_call(), drivers.configuration.first_call()];
    drivers.boot_parameters.follow_registry(&context, registry.clone());
    let sources = BootSources::start(&context, registry, ledgers, drivers)?;
    let components = sources.components.clone();
    context.tasks.spawn_until_shutdown("first-calls", async move {
        components.reached(1).await;
        make_first_calls(first_calls.into_iter().flatten()).await;
        std::future::pending::<anyhow::Result<()>>().await
    });
    context.tasks.spawn_until_shutdown("coordinator", async move {
        // Components that are not mirrored yet look like deleted ones.
        sources.components.reached(1).await;
        sources.options.reached(1).await;
        ready.now();
        role.while_held(|term| CoordinatorEngine::new(&sources, &term).run(term)).await
    });
    Ok(())
}

/// Collections of this service. Clones share them.
#[derive(Clone)]
struct CoordinatorLedgers {
    states: Ledger<ConfigurationStateTable>,
    preparations: Ledger<PreparationTable>,
    scripts: Ledger<BootScriptTable>,
}

/// Clients of the upstreams. Clones share the connections.
#[derive(Clone)]
struct UpstreamDrivers {
    images: images::ImageUpstream,
    boot_parameters: boot_parameters::BootDataUpstream,
    configuration: configuration::ConfigurationUpstream,
}

/// Data that every replica keeps ready, including standbys.
struct BootSources {
    components: Mirror<Component>,
    options: Mirror<OptionsRecord>,
    power: PowerMirror,
    ledgers: CoordinatorLedgers,
    drivers: UpstreamDrivers,
    registry: ReportServiceClient<Channel>,
    /// Components whose configuration may have to be requested.
    unseen: WorkQueue<ComponentId>,
    /// Queued components, because their record or configuration state changed.
    queue: WorkQueue<ComponentId>,
    /// Components being requested, by the reason of the request.
    claims: Arc<WorkClaims<QueryReason>>,
}

impl BootSources {
    fn start(
        context: &Context,
        registry: Channel,
        ledgers: CoordinatorLedgers,
        drivers: UpstreamDrivers,
    ) -> anyhow::Result<Self> {
        let (unseen, queue) = (WorkQueue::closed(), WorkQueue::closed());
        let components = Mirror::start(context, registry.clone(), marking([unseen.clone(), queue.clone()]));
        let claims = Arc::new(WorkClaims::default());
        let told = told_of_options(&components, [unseen.clone(), queue.clone()], &claims);
        let options = Mirror::of_options(context, registry.clone(), told);
        let power = context.channel(&context.settings.power_controller.url)?;
        let power = PowerMirror::start(context, power, &components, [unseen.clone(), queue.clone()]);
        let registry = ReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE);
        Ok(Self { components, options, power, ledgers, drivers, registry, unseen, queue, claims })
    }
}

/// Everything that prepares and configures nodes. One replica has an engine at a time, for one term.
struct CoordinatorEngine {
    poller: ConfigurationPoller,
    change_poller: ChangePoller,
    coordinator: BootCoordinator,
    _open: [OpenQueue<ComponentId>; 2],
}

impl CoordinatorEngine {
    fn new(sources: &BootSources, term: &Term) -> Self {
        let BootSources { components, options, power, ledgers, drivers, registry, unseen, queue, claims } =
            sources;
        let open = [unseen.open(), queue.open()];
        claims.clear();
        let observer = Arc::new(ConfigurationObserver {
            power: power.clone(),
            states: ledgers.states.clone(),
            components: components.clone(),
            options: options.clone(),
            term: term.clone(),
            upstream: drivers.configuration.clone(),
            clock: Arc::default(),
            freshness: ReadingFreshness::default(),
            outage: Mutex::new(OutageTimer::default()),
            changed: queue.clone(),
        });
        let configurator = Arc::new(NodeConfigurator::new(Arc::clone(&observer)));
        let placer = BootDataPlacer {
            components: components.clone(),
            options: options.clone(),
            power: power.clone(),
            term: term.clone(),
            images: drivers.images.clone(),
            boot_parameters: drivers.boot_parameters.clone(),
            configurator: Arc::clone(&configurator),
            projections: TakenSteps::default(),
            tokens: TakenSteps::default(),
            image_verdicts: StepVerdicts::new(PlacingStep::Images),
            boot_verdicts: StepVerdicts::new(PlacingStep::BootParameters),
        };
        let preparations = ledgers.preparations.clone();
        let preparer = BootPreparer { preparations, placer, registry: registry.clone(), fence: term.fence() };
        let followed = Arc::new(FollowedComponents::default());
        let change_poller = ChangePoller {
            observer: Arc::clone(&observer),
            followed: Arc::clone(&followed),
            queue: unseen.clone(),
        };
        let poller = ConfigurationPoller::new(
            Arc::clone(&observer),
            components.clone(),
            unseen.clone(),
            Arc::clone(claims),
            followed,
        );
        let coordinator = BootCoordinator {
            components: components.clone(),
            options: options.clone(),
            power: power.clone(),
            scripts: ledgers.scripts.clone(),
            states: ledgers.states.clone(),
            fence: term.fence(),
            observer,
            preparer,
            configurator,
            queue: queue.clone(),
            claims: WorkClaims::default(),
        };
        Self { poller, change_poller, coordinator, _open: open }
    }

    /// Takes over the record, and works on all components until the term is over and this future is dropped.
    async fn run(self, term: Term) -> anyhow::Result<Infallible> {
        self.coordinator.catch_up().await;
        self.coordinator.observer.withdraw_all().await;
        term.took_over();
        let ids = self.coordinator.all();
        self.poller.mark(&ids);
        self.coordinator.mark(ids);
        tokio::join!(
            self.poller.ask(),
            self.poller.listen(),
            self.poller.notice_gaps(),
            self.change_poller.run(),
            self.coordinator.run()
        );
        std::future::pending().await
    }
}

/// Returns a callback that adds every changed component to both queues.
fn marking(queues: [WorkQueue<ComponentId>; 2]) -> impl Fn(&[Change<Component>]) + Send + Sync + 'static {
    move |changes| {
        for queue in &queues {
            queue.mark(changes.iter().filter_map(Change::newest).map(|component| component.id.clone()));
        }
    }
}

/// Returns a callback that adds every enabled component to both queues: number and times of preparations depend on the
/// options, and so do the times of requests.
fn told_of_options(
    components: &Mirror<Component>,
    queues: [WorkQueue<ComponentId>; 2],
    claims: &Arc<WorkClaims<QueryReason>>,
) -> impl Fn() + Send + Sync + 'static {
    let (components, claims) = (components.clone(), Arc::clone(claims));
    move || {
        claims.end_rests(Instant::now());
        queues.iter().for_each(|queue| queue.mark(components.enabled()));
    }
}

#[cfg(test)]
mod tests;
