//! Power states and transitions as a gRPC service: reads requests, reads the ledgers, writes answers.

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
    power::{
        AbandonTransitionRequest, AbandonTransitionResponse, ListPowerStatesRequest, ListPowerStatesResponse,
        ListTransitionsRequest, ListTransitionsResponse, PowerState, Transition, WatchPowerStatesRequest,
        WatchPowerStatesResponse, power_service_server::PowerService,
    },
};
use tokio::time::sleep;
use tonic::{Request, Response, Status, async_trait};

use crate::journal;
use crate::store::{PowerStates, Transitions};

/// Power states in one message of a listing.
const PAGE: usize = 1000;

/// Longest wait of a watch for a take-over by a replica. After that the client may try another replica.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct PowerRpc {
    pub(crate) states: Ledger<PowerStates>,
    pub(crate) transitions: Ledger<Transitions>,
    pub(crate) role: Role,
    pub(crate) tasks: Tasks,
}

impl PowerRpc {
    /// Waits until readings from before the start are not shown as current any more.
    async fn taken_over(&self) -> Result<(), Status> {
        let shutdown = self.tasks.shutdown();
        tokio::select! {
            () = self.role.taken_over() => Ok(()),
            () = shutdown.cancelled() => Err(Status::unavailable("the service stops")),
            () = sleep(PATIENCE) => Err(Status::unavailable("no replica has taken over the nodes yet")),
        }
    }
}

#[async_trait]
impl PowerService for PowerRpc {
    type ListPowerStatesStream = Responses<ListPowerStatesResponse>;

    async fn list_power_states(
        &self,
        request: Request<ListPowerStatesRequest>,
    ) -> Result<Response<Self::ListPowerStatesStream>, Status> {
        let keys = request.into_inner().ids.into_iter().collect();
        let selection = Selection { keys, ..Selection::default() };
        self.states.fresh().await?;
        Ok(self.states.serve_list(selection, PAGE, |found| ListPowerStatesResponse {
            power_states: found.iter().map(|state| PowerState::clone(state)).collect(),
        }))
    }

    type WatchPowerStatesStream = Responses<Encoded<WatchPowerStatesResponse>>;

    async fn watch_power_states(
        &self,
        request: Request<WatchPowerStatesRequest>,
    ) -> Result<Response<Self::WatchPowerStatesStream>, Status> {
        self.taken_over().await?;
        self.states.serve_watch(ResumeToken::received(&request, |request| request.resume_revision)).await
    }

    type ListTransitionsStream = Responses<ListTransitionsResponse>;

    async fn abandon_transition(
        &self,
        request: Request<AbandonTransitionRequest>,
    ) -> Result<Response<AbandonTransitionResponse>, Status> {
        let AbandonTransitionRequest { id, request_id } = request.into_inner();
        let transition = journal::abandon(&self.transitions, id, request_id).await?;
        Ok(Response::new(AbandonTransitionResponse { transition: Some(transition) }))
    }

    /// Lists transitions, the oldest first.
    async fn list_transitions(
        &self,
        request: Request<ListTransitionsRequest>,
    ) -> Result<Response<Self::ListTransitionsStream>, Status> {
        let wanted = request.into_inner().component_id;
        self.transitions.fresh().await?;
        let mut found = self.transitions.view().all();
        found.retain(|transition| wanted.is_empty() || has_member(transition, &wanted));
        found.sort_by_key(|one| one.created_at.map(chassis::mesh::time::from_wire));
        // One transition per message: it has up to thousands of members.
        let responses = found
            .into_iter()
            .map(|transition| ListTransitionsResponse { transitions: vec![Transition::clone(&transition)] });
        Ok(self.transitions.respond(responses))
    }
}

fn has_member(transition: &Transition, id: &str) -> bool {
    transition.members.iter().any(|member| member.id == id)
}

impl Watched for PowerStates {
    type Message = WatchPowerStatesResponse;

    fn message(batch: &Batch<PowerState>) -> Self::Message {
        WatchPowerStatesResponse {
            power_states: batch.changed.iter().map(|state| PowerState::clone(state)).collect(),
            deletions: deletions_to_wire(&batch.deleted),
            revision: batch.revision,
            synced: batch.synced,
        }
    }
}
