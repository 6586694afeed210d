//! Requests for boot scripts, kept beside the boot data for those who ask why a node does not boot.
//!
//! A script is served whatever the database does, so requests are noted in memory and stored a second later, those of all
//! nodes in one transaction.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    mem,
    sync::Arc,
    time::Duration,
};

use chassis::Context;
use domain::{
    boot::explanation::ScriptRequests,
    core::{id::ComponentId, time::Timestamp},
};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::upstream::boot_parameters::{BootDataUpstream, built_in::BuiltInDriver};

/// Time in which requests are gathered.
const GATHERED: Duration = Duration::from_secs(1);

/// Requests that are not stored yet: at most one entry for each prepared node. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct RequestNotes(Arc<NotedRequests>);

#[derive(Default)]
struct NotedRequests {
    noted: Mutex<BTreeMap<ComponentId, ScriptRequests>>,
    arrived: Notify,
}

impl RequestNotes {
    /// Stores requests until shutdown, where this service serves the scripts.
    pub(crate) fn start(context: &Context, boot_parameters: &BootDataUpstream) -> Self {
        let notes = Self::default();
        if let BootDataUpstream::BuiltIn(scripts) = boot_parameters {
            let (stored, scripts) = (notes.clone(), scripts.clone());
            context.tasks.spawn_until_shutdown("script-requests", async move { stored.store(scripts).await });
        }
        notes
    }

    /// Notes a request for the script of a node.
    pub(crate) fn note(&self, id: ComponentId, at: Timestamp) {
        match self.0.noted.lock().entry(id) {
            Entry::Vacant(entry) => {
                entry.insert(ScriptRequests { first_at: at, last_at: at, count: 1 });
            }
            Entry::Occupied(mut entry) => {
                let requests = entry.get_mut();
                requests.last_at = at;
                requests.count = requests.count.saturating_add(1);
            }
        }
        self.0.arrived.notify_one();
    }

    async fn store(self, scripts: BuiltInDriver) -> anyhow::Result<()> {
        loop {
            self.0.arrived.notified().await;
            tokio::time::sleep(GATHERED).await;
            let noted = mem::take(&mut *self.0.noted.lock());
            let nodes = noted.len();
            if let Err(fault) = scripts.note_requests(noted).await {
                tracing::warn!(%fault, nodes, "requests for boot scripts not stored");
            }
        }
    }
}
