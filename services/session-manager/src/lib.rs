//! The session manager: session templates, sessions, and saved session status.
//!
//! This service owns templates, sessions and saved status, in its own database. It selects the members of a session
//! from the template and the inventory, and assigns their target states through the component registry. The watch of
//! the registry shows when no member keeps the session any more, and the session is completed. Image stores and the
//! tenant service are called for contents of images and nodes of tenants. This service never acts on a node and never
//! evaluates a node's status.

pub mod catalogue;
mod census;
mod cleanup;
mod completion;
mod confirmation;
mod convert;
mod departures;
mod dependency;
mod durations;
mod feed;
pub mod images;
mod inventories;
mod learning;
mod lookup;
mod marking;
mod members;
mod pause_marker;
mod plans;
mod power_reads;
pub mod questions;
mod record;
mod registry;
mod release;
mod review;
mod rolling;
mod sessions;
mod setup;
mod shared;
mod size;
mod staging;
mod steering;
mod store;
mod templates;
mod tenants;

use std::{convert::Infallible, sync::Arc};

use anyhow::Context as _;
use chassis::{
    Channel, Context, Listener, Server, Start,
    lease::{Role, Term},
    mesh::channel::LARGEST_MESSAGE,
    observe::mirror::{Change, Mirror},
    store::ledger::{EventHistories, Ledger},
};
use domain::{
    access::calls::CALL_TABLE,
    boot::{bos::compatibility::Compatibility, component::Component},
};
use proto::{
    session::{plan_service_server::PlanServiceServer, session_service_server::SessionServiceServer},
    template::session_template_service_server::SessionTemplateServiceServer,
    tenant::tenant_service_server::TenantServiceServer,
};
use upstream::make_first_calls;

pub use dependency::{Dependency, DependencyError, DependencyOutage};
pub use record::SessionRecord;

use crate::{
    confirmation::RegistryConfirmation,
    feed::WorkQueues,
    lookup::ImageLookup,
    members::SessionMembers,
    pause_marker::PauseMarker,
    plans::PlanRpc,
    power_reads::PowerReads,
    registry::RegistryClient,
    release::ComponentRelease,
    sessions::SessionRpc,
    setup::SetupPeers,
    shared::ManagerState,
    size::size_guard,
    staging::StagingService,
    templates::TemplateRpc,
    tenants::{TenantLookup, TenantRpc},
};

/// Starts the session manager and serves it. It is ready once it has the options and all components; until then
/// sessions stay pending and report the reason.
///
/// # Errors
/// Names the setting, the file or the database that cannot be used.
pub fn start(context: Context, listener: Listener) -> Start {
    Box::pin(serve_at(context, listener))
}

async fn serve_at(context: Context, listener: Listener) -> anyhow::Result<()> {
    let settings = &context.settings;
    let registry = context.channel(&settings.component_registry.url).context("component_registry.url")?;
    let lookup = Arc::new(ImageLookup::new(settings)?);
    let work = WorkQueues::default();
    let (shared, role) = open(&context, &registry, &work).await?;
    let tenants = Arc::clone(&shared.tenants);
    let first_calls = [lookup.first_call(), tenants.first_call()];
    let peers = SetupPeers::new(registry.clone(), Arc::clone(&tenants), settings)?;
    let power = context.channel(&settings.power_controller.url).context("power_controller.url")?;

    let mut server = Server::with_rules(CALL_TABLE);
    let sessions = SessionRpc {
        staging: StagingService::new(shared.clone(), registry),
        lookup: Arc::clone(&lookup),
        peers: peers.clone(),
        shared: shared.clone(),
    };
    server.add(SessionServiceServer::new(sessions).max_decoding_message_size(LARGEST_MESSAGE));
    let plans = PlanRpc {
        shared: shared.clone(),
        peers: peers.clone(),
        lookup: Arc::clone(&lookup),
        power: PowerReads::new(power),
        places: PlanRpc::places(),
    };
    server.add(PlanServiceServer::new(plans).max_decoding_message_size(LARGEST_MESSAGE));
    let (reviews, stored) = review::queue();
    let templates = TemplateRpc { shared: shared.clone(), lookup: Arc::clone(&lookup), reviews };
    server.add(SessionTemplateServiceServer::new(templates).max_decoding_message_size(LARGEST_MESSAGE));
    server.add(TenantServiceServer::new(TenantRpc { tenants }).max_decoding_message_size(LARGEST_MESSAGE));
    server.add(EventHistories::default().with(&shared.sessions).with(&shared.templates).service());
    let ready = chassis::serve(&context, "session-manager", listener, server).await?;

    // Work in progress is dropped at shutdown: every loop resumes its work from storage.
    let engine = SessionEngine { shared: shared.clone(), peers, work: work.clone() };
    context.tasks.spawn_until_shutdown("session-engine", async move {
        engine.shared.components.reached(1).await;
        role.while_held(|term| engine.clone().run(term)).await
    });
    context.tasks.spawn_until_shutdown("template-review", review::run(shared.clone(), lookup, stored));
    context.tasks.spawn_until_shutdown("session-feed", feed::run(shared.clone(), work));
    context.tasks.spawn_until_shutdown("session-readiness", async move {
        shared.options.reached(1).await;
        shared.components.reached(1).await;
        ready.now();
        make_first_calls(first_calls.into_iter().flatten()).await;
        std::future::pending::<anyhow::Result<()>>().await
    });
    Ok(())
}

/// Everything that sets up, completes and deletes sessions. One replica runs it at a time.
#[derive(Clone)]
struct SessionEngine {
    shared: ManagerState,
    peers: SetupPeers,
    work: WorkQueues,
}

impl SessionEngine {
    /// Works on all sessions until the term is over and this is dropped. Work that was under way before resumes from
    /// storage.
    async fn run(self, term: Term) -> anyhow::Result<Infallible> {
        let Self { shared, peers, work } = self;
        let _open = (work.setup.open(), work.completion.open(), work.marking.open(), work.rolling.open());
        shared.sessions.catch_up().await;
        work.mark_all(&shared);
        let setup = setup::run(shared.clone(), peers, work.setup, term.clone());
        let completion = completion::run(shared.clone(), work.completion, term.clone());
        let cleanup = cleanup::run(shared.clone(), work.cleanup, term.clone());
        let marking = marking::run(shared.clone(), work.marking, term.clone());
        let rolling = rolling::run(shared.clone(), work.rolling, term.clone());
        let census = census::run(shared.clone());
        let departures = departures::run(shared, term);
        tokio::try_join!(setup, completion, cleanup, marking, rolling, census, departures)
            .map(|(never, ..)| never)
    }
}

/// Opens the collections of this service, takes part in holding its role, and starts the mirrors of other services' collections.
async fn open(
    context: &Context,
    registry: &Channel,
    work: &WorkQueues,
) -> anyhow::Result<(ManagerState, Role)> {
    let settings = &context.settings;
    let url = context.database_url("session-manager", &settings.session_manager.database_url)?;
    let database =
        chassis::store::database::connect_as::<store::SessionMigrator>(&url, &context.settings.database)
            .await?;
    let left_out = store::LeftOutMembers::new(database.clone());
    let sessions = Ledger::open(context, database.clone()).await.context("sessions")?;
    let templates = Ledger::open(context, database.clone()).await.context("session templates")?;
    let durations = Ledger::open(context, database.clone()).await.context("session durations")?;
    let role = Role::start(context, "session-manager", &database).await?;

    let members = Arc::new(SessionMembers::new(settings.sessions.complete_applied));
    let tenants = Arc::new(TenantLookup::new(&settings.tenants, sessions.clone(), Arc::clone(&members))?);
    let followed = Arc::clone(&members);
    let (completion, marking, rolling) =
        (work.completion.clone(), work.marking.clone(), work.rolling.clone());
    let components = Mirror::start(context, registry.clone(), move |changes: &[Change<Component>]| {
        completion.mark(followed.apply(changes));
        marking.mark(followed.mismarked(changes));
        rolling.mark(followed.rolled(changes));
    });
    let followed = Arc::clone(&members);
    components.on_replacement(move |changes| followed.note_losses(changes));
    let cleanup = Arc::clone(&work.cleanup);
    let options = Mirror::of_options(context, registry.clone(), move || cleanup.notify_one());
    let compatibility = Compatibility { strict_bos: settings.compat.strict_bos };
    let most_complete = context.settings.limits.complete_sessions as usize;
    let shared = ManagerState {
        sessions,
        left_out,
        templates,
        durations,
        options,
        components,
        registry: RegistryClient::new(registry.clone()),
        members,
        tenants,
        compatibility,
        most_complete,
        complete_applied: settings.sessions.complete_applied,
        guard: Arc::new(size_guard(&settings.sessions)?),
        confirmation: RegistryConfirmation::new(registry.clone()),
        release: ComponentRelease::new(registry.clone()),
        marker: PauseMarker::new(registry.clone()),
    };
    Ok((shared, role))
}
