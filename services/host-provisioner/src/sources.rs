//! Data that every replica keeps ready, including standbys.

use std::{sync::Arc, time::Duration};

use chassis::{
    kinds::host::HostRecord,
    observe::{mirror::Mirror, work::WorkQueue},
    store::ledger::Ledger,
};
use host_calls::{HostIdentity, HostTarget};
use proto::host as wire;
use redfish::{LoginName, LoginReader};
use tokio::sync::Notify;
use tonic::Status;

use crate::{driver::HostDriver, firmware_records::FirmwareRecords, store::HostSightTable};

/// Data that every replica keeps ready, including standbys.
pub(crate) struct HostSources {
    pub(crate) hosts: Mirror<HostRecord>,
    /// Notified when the registry has lost commits, and the hosts were replaced by those on record.
    pub(crate) hosts_replaced: Arc<Notify>,
    pub(crate) sights: Ledger<HostSightTable>,
    pub(crate) logins: LoginReader,
    pub(crate) firmware: FirmwareRecords,
    pub(crate) driver: HostDriver,
    /// Hosts for which something may be due, by their keys.
    pub(crate) queue: WorkQueue<Arc<str>>,
    /// Hosts whose firmware may have to be read, by their keys.
    pub(crate) firmware_queue: WorkQueue<Arc<str>>,
    /// Notified when a call has ended, so that its effect is seen.
    pub(crate) listing_wanted: Notify,
    pub(crate) listing_period: Duration,
}

impl HostSources {
    /// Returns the host with its login.
    ///
    /// # Errors
    /// The registry does not answer.
    pub(crate) async fn target(
        &self,
        identity: &HostIdentity,
        host: &wire::Host,
    ) -> Result<HostTarget, Status> {
        let login = match LoginName::of(host) {
            Some(name) => self.logins.read(&identity.key, name).await?,
            None => None,
        };
        Ok(HostTarget::of(identity, host, login))
    }
}
