//! The configuration service: known configurations of nodes, listed and watched.

use chassis::{
    Tasks,
    lease::Role,
    store::ledger::{Ledger, Responses, Selection},
};
use proto::{
    Encoded,
    configuration::{
        ListConfigurationStatesRequest, ListConfigurationStatesResponse, WatchConfigurationStatesRequest,
        WatchConfigurationStatesResponse, configuration_service_server::ConfigurationService,
    },
};
use tonic::{Request, Response, Status};

use crate::store::ConfigurationStateTable;

/// States in one message of a list.
const PAGE: usize = 500;

pub(crate) struct ConfigurationRpc {
    pub(crate) states: Ledger<ConfigurationStateTable>,
    pub(crate) role: Role,
    pub(crate) tasks: Tasks,
}

#[tonic::async_trait]
impl ConfigurationService for ConfigurationRpc {
    type ListConfigurationStatesStream = Responses<ListConfigurationStatesResponse>;
    type WatchConfigurationStatesStream = Responses<Encoded<WatchConfigurationStatesResponse>>;

    async fn list_configuration_states(
        &self,
        request: Request<ListConfigurationStatesRequest>,
    ) -> Result<Response<Self::ListConfigurationStatesStream>, Status> {
        self.states.list(Selection::of(request.into_inner().ids), PAGE).await
    }

    async fn watch_configuration_states(
        &self,
        request: Request<WatchConfigurationStatesRequest>,
    ) -> Result<Response<Self::WatchConfigurationStatesStream>, Status> {
        // States from before the start are not shown as current.
        self.role.taken_over_in_time(&self.tasks).await?;
        self.states.serve_watch(request).await
    }
}
