//! The fleet manager: fleets of edge devices, the versions of their templates, and the enrolment of devices.
//!
//! The service owns fleets and template versions, in its own database. It never writes a device itself: decisions about
//! devices are reported to the component registry.
//!
//! - `fleets`: calls about fleets and the versions of their templates
//! - `versions`: which template versions are kept
//! - `enrolment`: requests of agents to be enrolled

mod enrolment;
mod fleets;
mod store;
mod versions;

use chassis::{
    Context, Listener, Server,
    mesh::channel::LARGEST_MESSAGE,
    store::ledger::{EventHistories, Ledger},
};
use proto::fleet::fleet_service_server::FleetServiceServer;

pub use store::Migrator;

use crate::{fleets::FleetRpc, store::FleetLedgers};

/// Starts the fleet manager on `listener`.
///
/// # Errors
/// When the database cannot be opened or a setting cannot be used, which is named.
pub async fn start(context: Context, listener: impl Into<Listener>) -> anyhow::Result<()> {
    let settings = &context.settings;
    let url = context.database_url("fleet-manager", &settings.fleet_manager.database_url)?;
    let database = chassis::store::database::connect_as::<Migrator>(&url, &settings.database).await?;
    let ledgers = FleetLedgers {
        fleets: Ledger::open(&context, database.clone()).await?,
        versions: Ledger::open(&context, database.clone()).await?,
    };

    let mut server = Server::default();
    let fleets = FleetRpc { ledgers: ledgers.clone() };
    server.add(FleetServiceServer::new(fleets).max_decoding_message_size(LARGEST_MESSAGE));
    enrolment::serve(&mut server);
    server.add(EventHistories::default().with(&ledgers.fleets).service());
    let ready = chassis::serve(&context, "fleet-manager", listener, server).await?;
    ready.now();
    Ok(())
}
