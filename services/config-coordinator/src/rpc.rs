//! The configuration service: known configurations of nodes, listed and watched.

use std::time::Duration;

use chassis::{
    Tasks,
    kinds::deletions_to_wire,
    lease::Role,
    store::{
        ledger::{Ledger, Responses, ResumeToken, Selection, Watched},
        resource::Batch,
    },
};
use proto::{
    Encoded,
    configuration::{
        ConfigurationState, ListConfigurationStatesRequest, ListConfigurationStatesResponse,
        WatchConfigurationStatesRequest, WatchConfigurationStatesResponse,
        configuration_service_server::ConfigurationService,
    },
};
use tokio::time::sleep;
use tonic::{Request, Response, Status};

use crate::store::ConfigurationStates;

/// States in one message of a list.
const PAGE: usize = 500;

/// Longest wait of a watch for a take-over by a replica. After that the client may try another replica.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct ConfigurationRpc {
    pub(crate) states: Ledger<ConfigurationStates>,
    pub(crate) role: Role,
    pub(crate) tasks: Tasks,
}

impl ConfigurationRpc {
    /// Waits until states from before the start are not shown as current any more.
    async fn taken_over(&self) -> Result<(), Status> {
        let shutdown = self.tasks.shutdown();
        tokio::select! {
            () = self.role.taken_over() => Ok(()),
            () = shutdown.cancelled() => Err(Status::unavailable("the service stops")),
            () = sleep(PATIENCE) => Err(Status::unavailable("no replica has taken over the nodes yet")),
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
