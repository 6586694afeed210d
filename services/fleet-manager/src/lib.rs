//! The fleet manager: fleets of edge devices, the versions of their templates, and the enrolment of devices.
//!
//! The service owns fleets and template versions, in its own database. It mirrors the devices, decides which fleet owns
//! each, gives them the templates of their fleets, and says when a spec is a new version for an agent. These decisions are
//! reported to the component registry, which alone writes devices. The service decides no status.
//!
//! - `fleets`: calls about fleets and the versions of their templates
//! - `versions`: which template versions are kept
//! - `devices`: decisions about devices
//! - `enrolment`: requests of agents to be enrolled, and their certificates; `signer`: the authority that signs these

mod devices;
mod enrolment;
mod fleets;
mod signer;
mod store;
mod versions;

#[cfg(test)]
mod tests;

use anyhow::Context as _;
use chassis::{
    Context, Listener, Server, Start,
    lease::Role,
    mesh::channel::LARGEST_MESSAGE,
    observe::mirror::Mirror,
    store::ledger::{EventHistories, Ledger},
};
use domain::access::calls::CALL_TABLE;
use proto::fleet::fleet_service_server::FleetServiceServer;

pub use store::Migrator;

use crate::{
    enrolment::{EnrolmentManager, EnrolmentUpkeep},
    fleets::FleetRpc,
    store::FleetLedgers,
};

/// Starts the fleet manager on `listener`. It is ready once it has all devices.
///
/// # Errors
/// When the database cannot be opened or a setting cannot be used, which is named.
pub fn start(context: Context, listener: Listener) -> Start {
    Box::pin(serve_at(context, listener))
}

async fn serve_at(context: Context, listener: Listener) -> anyhow::Result<()> {
    let settings = &context.settings;
    let registry = context.channel(&settings.component_registry.url).context("component_registry.url")?;
    let url = context.database_url("fleet-manager", &settings.fleet_manager.database_url)?;
    let database = chassis::store::database::connect_as::<Migrator>(&url, &settings.database).await?;
    let ledgers = FleetLedgers {
        fleets: Ledger::open(&context, database.clone()).await?,
        versions: Ledger::open(&context, database.clone()).await?,
    };
    let role = Role::start(&context, "fleet-manager", &database).await?;

    let enrolments = EnrolmentManager::open(&context, registry.clone(), database).await?;

    let mut server = Server::with_rules(CALL_TABLE);
    let fleets = FleetRpc { ledgers: ledgers.clone() };
    server.add(FleetServiceServer::new(fleets).max_decoding_message_size(LARGEST_MESSAGE));
    enrolments.serve(&mut server);
    let histories = EventHistories::default().with(&ledgers.fleets);
    server.add(enrolments.with_events(histories).service());
    let ready = chassis::serve(&context, "fleet-manager", listener, server).await?;
    // A mirror lasts as long as the process, and this one is for the log level alone.
    let _options = Mirror::of_options(&context, registry.clone(), || {});
    let upkeep = EnrolmentUpkeep::start(&context, registry.clone(), enrolments);
    context.tasks.spawn_until_shutdown("enrolments", upkeep.run());
    devices::start(&context, registry, ledgers, role, ready);
    Ok(())
}
