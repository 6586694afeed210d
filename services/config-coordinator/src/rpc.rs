//! The configuration service: what is known about the configuration of nodes, listed and watched.

use std::sync::Arc;

use chassis::{kinds::deletions_to_wire, ledger::Ledger};
use futures_util::{Stream, StreamExt, stream, stream::BoxStream};
use proto::configuration::{
    ConfigurationState, ListConfigurationStatesRequest, ListConfigurationStatesResponse,
    WatchConfigurationStatesRequest, WatchConfigurationStatesResponse,
    configuration_service_server::ConfigurationService,
};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::store::ConfigurationStates;

/// States in one message of a list.
const PAGE: usize = 500;

pub(crate) struct ConfigurationRpc {
    pub(crate) states: Ledger<ConfigurationStates>,
    pub(crate) shutdown: CancellationToken,
}

#[tonic::async_trait]
impl ConfigurationService for ConfigurationRpc {
    type ListConfigurationStatesStream = BoxStream<'static, Result<ListConfigurationStatesResponse, Status>>;
    type WatchConfigurationStatesStream =
        BoxStream<'static, Result<WatchConfigurationStatesResponse, Status>>;

    async fn list_configuration_states(
        &self,
        request: Request<ListConfigurationStatesRequest>,
    ) -> Result<Response<Self::ListConfigurationStatesStream>, Status> {
        let mut ids = request.into_inner().ids;
        let states = self.states.clone();
        if ids.is_empty() {
            return Ok(Response::new(everything(states).map(Ok).boxed()));
        }
        ids.sort_unstable();
        ids.dedup();
        let found: Vec<_> = ids.iter().filter_map(|id| states.view().get(id)).collect();
        let pages: Vec<_> = found.chunks(PAGE).map(page).collect();
        Ok(Response::new(stream::iter(pages).map(Ok).boxed()))
    }

    async fn watch_configuration_states(
        &self,
        request: Request<WatchConfigurationStatesRequest>,
    ) -> Result<Response<Self::WatchConfigurationStatesStream>, Status> {
        let batches = self.states.watch(request.into_inner().resume_revision)?.batches();
        let responses = batches.map(|batch| {
            let batch = batch?;
            Ok(WatchConfigurationStatesResponse {
                configuration_states: batch.changed.iter().map(|state| (**state).clone()).collect(),
                deletions: deletions_to_wire(&batch.deleted),
                revision: batch.revision,
                synced: batch.synced,
            })
        });
        Ok(Response::new(responses.take_until(self.shutdown.clone().cancelled_owned()).boxed()))
    }
}

/// Every state in the order of ids, read page by page as the client takes them.
fn everything(
    states: Ledger<ConfigurationStates>,
) -> impl Stream<Item = ListConfigurationStatesResponse> + Send {
    stream::unfold(Some(None), move |after: Option<Option<Arc<str>>>| {
        let found = after.map(|after| states.view().page(after.as_deref(), PAGE, PAGE, |_| true));
        std::future::ready(found.map(|(found, last)| (page(&found), last.map(Some))))
    })
}

fn page(states: &[Arc<ConfigurationState>]) -> ListConfigurationStatesResponse {
    let configuration_states = states.iter().map(|state| (**state).clone()).collect();
    ListConfigurationStatesResponse { configuration_states }
}
