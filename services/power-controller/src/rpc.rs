//! Power states and transitions as a gRPC service: reads requests, reads the ledgers, writes answers.

use std::{pin::Pin, sync::Arc};

use chassis::{kinds::deletions_to_wire, ledger::Ledger, resource::Batch};
use futures_util::{Stream, StreamExt, stream};
use proto::power::{
    ListPowerStatesRequest, ListPowerStatesResponse, ListTransitionsRequest, ListTransitionsResponse,
    PowerState, Transition, WatchPowerStatesRequest, WatchPowerStatesResponse,
    power_service_server::PowerService,
};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, async_trait};

use crate::store::{PowerStates, Transitions};

/// Power states in one message of a listing.
const PAGE: usize = 1000;

/// Answers calls until `shutdown`, which ends its streams.
pub(crate) struct PowerRpc {
    pub(crate) states: Ledger<PowerStates>,
    pub(crate) transitions: Ledger<Transitions>,
    pub(crate) shutdown: CancellationToken,
}

/// Messages of a streaming answer.
type Responses<M> = Pin<Box<dyn Stream<Item = Result<M, Status>> + Send>>;

#[async_trait]
impl PowerService for PowerRpc {
    type ListPowerStatesStream = Responses<ListPowerStatesResponse>;

    async fn list_power_states(
        &self,
        request: Request<ListPowerStatesRequest>,
    ) -> Result<Response<Self::ListPowerStatesStream>, Status> {
        let view = self.states.view();
        let found = match request.into_inner().ids {
            ids if ids.is_empty() => view.all(),
            ids => ids.iter().filter_map(|id| view.get(id)).collect(),
        };
        let pages: Vec<Vec<Arc<PowerState>>> = found.chunks(PAGE).map(<[_]>::to_vec).collect();
        let responses = pages.into_iter().map(|page| {
            let power_states = page.iter().map(|state| PowerState::clone(state)).collect();
            Ok(ListPowerStatesResponse { power_states })
        });
        Ok(Response::new(self.stream(stream::iter(responses))))
    }

    type WatchPowerStatesStream = Responses<WatchPowerStatesResponse>;

    async fn watch_power_states(
        &self,
        request: Request<WatchPowerStatesRequest>,
    ) -> Result<Response<Self::WatchPowerStatesStream>, Status> {
        let batches = self.states.watch(request.into_inner().resume_revision)?.batches();
        Ok(Response::new(self.stream(batches.map(|batch| Ok(watch_response(&*batch?))))))
    }

    type ListTransitionsStream = Responses<ListTransitionsResponse>;

    /// Oldest first.
    async fn list_transitions(
        &self,
        request: Request<ListTransitionsRequest>,
    ) -> Result<Response<Self::ListTransitionsStream>, Status> {
        let wanted = request.into_inner().component_id;
        let mut found = self.transitions.view().all();
        found.retain(|transition| wanted.is_empty() || has_member(transition, &wanted));
        found.sort_by_key(|one| one.created_at.map(chassis::convert::time::from_wire));
        // One per message: a transition has up to thousands of members.
        let responses = found.into_iter().map(|transition| {
            Ok(ListTransitionsResponse { transitions: vec![Transition::clone(&transition)] })
        });
        Ok(Response::new(self.stream(stream::iter(responses))))
    }
}

impl PowerRpc {
    fn stream<M>(&self, messages: impl Stream<Item = Result<M, Status>> + Send + 'static) -> Responses<M> {
        Box::pin(messages.take_until(self.shutdown.clone().cancelled_owned()))
    }
}

fn has_member(transition: &Transition, id: &str) -> bool {
    transition.members.iter().any(|member| member.id == id)
}

fn watch_response(batch: &Batch<PowerState>) -> WatchPowerStatesResponse {
    WatchPowerStatesResponse {
        power_states: batch.changed.iter().map(|state| PowerState::clone(state)).collect(),
        deletions: deletions_to_wire(&batch.deleted),
        revision: batch.revision,
        synced: batch.synced,
    }
}
