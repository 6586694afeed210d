//! Power states and transitions as a gRPC service: reads requests, reads the ledgers, writes answers.

use chassis::{
    Tasks,
    kinds::power::transition_to_wire,
    lease::Role,
    store::ledger::{Ledger, Responses, Selection},
};
use domain::boot::power::transition::PowerTransition;
use proto::{
    Encoded,
    power::{
        self, AbandonTransitionRequest, AbandonTransitionResponse, ListPowerStatesRequest,
        ListPowerStatesResponse, ListTransitionsRequest, ListTransitionsResponse, ReadHoldersRequest,
        ReadHoldersResponse, ReadPowerRequest, ReadPowerResponse, WatchPowerStatesRequest,
        WatchPowerStatesResponse, power_service_server::PowerService,
    },
};
use tonic::{Request, Response, Status, async_trait};

use crate::{
    abandonment::TransitionAbandonment,
    holder::{HolderQuestion, NodeHolders},
    inquiry::{InquiryAnswer, PowerInquiry},
    store::{PowerStateTable, TransitionTable},
};

/// Power states, or answers about nodes, in one message.
const PAGE: usize = 1000;

pub(crate) struct PowerRpc {
    pub(crate) states: Ledger<PowerStateTable>,
    pub(crate) transitions: Ledger<TransitionTable>,
    pub(crate) abandonment: TransitionAbandonment,
    pub(crate) holders: HolderQuestion,
    pub(crate) inquiry: PowerInquiry,
    pub(crate) role: Role,
    pub(crate) tasks: Tasks,
}

#[async_trait]
impl PowerService for PowerRpc {
    type ListPowerStatesStream = Responses<ListPowerStatesResponse>;

    async fn list_power_states(
        &self,
        request: Request<ListPowerStatesRequest>,
    ) -> Result<Response<Self::ListPowerStatesStream>, Status> {
        self.states.list(Selection::of(request.into_inner().ids), PAGE).await
    }

    type WatchPowerStatesStream = Responses<Encoded<WatchPowerStatesResponse>>;

    async fn watch_power_states(
        &self,
        request: Request<WatchPowerStatesRequest>,
    ) -> Result<Response<Self::WatchPowerStatesStream>, Status> {
        // Readings from before the start are not shown as current.
        self.role.taken_over_in_time(&self.tasks).await?;
        self.states.serve_watch(request).await
    }

    type ReadPowerStream = Responses<ReadPowerResponse>;

    async fn read_power(
        &self,
        request: Request<ReadPowerRequest>,
    ) -> Result<Response<Self::ReadPowerStream>, Status> {
        let InquiryAnswer { nodes, outages } = self.inquiry.read(request.into_inner().ids).await?;
        let mut nodes = nodes.into_iter();
        let pages = std::iter::from_fn(move || {
            let page: Vec<_> = nodes.by_ref().take(PAGE).collect();
            (!page.is_empty()).then(|| ReadPowerResponse { nodes: page, outages: Vec::new() })
        });
        let last = ReadPowerResponse { nodes: Vec::new(), outages: outages.into_iter().collect() };
        Ok(self.states.respond(pages.chain([last])))
    }

    type ListTransitionsStream = Responses<ListTransitionsResponse>;

    async fn abandon_transition(
        &self,
        request: Request<AbandonTransitionRequest>,
    ) -> Result<Response<AbandonTransitionResponse>, Status> {
        let AbandonTransitionRequest { id, request_id, component_id } = request.into_inner();
        let transition = self.abandonment.abandon(id, component_id, request_id).await?;
        Ok(Response::new(AbandonTransitionResponse { transition: Some(transition_to_wire(&transition)) }))
    }

    async fn read_holders(
        &self,
        request: Request<ReadHoldersRequest>,
    ) -> Result<Response<ReadHoldersResponse>, Status> {
        self.transitions.fresh().await?;
        let NodeHolders { found, unread } = self.holders.ask(request.into_inner().component_ids).await?;
        let holders = found.into_iter().map(|(holder, component_ids)| power::NodeHolder {
            transition: Some(transition_to_wire(&holder.shown())),
            component_ids,
        });
        Ok(Response::new(ReadHoldersResponse {
            holders: holders.collect(),
            unread: unread.unwrap_or_default(),
        }))
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
        found.sort_by_key(|one| one.created_at);
        // One transition per message: it has up to thousands of members.
        let responses = found
            .into_iter()
            .map(|transition| ListTransitionsResponse { transitions: vec![transition_to_wire(&transition)] });
        Ok(self.transitions.respond(responses))
    }
}

fn has_member(transition: &PowerTransition, id: &str) -> bool {
    transition.members.iter().any(|member| member.id == id)
}
