//! Tells the registry which actions begin and what became of them.

use std::{collections::HashSet, time::Duration};

use chassis::{Channel, channel::LARGEST_MESSAGE, pause, within};
use proto::component::{ActionReport, ReportActionsRequest, report_service_client::ReportServiceClient};

/// How long the registry may take to answer. It answers thousands of reports within a second; what takes
/// ten times that is not coming.
const DEADLINE: Duration = Duration::from_secs(10);

/// The registry as the one that is reported to.
pub(crate) struct Reporter {
    registry: ReportServiceClient<Channel>,
}

impl Reporter {
    pub(crate) fn new(registry: Channel) -> Self {
        Self { registry: ReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE) }
    }

    /// Reports and does not give up: what the registry does not know of must not happen. Gives the ids of
    /// components that have moved on: their generation has passed, or others have followed the attempt.
    pub(crate) async fn report(&self, reports: Vec<ActionReport>) -> HashSet<String> {
        if reports.is_empty() {
            return HashSet::new();
        }
        let request = ReportActionsRequest { reports };
        let mut failures = 0;
        loop {
            let mut registry = self.registry.clone();
            let call = registry.report_actions(request.clone());
            failures += 1;
            match within(DEADLINE, call).await {
                Ok(response) => return response.into_inner().stale_ids.into_iter().collect(),
                Err(status) => tracing::warn!(%status, failures, "cannot report actions, trying again"),
            }
            tokio::time::sleep(pause::after(failures)).await;
        }
    }
}
