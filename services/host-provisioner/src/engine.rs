//! The engine of one term: carries calls out, lists the backend, and keeps the records about firmware.

use std::{convert::Infallible, sync::Arc};

use chassis::lease::Term;
use domain::host::record::progress::CallCarrier;
use host_calls::CallDispatcher;

use crate::{sources::HostSources, store::HostSightTable};

/// Engine of one term.
pub(crate) struct HostEngine {
    pub(crate) sources: Arc<HostSources>,
    pub(crate) term: Term,
}

impl HostEngine {
    /// Works until the term is over and this future is dropped.
    pub(crate) async fn run(self: Arc<Self>) -> anyhow::Result<Infallible> {
        let dispatcher: Arc<CallDispatcher<HostSources, HostSightTable>> = Arc::new(CallDispatcher {
            carrier: CallCarrier::HostProvisioner,
            driver: Arc::clone(&self.sources),
            hosts: self.sources.hosts.clone(),
            journal: self.sources.sights.clone(),
            queue: self.sources.queue.clone(),
            term: self.term.clone(),
        });
        dispatcher.catch_up().await;
        self.term.took_over();
        tokio::join!(dispatcher.run(), self.keep_listing(), Arc::clone(&self).keep_firmware());
        std::future::pending().await
    }
}
