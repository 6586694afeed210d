//! Call to the registry that marks components of a paused session.

use std::{sync::Arc, time::Duration};

use chassis::{Channel, Fault, kinds::component::pause_to_wire, mesh::channel::LARGEST_MESSAGE, within};
use domain::boot::component::PauseMark;
use proto::component::{PauseComponentsRequest, report_service_client::ReportServiceClient};

/// Deadline of the registry for one answer.
const ANSWER: Duration = Duration::from_secs(20);

/// Components with the same change of their mark.
pub(crate) struct MarkedComponents {
    /// Name of the session that owns them.
    pub(crate) session: Arc<str>,
    /// Unique id of the session that assigned them; empty: an operator named the session.
    pub(crate) assignment: Arc<str>,
    /// Mark from now on; `None`: it is removed.
    pub(crate) pause: Option<PauseMark>,
    pub(crate) ids: Vec<String>,
}

/// Client of the registry. Clones share the connection.
#[derive(Clone)]
pub(crate) struct PauseMarker {
    registry: ReportServiceClient<Channel>,
}

impl PauseMarker {
    /// Creates a client for the registry behind `channel`.
    pub(crate) fn new(channel: Channel) -> Self {
        let registry = ReportServiceClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        Self { registry }
    }

    /// Sets or removes the mark. A component that belongs to another session by now is left alone.
    ///
    /// # Errors
    /// The registry does not answer, or refuses.
    pub(crate) async fn mark(&self, components: MarkedComponents) -> Result<(), Fault> {
        let MarkedComponents { session, assignment, pause, ids } = components;
        let request = PauseComponentsRequest {
            session: session.to_string(),
            assignment: assignment.to_string(),
            pause: pause.as_ref().map(pause_to_wire),
            ids,
        };
        within(ANSWER, self.registry.clone().pause_components(request)).await?;
        Ok(())
    }
}
