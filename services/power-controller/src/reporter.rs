//! Reports to the registry the beginnings and outcomes of actions.

use std::{collections::HashSet, time::Duration};

use chassis::{Channel, lease::Term, mesh::channel::LARGEST_MESSAGE, process::pause, within};
use proto::component::{ActionReport, ReportActionsRequest, report_service_client::ReportServiceClient};

/// Deadline of the registry for an answer. It answers thousands of reports within a second; an answer that takes ten
/// times as long will not arrive.
const DEADLINE: Duration = Duration::from_secs(10);

/// Client that reports to the registry.
pub(crate) struct ActionReporter {
    registry: ReportServiceClient<Channel>,
    /// Term in which actions are reported.
    term: Term,
}

impl ActionReporter {
    pub(crate) fn new(registry: Channel, term: Term) -> Self {
        let registry = ReportServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE);
        Self { registry, term }
    }

    /// Reports and retries without end: an action that the registry does not know of must not happen. Returns the ids
    /// of components that have moved on: their generation has passed, or another replica has followed the attempt.
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
            self.term.make_progress();
            tokio::time::sleep(pause::after(failures)).await;
        }
    }
}
