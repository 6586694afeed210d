//! The host provisioner: the only service that carries out operations on bare-metal hosts.
//!
//! The service owns the news of the drivers: the last look at each host, and the last report about a call. It mirrors
//! the hosts; for each call that their records leave to this part it asks the driver of the host and reports the answer. One
//! replica acts at a time, for one term: the `engine` has [`host_calls`] dispatch `calls`, `listings` looks at the backend,
//! `firmware` keeps the records about the firmware of hosts, `driver` alone knows the backend.
//!
//! Invariants, whatever fails and whenever the process dies:
//! - a host has one call under way at most;
//! - an intent is on record before the driver is called, and drivers begin nothing twice;
//! - one host whose backend does not answer delays no other host.
//!
//! The service decides neither which operation is due nor what its answer means: that is the status evaluator's.

mod calls;
mod convert;
mod documents;
mod driver;
mod engine;
mod firmware;
mod firmware_records;
mod listings;
mod rpc;
mod sources;
mod store;

use std::{convert::Infallible, sync::Arc, time::Duration};

use anyhow::Context as _;
use chassis::{
    Context, Listener, Ready, Server, Start,
    kinds::host::HostRecord,
    lease::{Role, Term},
    observe::{
        mirror::{Change, Mirror},
        work::WorkQueue,
    },
    settings::seconds,
    store::ledger::Ledger,
};
use domain::access::calls::CALL_TABLE;
use host_calls::until_hosts_are_lost;
use proto::host::host_sight_service_server::HostSightServiceServer;
use redfish::LoginReader;
use tokio::sync::Notify;

#[cfg(test)]
mod tests;

pub use store::{HostSightTable, Migrator};

use crate::{
    driver::HostDriver, engine::HostEngine, firmware_records::FirmwareRecords, rpc::HostSightRpc,
    sources::HostSources,
};

/// Starts the host provisioner on `listener`. Without a driver it only serves: it is switched off.
///
/// # Errors
/// When the database cannot be opened or a setting cannot be used, which is named.
pub fn start(context: Context, listener: Listener) -> Start {
    Box::pin(serve_at(context, listener))
}

async fn serve_at(context: Context, listener: Listener) -> anyhow::Result<()> {
    let settings = Arc::clone(&context.settings);
    let driver = HostDriver::new(&settings)?;
    let listing_period =
        seconds("host_operations.listing_seconds", settings.host_operations.listing_seconds)?;
    let registry = context.channel(&settings.component_registry.url).context("component_registry.url")?;
    let url = context.database_url("host-provisioner", &settings.host_provisioner.database_url)?;
    let database = chassis::store::database::connect_as::<Migrator>(&url, &settings.database).await?;
    let sights = Ledger::<HostSightTable>::open(&context, database.clone()).await?;
    let role = Role::start(&context, "host-provisioner", &database).await?;

    let mut server = Server::with_rules(CALL_TABLE);
    server.add(HostSightServiceServer::new(HostSightRpc { sights: sights.clone() }));
    let ready = chassis::serve(&context, "host-provisioner", listener, server).await?;

    // A mirror lasts as long as the process, and this one is for the log level alone.
    let _options = Mirror::of_options(&context, registry.clone(), || {});
    let Some(driver) = driver else {
        ready.now();
        return Ok(());
    };
    context.tasks.spawn("host-backend", close(context.clone(), driver.clone()));
    let queue = WorkQueue::closed();
    let firmware_queue = WorkQueue::closed();
    let (changed, readable) = (queue.clone(), firmware_queue.clone());
    let hosts = Mirror::start(&context, registry.clone(), move |changes: &[Change<HostRecord>]| {
        changed.mark(changes.iter().map(|change| change.key().into()));
        readable.mark(firmware::concerned(changes));
    });
    let hosts_replaced = Arc::new(Notify::new());
    let replaced = Arc::clone(&hosts_replaced);
    hosts.on_replacement(move |_| replaced.notify_one());
    let sources = Arc::new(HostSources {
        hosts,
        hosts_replaced,
        sights,
        logins: LoginReader::new(registry.clone()),
        firmware: FirmwareRecords::new(registry),
        driver,
        queue,
        firmware_queue,
        listing_wanted: Notify::new(),
        listing_period,
    });
    context.tasks.spawn_until_shutdown("host-engine", work(role, sources, ready));
    Ok(())
}

/// Acts while this replica holds the role, once the hosts are mirrored: hosts that are not would look like deleted ones.
async fn work(role: Role, sources: Arc<HostSources>, ready: Ready) -> anyhow::Result<Infallible> {
    sources.hosts.reached(1).await;
    ready.now();
    role.while_held(|term| act(Arc::clone(&sources), term)).await
}

/// Acts until the term is over.
async fn act(sources: Arc<HostSources>, term: Term) -> anyhow::Result<Infallible> {
    let engine = Arc::new(HostEngine { sources: Arc::clone(&sources), term });
    until_hosts_are_lost(&sources.hosts_replaced, || Arc::clone(&engine).run()).await
}

/// Ends the sessions of this process at the backend of hosts when the process ends.
async fn close(context: Context, driver: HostDriver) -> anyhow::Result<()> {
    context.tasks.shutdown().cancelled().await;
    driver.close(Duration::from_secs(context.settings.shutdown_grace_seconds.into()) / 2).await;
    Ok(())
}
