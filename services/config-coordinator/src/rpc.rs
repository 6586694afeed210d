//! The configuration service: what is known about the configuration of nodes, listed and watched.

use chassis::{
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
use tonic::{Request, Response, Status};

use crate::store::ConfigurationStates;

/// States in one message of a list.
const PAGE: usize = 500;

pub(crate) struct ConfigurationRpc {
    pub(crate) states: Ledger<ConfigurationStates>,
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
