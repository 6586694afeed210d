//! The configuration service: what is known about the configuration of nodes, listed and watched.

use std::time::Duration;

use chassis::{
    Tasks,
    kinds::deletions_to_wire,
    ledger::{Ledger, Responses, ResumeToken, Selection, Watched},
    resource::Batch,
};
use proto::{
    Encoded,
    configuration::{
        ConfigurationState, ListConfigurationStatesRequest, ListConfigurationStatesResponse,
        WatchConfigurationStatesRequest, WatchConfigurationStatesResponse,
        configuration_service_server::ConfigurationService,
    },
};
use tokio::{sync::watch, time::sleep};
use tonic::{Request, Response, Status};

use crate::store::ConfigurationStates;

/// States in one message of a list.
const PAGE: usize = 500;

/// How long a watch waits for this replica to take over its first node. Its client may try another replica then.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct ConfigurationRpc {
    pub(crate) states: Ledger<ConfigurationStates>,
    /// Whether what was known before the start counts as unknown on record.
    pub(crate) is_taken_over: watch::Receiver<bool>,
    pub(crate) tasks: Tasks,
}

impl ConfigurationRpc {
    /// Waits until nothing that was known before the start looks as if it were so now.
    async fn taken_over(&self) -> Result<(), Status> {
        let (mut is_taken_over, shutdown) = (self.is_taken_over.clone(), self.tasks.shutdown());
        tokio::select! {
            Ok(_) = is_taken_over.wait_for(|taken| *taken) => Ok(()),
            () = shutdown.cancelled() => Err(Status::unavailable("the service stops")),
            () = sleep(PATIENCE) => Err(Status::unavailable("this replica has not taken over any node yet")),
        }
    }
}

#[tonic::async_trait]
impl ConfigurationService for ConfigurationRpc {
    type ListConfigurationStatesStream = Responses<ListConfigurationStatesResponse>;
    type WatchConfigurationStatesStream = Responses<Encoded<WatchConfigurationStatesResponse>>;

    async fn list_configuration_states(
        &self,
        request: Request<ListConfigurationStatesRequest>,
    ) -> Result<Response<Self::ListConfigurationStatesStream>, Status> {
        let keys = request.into_inner().ids.into_iter().collect();
        let selection = Selection { keys, ..Selection::default() };
        self.states.fresh().await?;
        Ok(self.states.serve_list(selection, PAGE, |found| ListConfigurationStatesResponse {
            configuration_states: found.iter().map(|state| (**state).clone()).collect(),
        }))
    }

    async fn watch_configuration_states(
        &self,
        request: Request<WatchConfigurationStatesRequest>,
    ) -> Result<Response<Self::WatchConfigurationStatesStream>, Status> {
        self.taken_over().await?;
        self.states.serve_watch(ResumeToken::received(&request, |request| request.resume_revision)).await
    }
}

impl Watched for ConfigurationStates {
    type Message = WatchConfigurationStatesResponse;

    fn message(batch: &Batch<ConfigurationState>) -> Self::Message {
        WatchConfigurationStatesResponse {
            configuration_states: batch.changed.iter().map(|state| (**state).clone()).collect(),
            deletions: deletions_to_wire(&batch.deleted),
            revision: batch.revision,
            synced: batch.synced,
        }
    }
}
