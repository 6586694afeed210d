//! Calls of the services that have histories, when a question comes.

use std::{collections::HashMap, time::Duration};

use chassis::{Channel, Fault, Settings, mesh::channel::LARGEST_MESSAGE, within};
use domain::boot::explanation::{
    HistoryChange, HistoryEvent, HolderSight, LeftOutNode, ScriptEvidence, TransitionResult,
};
use proto::{
    boot::{ListScriptRequestsRequest, boot_script_service_client::BootScriptServiceClient},
    event::{EventFilter, ListEventsRequest, event_service_client::EventServiceClient},
    power::{
        ListTransitionsRequest, NodeHolder, ReadHoldersRequest, power_service_client::PowerServiceClient,
    },
    session::{
        GetSessionRequest, ListLeftOutMembersRequest, Session, session_service_client::SessionServiceClient,
    },
};
use tonic::Status;

use crate::convert;

/// Deadline of each call. An explanation is wanted while services are slow, and is then made without them.
const DEADLINE: Duration = Duration::from_secs(2);

/// Most events of an explanation: several attempts of a node, or the last work of some nodes.
const MOST_EVENTS: u32 = 1000;

/// Most nodes that a session leaves out in an explanation.
const MOST_LEFT_OUT: usize = 100_000;

/// Clients of the services with histories. Clones share the connections.
#[derive(Clone)]
pub(crate) struct InsightPeers {
    component_events: EventServiceClient<Channel>,
    power: PowerServiceClient<Channel>,
    sessions: SessionServiceClient<Channel>,
    scripts: BootScriptServiceClient<Channel>,
}

impl InsightPeers {
    /// Creates the clients, which connect when they are used.
    ///
    /// # Errors
    /// An address in the settings is invalid.
    pub(crate) fn new(settings: &Settings) -> anyhow::Result<Self> {
        let registry = chassis::channel(&settings.tls, &settings.component_registry.url)?;
        let power = chassis::channel(&settings.tls, &settings.power_controller.url)?;
        let sessions = chassis::channel(&settings.tls, &settings.session_manager.url)?;
        let coordinator = chassis::channel(&settings.tls, &settings.config_coordinator.url)?;
        Ok(Self {
            component_events: EventServiceClient::new(registry).max_decoding_message_size(LARGEST_MESSAGE),
            power: PowerServiceClient::new(power).max_decoding_message_size(LARGEST_MESSAGE),
            sessions: SessionServiceClient::new(sessions).max_decoding_message_size(LARGEST_MESSAGE),
            scripts: BootScriptServiceClient::new(coordinator),
        })
    }

    /// Returns the latest events of components that explain boots, the oldest first, each with its component.
    pub(crate) async fn history(&self, ids: Vec<String>) -> Result<Vec<(String, HistoryEvent)>, Status> {
        let filter = EventFilter {
            keys: ids,
            kinds: HistoryChange::KINDS.map(str::to_owned).to_vec(),
            resource: "component".to_owned(),
            ..EventFilter::default()
        };
        let request = ListEventsRequest {
            filter: Some(filter),
            page_size: MOST_EVENTS,
            newest_first: true,
            ..ListEventsRequest::default()
        };
        let mut client = self.component_events.clone();
        let page = within(DEADLINE, client.list_events(request)).await?.into_inner();
        Ok(page.events.iter().rev().filter_map(convert::history_event).collect())
    }

    /// Returns the results of the transitions of a node.
    pub(crate) async fn transitions(&self, id: &str) -> Result<Vec<TransitionResult>, Status> {
        let mut client = self.power.clone();
        let all = async {
            let request = ListTransitionsRequest { component_id: id.to_owned() };
            let mut answers = client.list_transitions(request).await?.into_inner();
            let mut results = Vec::new();
            while let Some(answer) = answers.message().await? {
                results.extend(answer.transitions.into_iter().filter_map(|one| convert::transition(one, id)));
            }
            Ok(results)
        };
        within(DEADLINE, all).await
    }

    /// Returns the transitions that hold nodes at the power service, by node.
    pub(crate) async fn holders(&self, ids: Vec<String>) -> Result<HashMap<String, HolderSight>, Status> {
        let mut client = self.power.clone();
        let request = ReadHoldersRequest { component_ids: ids };
        let answer = within(DEADLINE, client.read_holders(request)).await?.into_inner();
        let mut held = HashMap::new();
        for NodeHolder { transition, component_ids } in answer.holders {
            let Some(sight) = transition.map(convert::holder) else { continue };
            held.extend(component_ids.into_iter().map(|id| (id, sight.clone())));
        }
        Ok(held)
    }

    /// Returns the requests of nodes for their boot scripts, in the order of `ids`.
    pub(crate) async fn scripts(&self, ids: Vec<String>) -> Result<Vec<ScriptEvidence>, Status> {
        let mut client = self.scripts.clone();
        let request = ListScriptRequestsRequest { component_ids: ids.clone() };
        let answer = within(DEADLINE, client.list_script_requests(request)).await?.into_inner();
        Ok(ids.iter().map(|id| convert::script(&answer, id)).collect())
    }

    /// Returns a session, and the standing of its rollout in words; empty: it has none.
    pub(crate) async fn session(&self, name: &str, tenant: &str) -> Result<(Session, String), Status> {
        let mut client = self.sessions.clone();
        let request = GetSessionRequest { name: name.to_owned(), tenant: tenant.to_owned() };
        let answer = within(DEADLINE, client.get_session(request)).await?.into_inner();
        let rollout = answer.rollout.map(|standing| standing.text).unwrap_or_default();
        let session = answer.session;
        let session = session.ok_or_else(|| Fault::Internal("an answer without its session".to_owned()))?;
        Ok((session, rollout))
    }

    /// Returns the nodes, groups and roles that a session leaves out.
    pub(crate) async fn left_out(&self, name: &str, tenant: &str) -> Result<Vec<LeftOutNode>, Status> {
        let mut client = self.sessions.clone();
        let all = async {
            let request = ListLeftOutMembersRequest { name: name.to_owned(), tenant: tenant.to_owned() };
            let mut answers = client.list_left_out_members(request).await?.into_inner();
            let mut nodes = Vec::new();
            while nodes.len() < MOST_LEFT_OUT
                && let Some(answer) = answers.message().await?
            {
                nodes.extend(answer.members.into_iter().map(convert::left_out));
            }
            Ok(nodes)
        };
        within(DEADLINE, all).await
    }
}
