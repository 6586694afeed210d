//! Power calls of bare-metal hosts ([31](../../../decisions/0031-one-authority-for-a-machine.md)).
//!
//! The calls that the records of hosts leave to this part are dispatched as those of the host provisioner are, by
//! [`host_calls`], with records of their own. The claims of nodes keep them apart from the actions on nodes.

mod change;
mod driver;
mod ironic;
mod redfish;
mod rpc;

use std::{convert::Infallible, sync::Arc, time::Duration};

use chassis::{
    Channel, Context,
    kinds::host::HostRecord,
    lease::Term,
    observe::{
        mirror::{Change, Mirror},
        work::WorkQueue,
    },
    store::ledger::Ledger,
};
use domain::host::record::progress::CallCarrier;
use host_calls::{CallDispatcher, until_hosts_are_lost};
use tokio::sync::Notify;

use crate::{driver::PowerUpstream, store::HostPowerTable};

use self::driver::HostPowerDriver;
pub(crate) use self::rpc::HostPowerRpc;

/// Data that every replica keeps ready for the power calls of hosts. Clones share it.
#[derive(Clone)]
pub(crate) struct HostPowerCalls {
    hosts: Mirror<HostRecord>,
    /// Notified when the registry has lost commits, and the hosts were replaced by those on record.
    hosts_replaced: Arc<Notify>,
    powers: Ledger<HostPowerTable>,
    driver: Arc<HostPowerDriver>,
    queue: WorkQueue<Arc<str>>,
}

impl HostPowerCalls {
    /// Follows the hosts of the registry; `None`: hosts have no driver.
    ///
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn follow(
        context: &Context,
        registry: Channel,
        upstream: &PowerUpstream,
        powers: Ledger<HostPowerTable>,
    ) -> anyhow::Result<Option<Self>> {
        let driver = HostPowerDriver::new(&context.settings, registry.clone(), upstream)?;
        let Some(driver) = driver.map(Arc::new) else { return Ok(None) };
        let queue = WorkQueue::closed();
        let changed = queue.clone();
        let hosts = Mirror::start(context, registry, move |changes: &[Change<HostRecord>]| {
            changed.mark(changes.iter().map(|change| change.key().into()));
        });
        let hosts_replaced = Arc::new(Notify::new());
        let replaced = Arc::clone(&hosts_replaced);
        hosts.on_replacement(move |_| replaced.notify_one());
        Ok(Some(Self { hosts, hosts_replaced, powers, driver, queue }))
    }

    /// Carries out due commands until the term is over.
    pub(crate) async fn act(self, term: Term) -> anyhow::Result<Infallible> {
        // Hosts that are not mirrored yet would look like deleted ones.
        self.hosts.reached(1).await;
        let dispatcher = Arc::new(CallDispatcher {
            carrier: CallCarrier::PowerController,
            driver: self.driver,
            hosts: self.hosts,
            journal: self.powers,
            queue: self.queue,
            term,
        });
        let dispatch = || {
            let dispatcher = Arc::clone(&dispatcher);
            async move {
                dispatcher.catch_up().await;
                Ok(dispatcher.run().await)
            }
        };
        until_hosts_are_lost(&self.hosts_replaced, dispatch).await
    }

    /// Ends the sessions of the driver at BMCs, as far as possible within `patience`. To be called last.
    pub(crate) async fn close(&self, patience: Duration) {
        self.driver.close(patience).await;
    }
}
