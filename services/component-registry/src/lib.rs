//! The component registry: the owner of every component record.
//!
//! This service owns the records of components, boot tokens and options, and the connection to the inventory. Other
//! services read and watch them. `domain::boot::component::write` and `domain::boot::component::report` decide the
//! effect of a write; the registry applies these rules to the newest record and makes the result durable.
//!
//! This service acts on no external system and makes no decision about a component's target.
//!
//! - `rpc`: gRPC services; `store`: tables; `convert`: conversion between messages and domain types
//! - `inventory`: the hardware inventory; `discovery`, `locks`, `presence`: its parts in the records; `hints`:
//!   earlier polls
//! - `hosts`: bare-metal hosts, their companions and secrets; `devices`: edge devices
//! - `census`: components by status, for the metrics
//! - `expiry`: deletes expired reports of nodes; `compaction`: deletes unused boot artifacts

mod census;
mod compaction;
mod convert;
mod devices;
mod discovery;
mod expiry;
mod hints;
mod host_claims;
mod hosts;
mod inventory;
mod locks;
mod presence;
mod rpc;
mod store;

use std::{sync::Arc, time::Duration};

use chassis::{
    Context, Listener, Server, Start,
    kinds::{Interner, options::OptionsRecord},
    lease::Role,
    mesh::channel::LARGEST_MESSAGE,
    settings::InventoryDriver,
    store::ledger::{EventHistories, Ledger},
};
use domain::{
    access::calls::CALL_TABLE,
    boot::bos::{compatibility::Compatibility, options::Options},
};
use parking_lot::Mutex;
use proto::{
    component::{
        component_service_server::ComponentServiceServer, report_service_server::ReportServiceServer,
    },
    host::{
        host_document_service_server::HostDocumentServiceServer,
        host_report_service_server::HostReportServiceServer,
        host_secret_service_server::HostSecretServiceServer, host_service_server::HostServiceServer,
    },
    inventory::inventory_service_server::InventoryServiceServer,
    option::options_service_server::OptionsServiceServer,
};
use tokio::time::Instant;

use hints::PollHints;
use hosts::{HostLedgers, collect};
use inventory::{InventoryHandle, InventorySource, subscription};
use rpc::TimeStampRenewals;
pub use store::{
    BootToken, BootTokens, ComponentTable, DeviceTable, DocumentTable, HostTable, RegistryMigrator,
    SecretTable, SightTable, StoredOptions, StoredSecret,
};

/// State that the calls and tasks of the registry share.
pub(crate) struct RegistryState {
    components: Ledger<ComponentTable>,
    tokens: Ledger<BootTokens>,
    /// Time of the last transaction that was begun to notice lost tokens, after the components had lost commits.
    tokens_checked: Mutex<Option<Instant>>,
    options: Ledger<StoredOptions>,
    inventory: InventoryHandle,
    hosts: Arc<HostLedgers>,
    /// Whether hosts are the nodes of the inventory.
    lists_hosts: bool,
    hints: PollHints,
    renewals: TimeStampRenewals,
    /// Role of the replica that works for all: it polls the inventory, keeps up the subscription to notifications, and
    /// deletes expired data.
    role: Role,
    interner: Mutex<Interner>,
    compatibility: Compatibility,
}

/// Starts the registry on `listener`.
///
/// # Errors
/// The database cannot be opened, or a setting cannot be used; the text names its key.
pub fn start(context: Context, listener: Listener) -> Start {
    Box::pin(serve_at(context, listener))
}

async fn serve_at(context: Context, listener: Listener) -> anyhow::Result<()> {
    let settings = &context.settings;
    let driver = InventorySource::new(settings)?;
    let subscription = subscription::wanted(&driver, &settings.inventory.notifications);
    let driver = Arc::new(driver);
    let (inventory, questions) = InventoryHandle::new(Arc::clone(&driver));
    let url = context.database_url("component-registry", &settings.component_registry.database_url)?;
    let database =
        chassis::store::database::connect_as::<RegistryMigrator>(&url, &context.settings.database).await?;
    let role = Role::start(&context, "component-registry", &database).await?;
    let registry = Arc::new(RegistryState {
        components: Ledger::open(&context, database.clone()).await?,
        tokens: Ledger::open(&context, database.clone()).await?,
        tokens_checked: Mutex::default(),
        options: Ledger::open(&context, database.clone()).await?,
        inventory,
        // The state of an opening is too large for the stack of a test in a debug build.
        hosts: Box::pin(HostLedgers::open(&context, database.clone())).await?,
        lists_hosts: settings.inventory.driver == InventoryDriver::Hosts,
        hints: PollHints::default(),
        renewals: TimeStampRenewals::default(),
        role: role.clone(),
        interner: Mutex::default(),
        compatibility: Compatibility { strict_bos: settings.compat.strict_bos },
    });
    registry.store_default_options().await?;
    let devices = Box::pin(devices::start(&context, database.clone())).await?;

    let mut server = Server::with_rules(CALL_TABLE);
    server.add(
        ComponentServiceServer::from_arc(Arc::clone(&registry)).max_decoding_message_size(LARGEST_MESSAGE),
    );
    server
        .add(ReportServiceServer::from_arc(Arc::clone(&registry)).max_decoding_message_size(LARGEST_MESSAGE));
    server.add(OptionsServiceServer::from_arc(Arc::clone(&registry)));
    server.add(InventoryServiceServer::from_arc(Arc::clone(&registry)));
    add_hosts(&mut server, &registry.hosts);
    devices::serve(&mut server, &devices);
    let histories = EventHistories::default().with(&registry.components).with(&registry.options);
    let histories = devices.with_events(registry.hosts.with_events(histories));
    server.add(histories.service());
    let ready = chassis::serve(&context, "component-registry", listener, server).await?;
    let tasks = &context.tasks;
    tasks.spawn_until_shutdown("logging-level", registry.options.clone().log_as_they_say());
    tasks.spawn_until_shutdown("discovery", discovery::run(Arc::clone(&registry)));
    let period = Duration::from_secs_f64(settings.inventory.lock_poll_seconds);
    tasks.spawn_until_shutdown("locks", locks::run(Arc::clone(&registry), period));
    tasks.spawn_until_shutdown("presence", presence::run(Arc::clone(&registry), period));
    if let Some((peer, wanted)) = subscription {
        let subscribed = role.clone().while_held(move |_| subscription::run(peer.clone(), wanted.clone()));
        tasks.spawn_until_shutdown("subscription", subscribed);
    }
    if settings.inventory.driver == InventoryDriver::Hosts {
        tasks.spawn_until_shutdown("host-nodes", inventory::hosts::follow(Arc::clone(&registry)));
    }
    let compacted = role.clone().while_held(move |_| compaction::run(database.clone()));
    tasks.spawn_until_shutdown("compaction", compacted);
    let counted = Arc::clone(&registry);
    let counted = role.clone().while_held(move |_| census::run(Arc::clone(&counted)));
    tasks.spawn_until_shutdown("census", counted);
    let ledgers = Arc::clone(&registry.hosts);
    let collected = role.clone().while_held(move |_| collect(Arc::clone(&ledgers)));
    tasks.spawn_until_shutdown("collection", collected);
    let expiring = Arc::clone(&registry);
    let expired = role.while_held(move |_| expiry::run(Arc::clone(&expiring)));
    tasks.spawn_until_shutdown("expiry", expired);
    tasks.spawn_until_shutdown("inventory", inventory::run(registry, driver, questions));
    ready.now();
    Ok(())
}

/// Serves hosts, their companions and secrets.
fn add_hosts(server: &mut Server, hosts: &Arc<HostLedgers>) {
    let hosts = || Arc::clone(hosts);
    server.add(HostServiceServer::from_arc(hosts()).max_decoding_message_size(LARGEST_MESSAGE));
    server.add(HostDocumentServiceServer::from_arc(hosts()).max_decoding_message_size(LARGEST_MESSAGE));
    server.add(HostSecretServiceServer::from_arc(hosts()).max_decoding_message_size(LARGEST_MESSAGE));
    server.add(HostReportServiceServer::from_arc(hosts()).max_decoding_message_size(LARGEST_MESSAGE));
}

impl RegistryState {
    /// Stores the default options on the first start. In strict mode, stored values of options that BOS does not have
    /// are reset. Unreadable options are left for an operator.
    async fn store_default_options(&self) -> anyhow::Result<()> {
        let compatibility = self.compatibility;
        let fill_in = move |draft: &mut chassis::store::ledger::Draft<'_, OptionsRecord>| {
            if draft.is_unreadable(OptionsRecord::KEY) {
                return Ok(());
            }
            let stored = draft.get(OptionsRecord::KEY);
            let record = stored.as_deref().cloned().unwrap_or_default();
            let options = record.options.clone().heeded(compatibility);
            if stored.is_none() || options != record.options {
                draft.put(OptionsRecord { options, ..record });
            }
            Ok(())
        };
        self.options.write(fill_in).await?;
        Ok(())
    }

    /// Returns the deadline for the beginning of an inventory answer.
    pub(crate) fn answer_within(&self) -> Duration {
        Duration::from_secs(self.options_in_force().hsm_read_timeout.into())
    }

    /// Returns the options in force.
    pub(crate) fn options_in_force(&self) -> Options {
        self.options.view().get(OptionsRecord::KEY).map(|record| record.options.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
