//! The component registry: the one place that knows every component.
//!
//! It owns the records of components, the tokens of boots, the options, and the connection to the inventory.
//! Everybody reads and watches it. What a write does to a record is decided by `domain::write` and
//! `domain::report`; the registry runs those rules on the newest record and makes the result durable.
//!
//! It acts on nothing outside and decides nothing about where a component should go.
//!
//! - `rpc`: what is served; `store`: what is kept; `convert`: between both and the rules
//! - `inventory`: what the machine is made of; `discovery`, `locks`, `presence`: what of it becomes part of the records;
//!   `hints`: when to look sooner
//! - `expiry`: forgets what nodes reported too long ago; `compaction`: and what nothing refers to any more

mod compaction;
mod convert;
mod discovery;
mod expiry;
mod hints;
mod inventory;
mod locks;
mod presence;
mod rpc;
mod store;

use std::{sync::Arc, time::Duration};

use chassis::{
    Context, Listener, Server, channel::LARGEST_MESSAGE, convert::Interner, kinds::OptionsRecord,
    lease::Leases, ledger::Ledger,
};
use domain::{compatibility::Compatibility, options::Options};
use parking_lot::Mutex;
use proto::{
    component::{
        component_service_server::ComponentServiceServer, report_service_server::ReportServiceServer,
    },
    inventory::inventory_service_server::InventoryServiceServer,
    option::options_service_server::OptionsServiceServer,
};

use hints::Hints;
use inventory::{Driver, Inventory, subscription};
use rpc::Renewals;
pub use store::{BootToken, BootTokens, Components, Migrator, StoredOptions};

/// Who holds this key does what one replica does for all: it looks at the inventory again and again, keeps up the
/// subscription to its notifications, and forgets what is old.
const FOR_ALL: &str = "inventory";

/// What the registry's services share.
pub(crate) struct Registry {
    components: Ledger<Components>,
    tokens: Ledger<BootTokens>,
    options: Ledger<StoredOptions>,
    inventory: Inventory,
    hints: Hints,
    renewals: Renewals,
    leases: Leases,
    interner: Mutex<Interner>,
    compatibility: Compatibility,
}

/// Starts the registry on `listener`.
///
/// # Errors
/// When the database cannot be opened, or a setting cannot be used; then its key is named.
pub async fn start(context: Context, listener: impl Into<Listener>) -> anyhow::Result<()> {
    let settings = &context.settings;
    let driver = Driver::new(settings)?;
    let subscription = subscription::wanted(&driver, &settings.inventory.notifications);
    let driver = Arc::new(driver);
    let (inventory, questions) = Inventory::new(Arc::clone(&driver));
    let url = context.database_url("component-registry", &settings.component_registry.database_url)?;
    let database = chassis::database::connect_as::<Migrator>(&url, &context.settings.database).await?;
    let leases = Leases::start(&context, "component-registry", &database).await?;
    let registry = Arc::new(Registry {
        components: Ledger::open(&context, database.clone()).await?,
        tokens: Ledger::open(&context, database.clone()).await?,
        options: Ledger::open(&context, database.clone()).await?,
        inventory,
        hints: Hints::default(),
        renewals: Renewals::default(),
        leases: leases.clone(),
        interner: Mutex::default(),
        compatibility: Compatibility { strict_bos: settings.compat.strict_bos },
    });
    registry.fill_in_options().await?;

    let mut server = Server::default();
    server.add(
        ComponentServiceServer::from_arc(Arc::clone(&registry)).max_decoding_message_size(LARGEST_MESSAGE),
    );
    server
        .add(ReportServiceServer::from_arc(Arc::clone(&registry)).max_decoding_message_size(LARGEST_MESSAGE));
    server.add(OptionsServiceServer::from_arc(Arc::clone(&registry)));
    server.add(InventoryServiceServer::from_arc(Arc::clone(&registry)));
    let ready = chassis::serve(&context, "component-registry", listener, server).await?;
    let tasks = &context.tasks;
    tasks.spawn_until_shutdown("logging-level", registry.options.clone().log_as_they_say());
    tasks.spawn_until_shutdown("discovery", discovery::run(Arc::clone(&registry)));
    let period = Duration::from_secs_f64(settings.inventory.lock_poll_seconds);
    tasks.spawn_until_shutdown("locks", locks::run(Arc::clone(&registry), period));
    tasks.spawn_until_shutdown("presence", presence::run(Arc::clone(&registry)));
    if let Some((peer, wanted)) = subscription {
        let subscribe = move || subscription::run(peer.clone(), wanted.clone());
        tasks.spawn_until_shutdown("subscription", leases.clone().while_holding(FOR_ALL, subscribe));
    }
    let compact = move || compaction::run(database.clone());
    tasks.spawn_until_shutdown("compaction", leases.clone().while_holding(FOR_ALL, compact));
    let expiring = Arc::clone(&registry);
    let expire = move || expiry::run(Arc::clone(&expiring));
    tasks.spawn_until_shutdown("expiry", leases.while_holding(FOR_ALL, expire));
    tasks.spawn_until_shutdown("inventory", inventory::run(registry, driver, questions));
    ready.now();
    Ok(())
}

impl Registry {
    /// Stores the default options on the very first start, and nobody's wish for an option that there is not where
    /// BOS is followed strictly. Options that cannot be read are left to who set them.
    async fn fill_in_options(&self) -> anyhow::Result<()> {
        let compatibility = self.compatibility;
        let fill_in = move |draft: &mut chassis::ledger::Draft<'_, OptionsRecord>| {
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

    /// How long an answer of the inventory may take to begin.
    pub(crate) fn answer_within(&self) -> Duration {
        Duration::from_secs(self.options_in_force().hsm_read_timeout.into())
    }

    /// The options in force.
    pub(crate) fn options_in_force(&self) -> Options {
        self.options.view().get(OptionsRecord::KEY).map(|record| record.options.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
